"""Sokoban: rooms drawn and played as in gym-sokoban, and an optimal solver."""

from backsweep.envs.sokoban.lanes import SokobanLanes
from backsweep.envs.sokoban.options import SokobanOptions
from backsweep.envs.sokoban.solver import solve

__all__ = ["SokobanLanes", "SokobanOptions", "solve"]
