"""Sweeps over the arrays of an MDP.

    next_state[s, a]   where action a leads from s; states from `num_states` on are terminal and have no row
    reward[s, a]       what it pays
    values[s]          one entry per state, terminal ones included: theirs stay 0

A chosen action is replaced by a uniformly random one with a chance, so its worth is a blend:

    worth(s, a) = (1 - chance) * direct(s, a) + chance * mean over b of direct(s, b)
    direct(s, a) = reward[s, a] + discount * values[next_state[s, a]]
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from backsweep.compilation import kernel


@kernel
def sweep_best(
    next_state: NDArray[np.int32],
    reward: NDArray[np.float64],
    discount: float,
    random_chance: float,
    values: NDArray[np.float64],
) -> float:
    """Set every value to that of the best action, in place; return the largest change."""
    num_states, num_actions = next_state.shape
    largest = 0.0
    for state in range(num_states):
        best = -np.inf
        total = 0.0
        for action in range(num_actions):
            direct = reward[state, action] + discount * values[next_state[state, action]]
            total += direct
            best = max(best, direct)
        worth = best
        if random_chance > 0.0:
            worth = (1.0 - random_chance) * best + random_chance * total / num_actions
        largest = max(largest, abs(worth - values[state]))
        values[state] = worth
    return largest


@kernel
def sweep_policy(
    next_state: NDArray[np.int32],
    reward: NDArray[np.float64],
    policy: NDArray[np.int64],
    discount: float,
    random_chance: float,
    values: NDArray[np.float64],
) -> float:
    """Set every value to that of the policy's action, in place; return the largest change."""
    num_states, num_actions = next_state.shape
    largest = 0.0
    for state in range(num_states):
        action = policy[state]
        worth = reward[state, action] + discount * values[next_state[state, action]]
        if random_chance > 0.0:
            total = 0.0
            for other in range(num_actions):
                total += reward[state, other] + discount * values[next_state[state, other]]
            worth = (1.0 - random_chance) * worth + random_chance * total / num_actions
        largest = max(largest, abs(worth - values[state]))
        values[state] = worth
    return largest


@kernel
def action_values(
    next_state: NDArray[np.int32],
    reward: NDArray[np.float64],
    discount: float,
    random_chance: float,
    values: NDArray[np.float64],
    result: NDArray[np.float64],
) -> None:
    """Write worth(s, a) for every state and action."""
    num_states, num_actions = next_state.shape
    for state in range(num_states):
        total = 0.0
        for action in range(num_actions):
            result[state, action] = reward[state, action] + discount * values[next_state[state, action]]
            total += result[state, action]
        for action in range(num_actions):
            if random_chance > 0.0:
                result[state, action] = (1.0 - random_chance) * result[state, action]
                result[state, action] += random_chance * total / num_actions


@kernel
def run_policy(
    next_state: NDArray[np.int32],
    reward: NDArray[np.float64],
    succeeded: NDArray[np.bool_],
    policy: NDArray[np.int64],
    random_chance: float,
    max_steps: int,
    weights: NDArray[np.float64],
    arriving: NDArray[np.float64],
) -> tuple[float, float, float]:
    """Follow the probability of being in each state for `max_steps` steps.

        weights    probability of each state before the step, terminal states included
        arriving   the same after it; scratch of the same size

    Returns the expected sum of rewards, the probability of having ended with success, and that of having ended.
    """
    num_states, num_actions = next_state.shape
    total, success, ended = 0.0, 0.0, 0.0
    for _ in range(max_steps):
        arriving[:] = 0.0
        for state in range(num_states):
            weight = weights[state]
            if weight == 0.0:
                continue
            for action in range(num_actions):
                share = weight * random_chance / num_actions
                if action == policy[state]:
                    share += weight * (1.0 - random_chance)
                if share > 0.0:
                    target = next_state[state, action]
                    total += share * reward[state, action]
                    if target >= num_states:
                        ended += share
                        if succeeded[state, action]:
                            success += share
                    else:
                        arriving[target] += share
        weights[:] = arriving
    return total, success, ended
