"""The resumable reverse breadth-first sweep over the graph."""

from backsweep.sweep.roots import PseudoTerminals, Terminals
from backsweep.sweep.sweep import Sweep

__all__ = ["PseudoTerminals", "Sweep", "Terminals"]
