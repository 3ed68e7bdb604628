"""Episodes played by greedy policies with a few random actions: of one run, or of many at once.

        episode 0   episode 1   ...
run 0  ..........  ....                  every environment plays its share of a run's episodes;
run 1  ...         ...........           those that are done rest until all are done
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backsweep.tasks.environments import Environments, ForeignEnvironments
from backsweep.tasks.fleet import FleetEnvironments

ActionValues = Callable[[NDArray[Any]], NDArray[np.floating]]
"""From observations (rows, ...) to values (rows, actions)."""
FleetValues = Callable[[Sequence[int], NDArray[Any]], NDArray[np.floating]]
"""From the numbers of several runs and observations (runs, rows, ...) to values (runs, rows, actions).

If all runs get the same observations, their first axis is broadcast (its stride is 0).
"""


@dataclass(frozen=True)
class Rollouts:
    """The results of each episode, (episodes,)."""

    returns: NDArray[np.float64]
    discounted: NDArray[np.float64]
    lengths: NDArray[np.int64]
    terminated: NDArray[np.bool_]
    start_values: NDArray[np.float64]
    """max Q at the first state."""


def play(
    envs: Environments | FleetEnvironments,
    values: FleetValues,
    runs: Sequence[int],
    episodes: int,
    random_chance: float,
    discount: float,
    generators: Sequence[np.random.Generator],
) -> list[Rollouts]:
    """Play `episodes` episodes for each run; each has as many environments, run by run in `envs`.

    Environment i of a run plays its episodes i, i + n, i + 2n and so on, all to their end: taking whichever ends first
    would favour short episodes. The results of a run do not depend on the others.
    """
    width = envs.num_envs // len(runs)
    shape, results = (len(runs), width), (len(runs), episodes)
    returns, discounted, start_values = np.zeros(results), np.zeros(results), np.zeros(results)
    lengths, terminated = np.zeros(results, np.int64), np.zeros(results, np.bool_)
    best, highest, weight = np.zeros(shape, np.int64), np.zeros(shape), np.ones(shape)
    current, fresh = np.tile(np.arange(width), (len(runs), 1)), np.ones(shape, np.bool_)
    units = np.zeros((len(runs), 2, width))
    observations = envs.reset()
    while (playing := current < episodes).any():
        active = np.flatnonzero(playing.any(axis=1))
        rows = _unfinished_first(playing[active])
        q = values([runs[place] for place in active.tolist()], _seen(observations, shape, active, rows))
        best[active[:, None], rows], highest[active[:, None], rows] = q.argmax(axis=2), q.max(axis=2)
        starting = np.nonzero(playing & fresh)
        start_values[starting[0], current[starting]] = highest[starting]
        for place in active.tolist():
            generators[place].random(out=units[place])
        actions = np.where(units[:, 0] >= random_chance, best, (units[:, 1] * envs.num_actions).astype(np.int64))
        if isinstance(envs, FleetEnvironments):
            outcome = envs.step(actions.reshape(-1), ~playing.reshape(-1), restart=width < episodes)
        elif isinstance(envs, ForeignEnvironments):
            outcome = envs.step(actions.reshape(-1), ~playing.reshape(-1))
        else:
            outcome = envs.step(actions.reshape(-1))
        places = np.nonzero(playing)
        episode, paid = (places[0], current[places]), outcome.rewards.reshape(shape)[places]
        returns[episode] += paid
        discounted[episode] += weight[places] * paid
        lengths[episode] += 1
        terminated[episode] = outcome.terminated.reshape(shape)[places]
        fresh = playing & (outcome.terminated | outcome.truncated).reshape(shape)
        weight = np.where(fresh, 1.0, weight * discount)
        current += width * fresh
        observations = outcome.observations
    columns = zip(returns, discounted, lengths, terminated, start_values, strict=True)
    return [Rollouts(*row) for row in columns]


def _unfinished_first(playing: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the indices of each run's environments that still play, padded with others to the same length."""
    most = int(playing.sum(axis=1).max())
    if most == playing.shape[1]:
        return np.broadcast_to(np.arange(most), playing.shape)
    return np.argsort(~playing, axis=1, kind="stable")[:, :most]


def _seen(
    observations: NDArray[Any], shape: tuple[int, int], active: NDArray[np.int64], rows: NDArray[np.int64]
) -> NDArray[Any]:
    """Return the observations (runs, rows, ...) of the active runs' rows, without a copy if they are all rows."""
    if rows.shape == shape:
        return observations.reshape(*shape, *observations.shape[1:])
    taken: NDArray[Any] = np.take(observations, active[:, None] * shape[1] + rows, axis=0)
    return taken
