"""NChain's turns, split among threads by ranges of lanes."""

# In compiled code Python's numbers and numpy's are one and the same.
# mypy: disable-error-code="no-any-return,arg-type,assignment,return-value"

from __future__ import annotations

from typing import Any

import numpy as np
from numba import prange
from numpy.typing import NDArray

from backsweep.jit.array_table import Table, unpack
from backsweep.jit.compilation import kernel, threaded
from backsweep.tasks.chain.moves_kernels import ONE_HOT, ChainArrays, step_lanes
from backsweep.tasks.lanes_kernels import OUTCOMES, OWN, Outcomes, end_episode, part_of


@kernel
def turn_part(
    part: int,
    parts: int,
    moving: bool,
    beginning: bool,
    actions: NDArray[np.int64],
    resting: NDArray[np.bool_],
    ended: NDArray[np.bool_],
    observations: NDArray[Any],
    finals: NDArray[Any],
    task: Table,
) -> None:
    """Take the turn of one part of the lanes."""
    outcomes, chain = unpack(Outcomes, task[OUTCOMES]), unpack(ChainArrays, task[OWN])
    states, one_hot = chain.states, chain.settings[ONE_HOT] != 0
    first, last = part_of(part, parts, actions.size)
    if moving:
        if one_hot:
            for lane in range(first, last):
                observations[lane, states[lane]] = 0
        step_lanes(first, last, actions, resting, outcomes, chain)
        if one_hot:
            for lane in range(first, last):
                observations[lane, states[lane]] = 1
    for lane in range(first, last):
        if end_episode(lane, moving, beginning, resting, outcomes, ended, observations, finals):
            if one_hot:
                observations[lane, states[lane]] = 0
                observations[lane, 0] = 1
            states[lane] = 0
            chain.steps[lane] = 0


@threaded
def turn(
    parts: int,
    moving: bool,
    beginning: bool,
    actions: NDArray[np.int64],
    resting: NDArray[np.bool_],
    ended: NDArray[np.bool_],
    observations: NDArray[Any],
    finals: NDArray[Any],
    task: Table,
) -> None:
    """Move the lanes, keep the last observations of episodes that end and begin the next (see `Lanes.turn`).

    `observations` and `finals` hold a row of numbers per lane. Unless the chain is one-hot, the first are the states.
    """
    for part in prange(parts):
        turn_part(part, parts, moving, beginning, actions, resting, ended, observations, finals, task)
