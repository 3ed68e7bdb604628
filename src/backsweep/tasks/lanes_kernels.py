"""Shared by the kernels of all families."""

# In compiled code Python's numbers and numpy's are one and the same.
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from typing import NamedTuple

from backsweep.jit.array_table import BoolVector, ByteMatrix, Float64Vector, Int64Vector, WordVector
from backsweep.jit.compilation import inlined
from backsweep.jit.random_streams_kernels import draw_below, draw_unit

# Bundles of a task, in the order of its table; each family adds one or two.
OUTCOMES, OWN, OWN_SECOND, TASK_BUNDLES = range(4)


class Outcomes(NamedTuple):
    """Each lane's random stream and the outcome of its last step."""

    streams: WordVector
    rewards: Float64Vector
    terminated: BoolVector
    truncated: BoolVector


class Advance(NamedTuple):
    """What advancing all lanes takes and gives; see `Lanes.advance`."""

    actions: Int64Vector
    resting: BoolVector
    """Lanes that are skipped."""
    ended: BoolVector
    """Out: whose episode ended, or started."""
    observations: ByteMatrix
    """The observations, a row of bytes per lane."""
    finals: ByteMatrix
    """Out: the last observations of episodes that ended, in the same form."""


@inlined
def range_of(share: int, shares: int, lanes: int) -> tuple[int, int]:
    """Return the first lane of one of several equal shares, and the first behind it."""
    return share * lanes // shares, (share + 1) * lanes // shares


@inlined
def taken_action(lane: int, action: int, chance: float, num_actions: int, streams: WordVector) -> int:
    """Return the action that a lane takes: the given one, or with probability `chance` a random one of its stream."""
    stream = streams[lane : lane + 1]
    if chance > 0.0 and draw_unit(stream) < chance:
        return draw_below(stream, num_actions)
    return action


@inlined
def end_episode(lane: int, moving: bool, beginning: bool, arrays: Advance, outcomes: Outcomes) -> bool:
    """Note whether a lane's episode ended; return whether it begins the next, after keeping its last observation.

    Lanes that rest do nothing. If the lanes are not moving, they are all to begin.
    """
    ended = not arrays.resting[lane] and (not moving or outcomes.terminated[lane] or outcomes.truncated[lane])
    arrays.ended[lane] = ended
    if not (ended and beginning):
        return False
    if moving:
        for place in range(arrays.finals.shape[1]):
            arrays.finals[lane, place] = arrays.observations[lane, place]
    return True
