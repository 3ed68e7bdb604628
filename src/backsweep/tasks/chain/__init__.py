"""NChain: a corridor of states with the only reward at its far end."""

from backsweep.tasks.chain.lanes import ChainLanes, ChainOptions

__all__ = ["ChainLanes", "ChainOptions"]
