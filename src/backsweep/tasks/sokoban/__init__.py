"""Sokoban: rooms drawn and played as in gym-sokoban, and an optimal solver."""

from backsweep.tasks.sokoban.lanes import SokobanLanes
from backsweep.tasks.sokoban.options import SokobanOptions
from backsweep.tasks.sokoban.solver import solve

__all__ = ["SokobanLanes", "SokobanOptions", "solve"]
