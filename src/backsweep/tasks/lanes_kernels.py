"""Shared by the kernels of all families."""

# In compiled code Python's numbers and numpy's are one and the same.
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from typing import NamedTuple

from backsweep.jit.array_table import BoolVector, ByteMatrix, Float64Vector, Int64Vector, WordVector
from backsweep.jit.compilation import inlined

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


class Turn(NamedTuple):
    """What a turn of all lanes takes and gives; see `Lanes.turn`."""

    actions: Int64Vector
    resting: BoolVector
    """Lanes that are skipped."""
    ended: BoolVector
    """Out: whose episode ended, or started."""
    observations: ByteMatrix
    """The observations, a row of bytes per lane."""
    finals: ByteMatrix
    """Out: the last observations of episodes that ended, likewise."""


@inlined
def part_of(part: int, parts: int, lanes: int) -> tuple[int, int]:
    """Return the first lane of one of several equal parts, and the first behind it."""
    return part * lanes // parts, (part + 1) * lanes // parts


@inlined
def end_episode(lane: int, moving: bool, beginning: bool, turn: Turn, outcomes: Outcomes) -> bool:
    """Note whether a lane's episode ended; return whether it begins the next, after keeping its last observation.

    Lanes that rest do nothing. If the lanes are not moving, they are all to begin.
    """
    ended = not turn.resting[lane] and (not moving or outcomes.terminated[lane] or outcomes.truncated[lane])
    turn.ended[lane] = ended
    if not (ended and beginning):
        return False
    if moving:
        for place in range(turn.finals.shape[1]):
            turn.finals[lane, place] = turn.observations[lane, place]
    return True
