"""The resumable reverse breadth-first sweep over the graph."""

from backsweep.sweep.sweep import PseudoTerminals, Sweep, Terminals

__all__ = ["PseudoTerminals", "Sweep", "Terminals"]
