"""The ring of transitions, in which each distinct observation is kept once."""

from backsweep.store.store import Store

__all__ = ["Store"]
