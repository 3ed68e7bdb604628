"""Shared by the kernels of all families."""

# In compiled code Python's numbers and numpy's are one and the same.
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from backsweep.jit.array_table import BoolVector, Float64Vector, WordVector
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


@inlined
def part_of(part: int, parts: int, lanes: int) -> tuple[int, int]:
    """Return the first lane of one of several equal parts, and the first behind it."""
    return part * lanes // parts, (part + 1) * lanes // parts


@inlined
def end_episode(
    lane: int,
    moving: bool,
    beginning: bool,
    resting: NDArray[np.bool_],
    outcomes: Outcomes,
    ended: NDArray[np.bool_],
    observations: NDArray[Any],
    finals: NDArray[Any],
) -> bool:
    """Note whether a lane's episode ended; return whether it begins the next, after keeping its last observation.

    Lanes that rest do nothing. If the lanes are not moving, they are all to begin.
    """
    ended[lane] = not resting[lane] and (not moving or outcomes.terminated[lane] or outcomes.truncated[lane])
    if not (ended[lane] and beginning):
        return False
    if moving:
        for place in range(finals.shape[1]):
            finals[lane, place] = observations[lane, place]
    return True
