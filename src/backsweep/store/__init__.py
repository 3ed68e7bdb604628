"""The ring of transitions, which stores each distinct observation once."""

from backsweep.store.store import Store

__all__ = ["Store"]
