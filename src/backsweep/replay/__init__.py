"""Replay: transitions go in, batches come out.

components  its components          filling    adding transitions   autoreset          how environments reset
reading     batches and priorities  replay     the whole class      argument_checks    checks of arguments
"""

from backsweep.replay.components import ReplayMachinery
from backsweep.replay.replay import Replay

__all__ = ["Replay", "ReplayMachinery"]
