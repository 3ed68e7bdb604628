"""Episodes played by a greedy policy with a few random actions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backsweep.tasks.resumable import Environments

ActionValues = Callable[[NDArray[Any]], NDArray[np.floating]]
"""From observations (rows, ...) to values (rows, actions)."""
FleetValues = Callable[[Sequence[int], NDArray[Any]], NDArray[np.floating]]
"""From the numbers of several lanes and observations (lanes, rows, ...) to values (lanes, rows, actions).

Where all lanes are shown the same, the first axis of the observations is a broadcast one (its stride is 0).
"""


@dataclass(frozen=True)
class Rollouts:
    """What came of each episode, (episodes,)."""

    returns: NDArray[np.float64]
    discounted: NDArray[np.float64]
    lengths: NDArray[np.int64]
    terminated: NDArray[np.bool_]
    start_values: NDArray[np.float64]
    """max Q at the first state."""


def play(
    envs: Environments,
    values: ActionValues,
    episodes: int,
    random_chance: float,
    discount: float,
    generator: np.random.Generator,
) -> Rollouts:
    """Play `episodes` episodes.

    Environment i plays the episodes i, i + n, i + 2n and so on, all of them to their end: taking whichever ends first
    would favour short episodes.
    """
    result = Rollouts(
        np.zeros(episodes),
        np.zeros(episodes),
        np.zeros(episodes, np.int64),
        np.zeros(episodes, np.bool_),
        np.zeros(episodes),
    )
    current = np.arange(envs.num_envs)
    fresh = np.ones(envs.num_envs, np.bool_)
    weight = np.ones(envs.num_envs)
    observations = envs.reset()
    while (playing := np.flatnonzero(current < episodes)).size:
        q = values(observations[playing])
        beginning = fresh[playing]
        result.start_values[current[playing[beginning]]] = q[beginning].max(axis=1)
        units = generator.random((2, envs.num_envs))
        actions = (units[1] * envs.num_actions).astype(np.int64)
        greedy = units[0, playing] >= random_chance
        actions[playing[greedy]] = q[greedy].argmax(axis=1)
        outcome = envs.step(actions)
        episode = current[playing]
        result.returns[episode] += outcome.rewards[playing]
        result.discounted[episode] += weight[playing] * outcome.rewards[playing]
        result.lengths[episode] += 1
        result.terminated[episode] = outcome.terminated[playing]
        fresh = outcome.terminated | outcome.truncated
        weight = np.where(fresh, 1.0, weight * discount)
        current = np.where(fresh, current + envs.num_envs, current)
        observations = outcome.observations
    return result
