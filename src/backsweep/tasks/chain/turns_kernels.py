"""NChain's turns, shared out among threads: each part is a run of neighbouring lanes."""

# In compiled code Python's numbers and numpy's are one and the same.
# mypy: disable-error-code="no-any-return,arg-type,assignment,return-value"

from __future__ import annotations

from typing import Any

import numpy as np
from numba import prange
from numpy.typing import NDArray

from backsweep.jit.compilation import threaded
from backsweep.tasks.chain.moves_kernels import step_lanes


@threaded
def turn(
    parts: int,
    moving: bool,
    beginning: bool,
    actions: NDArray[np.int64],
    resting: NDArray[np.bool_],
    random_action_chance: float,
    length: int,
    max_steps: int,
    streams: NDArray[np.uint64],
    states: NDArray[np.int64],
    steps: NDArray[np.int64],
    rewards: NDArray[np.float64],
    terminated: NDArray[np.bool_],
    truncated: NDArray[np.bool_],
    ended: NDArray[np.bool_],
    one_hot: bool,
    observations: NDArray[Any],
    finals: NDArray[Any],
) -> None:
    """Move the lanes, keep the last observations of episodes that end and begin the next (see `Lanes.turn`).

    `observations` and `finals` hold a row of numbers per lane; unless `one_hot`, the first are the states themselves.
    """
    for part in prange(parts):
        first, last = part * actions.size // parts, (part + 1) * actions.size // parts
        if moving:
            if one_hot:
                for lane in range(first, last):
                    observations[lane, states[lane]] = 0
            step_lanes(
                actions[first:last],
                resting[first:last],
                random_action_chance,
                length,
                max_steps,
                streams[first:last],
                states[first:last],
                steps[first:last],
                rewards[first:last],
                terminated[first:last],
                truncated[first:last],
            )
            if one_hot:
                for lane in range(first, last):
                    observations[lane, states[lane]] = 1
        for lane in range(first, last):
            ended[lane] = not resting[lane] and (not moving or terminated[lane] or truncated[lane])
            if ended[lane] and beginning:
                if moving:
                    for place in range(finals.shape[1]):
                        finals[lane, place] = observations[lane, place]
                if one_hot:
                    observations[lane, states[lane]] = 0
                    observations[lane, 0] = 1
                states[lane] = 0
                steps[lane] = 0
