"""MiniGrid's DoorKey, Unlock, RedBlueDoors and crossing tasks."""

from backsweep.envs.minigrid.lanes import MiniGridLanes
from backsweep.envs.minigrid.options import MiniGridOptions

__all__ = ["MiniGridLanes", "MiniGridOptions"]
