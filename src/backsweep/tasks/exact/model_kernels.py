"""Sweeps over the arrays of an MDP.

    next_state[s, a]   where action a leads from s; states from `num_states` on are terminal and have no row
    reward[s, a]       its reward
    values[s]          one entry per state, terminal ones included: theirs stay 0

A chosen action is replaced by a uniformly random one with some probability (chance):

    worth(s, a) = (1 - chance) * direct(s, a) + chance * mean over b of direct(s, b)
    direct(s, a) = reward[s, a] + discount * values[next_state[s, a]]
"""

# In compiled code Python's numbers and numpy's are one and the same.
# mypy: disable-error-code="no-any-return,arg-type,assignment,return-value"

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from backsweep.jit.array_table import Addresses, Float64Matrix, Int32Matrix, unpack
from backsweep.jit.compilation import inlined, kernel


class Moves(NamedTuple):
    """Where each action leads from each state, and its reward."""

    next_state: Int32Matrix
    reward: Float64Matrix


@inlined
def direct_value(state: int, action: int, discount: float, moves: Moves, values: NDArray[np.float64]) -> float:
    """Return direct(s, a)."""
    return moves.reward[state, action] + discount * values[moves.next_state[state, action]]


@kernel
def sweep(
    policy: NDArray[np.int64], discount: float, chance: float, addresses: Addresses, values: NDArray[np.float64]
) -> float:
    """Set every value to that of the policy's action, in place; return the largest change.

    An empty policy takes the best action everywhere.
    """
    moves = unpack(Moves, addresses)
    num_states, num_actions = moves.next_state.shape
    largest, is_free = 0.0, policy.size == 0
    for state in range(num_states):
        worth, total = -np.inf, 0.0
        for action in range(num_actions):
            direct = direct_value(state, action, discount, moves, values)
            total += direct
            if is_free or policy[state] == action:
                worth = max(worth, direct)
        if chance > 0.0:
            worth = (1.0 - chance) * worth + chance * total / num_actions
        largest = max(largest, abs(worth - values[state]))
        values[state] = worth
    return largest


@kernel
def action_values(
    discount: float, chance: float, addresses: Addresses, values: NDArray[np.float64], result: NDArray[np.float64]
) -> None:
    """Write worth(s, a) for every state and action."""
    moves = unpack(Moves, addresses)
    num_states, num_actions = moves.next_state.shape
    for state in range(num_states):
        total = 0.0
        for action in range(num_actions):
            result[state, action] = direct_value(state, action, discount, moves, values)
            total += result[state, action]
        for action in range(num_actions):
            if chance > 0.0:
                result[state, action] = (1.0 - chance) * result[state, action]
                result[state, action] += chance * total / num_actions


@kernel
def is_first_way(next_state: NDArray[np.int32], state: int, action: int) -> bool:
    """Return whether no earlier action leads from a state to the same successor."""
    for earlier in range(action):
        if next_state[state, earlier] == next_state[state, action]:
            return False
    return True


@kernel
def count_ways_in(next_state: NDArray[np.int32], count: NDArray[np.int64]) -> None:
    """Count the ways into each state: the states with at least one action that leads there."""
    num_states, num_actions = next_state.shape
    for state in range(num_states):
        for action in range(num_actions):
            target = next_state[state, action]
            if target < num_states and is_first_way(next_state, state, action):
                count[target] += 1


@kernel
def list_ways_in(next_state: NDArray[np.int32], source: NDArray[np.int32], actions: NDArray[np.int32]) -> None:
    """List the ways into each state: their source, and how many of its actions lead there. Rows are padded with 0.

    state   source        actions
    0       0  1  5  7    4  1  1  1
    1       0  6  0  0    1  1  0  0
    """
    num_states, num_actions = next_state.shape
    found = np.zeros(num_states, dtype=np.int64)
    for state in range(num_states):
        for action in range(num_actions):
            target = next_state[state, action]
            if target < num_states and is_first_way(next_state, state, action):
                way = found[target]
                source[target, way] = state
                for other in range(action, num_actions):
                    if next_state[state, other] == target:
                        actions[target, way] += 1
                found[target] += 1


@kernel
def run_policy(
    addresses: Addresses,
    succeeded: NDArray[np.bool_],
    source: NDArray[np.int32],
    actions: NDArray[np.int32],
    policy: NDArray[np.int64],
    random_chance: float,
    max_steps: int,
    weights: NDArray[np.float64],
) -> tuple[float, float, float]:
    """Follow the probability of being in each state for `max_steps` steps; `weights` holds it before the first.

    Each step is a sum over the ways into every state (see `list_ways_in`), with precomputed probabilities, because
    almost all time is spent there. Rewards follow from how often each state is visited.

    Returns the expected sum of rewards, the probability of having ended with success, and that of having ended.
    """
    next_state, reward = unpack(Moves, addresses)
    num_states, num_actions = next_state.shape
    each = random_chance / num_actions
    num_ways = source.shape[1]
    share = np.zeros((num_states, num_ways))
    for state in range(num_states):
        for way in range(num_ways):
            before = source[state, way]
            share[state, way] = each * actions[state, way]
            if actions[state, way] > 0 and next_state[before, policy[before]] == state:
                share[state, way] += 1.0 - random_chance
    visits = np.zeros(num_states)
    arriving = np.zeros(num_states)
    for _ in range(max_steps):
        for state in range(num_states):
            visits[state] += weights[state]
            weight = 0.0
            for way in range(num_ways):
                weight += share[state, way] * weights[source[state, way]]
            arriving[state] = weight
        weights, arriving = arriving, weights
    total, success, ended = 0.0, 0.0, 0.0
    for state in range(num_states):
        for action in range(num_actions):
            often = visits[state] * each
            if action == policy[state]:
                often += visits[state] * (1.0 - random_chance)
            total += often * reward[state, action]
            if next_state[state, action] >= num_states:
                ended += often
                if succeeded[state, action]:
                    success += often
    return total, success, ended
