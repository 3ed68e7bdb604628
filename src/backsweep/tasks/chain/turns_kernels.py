"""NChain's turns, split among threads by ranges of lanes."""

# In compiled code Python's numbers and numpy's are one and the same.
# mypy: disable-error-code="no-any-return,arg-type,assignment,return-value"

from __future__ import annotations

import numpy as np
from numba import prange

from backsweep.jit.array_table import Row, Table, unpack
from backsweep.jit.compilation import kernel, threaded
from backsweep.tasks.chain.moves_kernels import ONE_HOT, ChainArrays, step_lanes
from backsweep.tasks.lanes_kernels import OUTCOMES, OWN, Outcomes, Turn, end_episode, part_of


@kernel
def turn_part(part: int, parts: int, moving: bool, beginning: bool, turn_row: Row, task: Table) -> None:
    """Take the turn of one part of the lanes."""
    outcomes, chain = unpack(Outcomes, task[OUTCOMES]), unpack(ChainArrays, task[OWN])
    turn = unpack(Turn, turn_row)
    # Unless the chain is one-hot, the observations are the states themselves.
    states, one_hot, vectors = chain.states, chain.settings[ONE_HOT] != 0, turn.observations.view(np.float32)
    first, last = part_of(part, parts, turn.actions.size)
    if moving:
        if one_hot:
            for lane in range(first, last):
                vectors[lane, states[lane]] = 0
        step_lanes(first, last, turn.actions, turn.resting, outcomes, chain)
        if one_hot:
            for lane in range(first, last):
                vectors[lane, states[lane]] = 1
    for lane in range(first, last):
        if end_episode(lane, moving, beginning, turn, outcomes):
            if one_hot:
                vectors[lane, states[lane]] = 0
                vectors[lane, 0] = 1
            states[lane] = 0
            chain.steps[lane] = 0


@threaded
def turn_lanes(parts: int, moving: bool, beginning: bool, turn_row: Row, task: Table) -> None:
    """Take a turn of all lanes, split into parts (see `Lanes.turn`)."""
    for part in prange(parts):
        turn_part(part, parts, moving, beginning, turn_row, task)
