"""NChain's lanes, advanced by several threads, each with its share."""

# In compiled code Python's numbers and numpy's are one and the same.
# mypy: disable-error-code="no-any-return,arg-type,assignment,return-value"

from __future__ import annotations

import numpy as np
from numba import prange

from backsweep.jit.array_table import Addresses, Table, unpack
from backsweep.jit.compilation import kernel, threaded
from backsweep.tasks.chain.moves_kernels import ONE_HOT, ChainArrays, step_lanes
from backsweep.tasks.lanes_kernels import OUTCOMES, OWN, Advance, Outcomes, end_episode, range_of


@kernel
def advance_share(share: int, shares: int, moving: bool, beginning: bool, addresses: Addresses, task: Table) -> None:
    """Advance one share of the lanes."""
    outcomes, chain = unpack(Outcomes, task[OUTCOMES]), unpack(ChainArrays, task[OWN])
    arrays = unpack(Advance, addresses)
    # Unless the chain is one-hot, the observations are the states themselves.
    states, one_hot, vectors = chain.states, chain.settings[ONE_HOT] != 0, arrays.observations.view(np.float32)
    first, last = range_of(share, shares, arrays.actions.size)
    if moving:
        if one_hot:
            for lane in range(first, last):
                vectors[lane, states[lane]] = 0
        step_lanes(first, last, arrays.actions, arrays.resting, outcomes, chain)
        if one_hot:
            for lane in range(first, last):
                vectors[lane, states[lane]] = 1
    for lane in range(first, last):
        if end_episode(lane, moving, beginning, arrays, outcomes):
            if one_hot:
                vectors[lane, states[lane]] = 0
                vectors[lane, 0] = 1
            states[lane] = 0
            chain.steps[lane] = 0


@threaded
def advance_lanes(shares: int, moving: bool, beginning: bool, addresses: Addresses, task: Table) -> None:
    """Advance all lanes, in shares for the threads (see `Lanes.advance`)."""
    for share in prange(shares):
        advance_share(share, shares, moving, beginning, addresses, task)
