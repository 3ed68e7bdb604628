"""MiniGrid's DoorKey, Unlock, RedBlueDoors and crossing tasks."""

from backsweep.tasks.minigrid.lanes import MiniGridLanes
from backsweep.tasks.minigrid.options import MiniGridOptions

__all__ = ["MiniGridLanes", "MiniGridOptions"]
