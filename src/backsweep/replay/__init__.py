"""Replay: transitions go in, batches come out.

parts      what it is made of      filling    how transitions go in      autoreset    how environments reset
reading    how batches come out    replay     all of it, and its files   checking     what callers may give
"""

from backsweep.replay.parts import ReplayMachinery
from backsweep.replay.replay import Replay

__all__ = ["Replay", "ReplayMachinery"]
