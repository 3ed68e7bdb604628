"""Replay: transitions go in, batches come out.

parts      its components          filling    adding transitions         autoreset    how environments reset
reading    batches and priorities  replay     the whole class            checking     argument checks
"""

from backsweep.replay.components import ReplayMachinery
from backsweep.replay.replay import Replay

__all__ = ["Replay", "ReplayMachinery"]
