"""NChain: a corridor of states with the only reward at its far end."""

from backsweep.envs.chain.lanes import ChainLanes
from backsweep.envs.chain.options import ChainOptions

__all__ = ["ChainLanes", "ChainOptions"]
