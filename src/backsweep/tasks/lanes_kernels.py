"""Shared by the kernels of all families."""

from __future__ import annotations

from typing import NamedTuple

from backsweep.jit.array_table import BoolVector, Float64Vector, WordVector

# Bundles of a task, in the order of its table; each family adds one or two.
OUTCOMES = 0
OWN = 1
OWN_SECOND = 2
TASK_BUNDLES = 3


class Outcomes(NamedTuple):
    """Each lane's random stream and the outcome of its last step."""

    streams: WordVector
    rewards: Float64Vector
    terminated: BoolVector
    truncated: BoolVector
