"""A learner's acts and updates as recorded programs, for observations that come from the host at every step.

Environments of other packages return arrays. `Learner` takes them directly, but on a GPU each of its calls launches
dozens of small kernels, which takes longer than their arithmetic. Here observations are copied to fixed rows on the
device, and an `Executor` computes with these rows: an act and an update are two copies and one launch each.

    rows on the device:    what each run sees now | run 0: observations, successors | run 1: observations, ...
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from backsweep.agent.learner.device_observations import DeviceObservations, RowRange
from backsweep.agent.learner.double_dqn import Learner, UpdateResult
from backsweep.agent.learner.executor import Executor
from backsweep.agent.learner.networks import in_network_order
from backsweep.types import Batch


class RecordedLearner:
    """`greedy`, `update` and `copy_target` of a learner whose runs have one environment each.

    After `Learner.keep` make a new one.

    Parameters
    ----------
    learner
        The learner whose runs act and learn.
    batch_size
        Rows in each run's batch.
    shape, dtype
        Of one observation, as environments return it.
    """

    def __init__(self, learner: Learner, batch_size: int, shape: tuple[int, ...], dtype: DTypeLike) -> None:
        runs = learner.runs
        ordered = in_network_order(learner.network, np.empty((1, *shape), dtype)).shape[1:]
        observations = DeviceObservations(runs * (1 + 2 * batch_size), ordered, dtype, learner.device)
        self._executor = Executor(learner, observations, batch_size)
        self._seen = RowRange(observations, 0, runs, shape)
        self._sampled = RowRange(observations, runs, 2 * runs * batch_size, shape)
        self._executor.current[:] = np.arange(runs)
        self._executor.rows[:] = runs + np.arange(2 * runs * batch_size).reshape(runs, 2, batch_size)
        self._halves = self._sampled.host.reshape(runs, 2, batch_size, *shape)

    def greedy(self, observations: NDArray[Any]) -> NDArray[np.int64]:
        """Return the best actions (runs, 1) for observations (runs, 1, ...)."""
        self._seen.host[:] = observations[:, 0]
        self._executor.send(self._seen)
        self._executor.act()
        self._executor.wait()
        return self._executor.best[:, None].copy()

    def update(
        self,
        batches: Sequence[Batch],
        known: NDArray[np.float64] | None = None,
        tried: NDArray[np.float64] | None = None,
    ) -> UpdateResult:
        """Take one gradient step on one batch per run; arguments and result are those of `Learner.update`."""
        executor = self._executor
        for run, batch in enumerate(batches):
            executor.action[run], executor.reward[run] = batch.action, batch.reward
            executor.discount[run], executor.weight[run] = batch.discount, batch.weight
            self._halves[run, 0] = batch.observation
            self._halves[run, 1] = batch.next_observation
        if executor.known is not None:
            executor.known[:] = np.nan if known is None else known
        if executor.tried is not None:
            executor.tried[:] = np.nan if tried is None else tried
        executor.send(self._sampled)
        executor.update()
        executor.wait()
        return UpdateResult(executor.td_error / executor.scales[:, None].astype(executor.td_error.dtype))

    def copy_target(self) -> None:
        """Copy the target networks, before whatever comes later here."""
        self._executor.copy_target()
