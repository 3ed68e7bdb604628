"""NChain's moves, and its lanes advanced by several threads.

state   0 ──> 1 ──> 2 ──> ... ──> N-1     forward; entering N-1 has reward 1 and ends the episode
        0 <── 1 <── 2 <── ...             backward; at 0 it has no effect
"""

# In compiled code Python's numbers and numpy's are one and the same.
# mypy: disable-error-code="no-any-return,arg-type,assignment,return-value"

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import prange
from numpy.typing import NDArray

from backsweep.jit.array_table import Addresses, Float64Vector, Int64Vector, Table, borrow, unpack, viewed
from backsweep.jit.compilation import kernel, threaded
from backsweep.tasks.lanes_kernels import OUTCOMES, OWN, Advance, Outcomes, end_episode, range_of, taken_action

FORWARD, BACKWARD, NUM_ACTIONS = range(3)
# Settings of a chain.
LENGTH = 0
MAX_STEPS = 1
ONE_HOT = 2  # whether observations are one-hot vectors rather than the states


class ChainArrays(NamedTuple):
    """The state of every lane."""

    settings: Int64Vector
    chance: Float64Vector
    """Of a random action."""
    states: Int64Vector
    steps: Int64Vector


@kernel
def next_state(state: int, action: int, length: int) -> int:
    """Return the state that `action` leads to."""
    if action == FORWARD:
        return min(state + 1, length - 1)
    return max(state - 1, 0)


@kernel
def step_lanes(
    first: int,
    last: int,
    actions: NDArray[np.int64],
    resting: NDArray[np.bool_],
    outcomes: Outcomes,
    chain: ChainArrays,
) -> None:
    """Move every lane of first..last-1 that is not resting."""
    states, steps = chain.states, chain.steps
    length, max_steps, chance = chain.settings[LENGTH], chain.settings[MAX_STEPS], chain.chance[0]
    for lane in range(first, last):
        if resting[lane]:
            continue
        action = taken_action(lane, actions[lane], chance, NUM_ACTIONS, outcomes.streams)
        states[lane] = next_state(states[lane], action, length)
        steps[lane] += 1
        outcomes.terminated[lane] = states[lane] == length - 1
        outcomes.truncated[lane] = steps[lane] >= max_steps
        outcomes.rewards[lane] = 1.0 if outcomes.terminated[lane] else 0.0


@kernel
def move_lanes(actions: NDArray[np.int64], resting: NDArray[np.bool_], task: Table) -> None:
    """Move every lane that is not resting."""
    outcomes, chain = unpack(Outcomes, task[OUTCOMES]), unpack(ChainArrays, task[OWN])
    step_lanes(0, actions.size, borrow(actions), borrow(resting), outcomes, chain)


@kernel
def begin_episodes(chosen: NDArray[np.bool_], task: Table) -> None:
    """Put the chosen lanes back to state 0."""
    chain = unpack(ChainArrays, task[OWN])
    for lane in range(chosen.size):
        if chosen[lane]:
            chain.states[lane] = 0
            chain.steps[lane] = 0


@kernel
def advance_share(share: int, shares: int, moving: bool, beginning: bool, addresses: Addresses, task: Table) -> None:
    """Advance one share of the lanes."""
    outcomes, chain = unpack(Outcomes, task[OUTCOMES]), unpack(ChainArrays, task[OWN])
    arrays = unpack(Advance, addresses)
    # Unless the chain is one-hot, the observations are the states themselves.
    states, one_hot, vectors = chain.states, chain.settings[ONE_HOT] != 0, viewed(arrays.observations, np.float32)
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
