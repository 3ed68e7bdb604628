"""Episodes of many runs at once, each run's the same as if it were evaluated alone (see `rollouts.play`).

        episode 0   episode 1   ...
lane 0  ..........  ....                  every environment plays one episode;
lane 1  ...         ...........           those that have come to its end rest until all have
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backsweep.agent.session.evaluation.rollouts import FleetValues, Rollouts
from backsweep.tasks.fleet import FleetEnvironments


def play_fleet(
    envs: FleetEnvironments,
    values: FleetValues,
    lanes: Sequence[int],
    random_chance: float,
    discount: float,
    generators: Sequence[np.random.Generator],
) -> list[Rollouts]:
    """Play as many episodes for each lane as there are environments for it; lane by lane they stand in `envs`."""
    shape = (len(lanes), envs.num_envs // len(lanes))
    returns, discounted, start_values = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    lengths, best = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    terminated, playing = np.zeros(shape, np.bool_), np.ones(shape, np.bool_)
    units = np.zeros((shape[0], 2, shape[1]))
    weight, begun = 1.0, False
    envs.reset()
    while (active := np.flatnonzero(playing.any(axis=1))).size:
        rows = _unfinished_first(playing[active])
        q = values([lanes[place] for place in active.tolist()], _seen(envs.observations, shape, active, rows))
        if not begun:
            start_values[:], begun = q.max(axis=2), True
        best[active[:, None], rows] = q.argmax(axis=2)
        for place in active.tolist():
            generators[place].random(out=units[place])
        actions = np.where(units[:, 0] >= random_chance, best, (units[:, 1] * envs.num_actions).astype(np.int64))
        envs.step(actions.reshape(-1), ~playing.reshape(-1), go_on=False)
        paid = np.where(playing, envs.rewards.reshape(shape), 0.0)
        returns += paid
        discounted += weight * paid
        lengths += playing
        terminated |= playing & envs.terminated.reshape(shape)
        playing &= ~envs.ended.reshape(shape)
        weight *= discount
    columns = zip(returns, discounted, lengths, terminated, start_values, strict=True)
    return [Rollouts(*row) for row in columns]


def _unfinished_first(playing: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the numbers of each lane's unfinished episodes, filled up with finished ones to the same length."""
    most = int(playing.sum(axis=1).max())
    if most == playing.shape[1]:
        return np.broadcast_to(np.arange(most), playing.shape)
    return np.argsort(~playing, axis=1, kind="stable")[:, :most]


def _seen(
    observations: NDArray[Any], shape: tuple[int, int], active: NDArray[np.int64], rows: NDArray[np.int64]
) -> NDArray[Any]:
    """Return the observations (lanes, rows, ...) of the active lanes' rows; without a copy while all are wanted."""
    if rows.shape == shape:
        return observations.reshape(*shape, *observations.shape[1:])
    taken: NDArray[Any] = np.take(observations, active[:, None] * shape[1] + rows, axis=0)
    return taken
