"""A learner's acts and updates as recorded programs, for observations that come from the host at every step.

Environments of other packages return arrays. `Learner` takes them directly, but on a GPU each of its calls launches
dozens of small kernels, which takes longer than their arithmetic. Here observations are copied to fixed rows on the
device, and an `Executor` computes with these rows: an act and an update are two copies and one launch each. Both are
requested and answered later, so that other environments can step meanwhile.

    rows on the device:    what each run sees now | run 0: observations, successors | run 1: observations, ...
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from backsweep.agent.learner.device_observations import DeviceObservations, RowRange
from backsweep.agent.learner.double_dqn import Learner
from backsweep.agent.learner.executor import Executor
from backsweep.agent.learner.networks import in_network_order
from backsweep.types import Batch


class RecordedLearner:
    """The acts, updates and target copies of a learner whose runs have one environment each.

    Requests are carried out in order. Make one only when the last one of its kind is answered: its arrays are reused.
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

    @property
    def done(self) -> bool:
        """Whether all requests are answered."""
        return self._executor.done

    def wait(self) -> None:
        """Wait until all requests are answered."""
        self._executor.wait()

    def request_actions(self, observations: NDArray[Any]) -> None:
        """Request the best actions for observations (runs, 1, ...)."""
        self._seen.host[:] = observations[:, 0]
        self._executor.send(self._seen)
        self._executor.act()

    def best_actions(self) -> NDArray[np.int64]:
        """Return the requested actions (runs, 1)."""
        return self._executor.best[:, None].copy()

    def request_update(
        self,
        batches: Sequence[Batch],
        known: NDArray[np.float64] | None = None,
        tried: NDArray[np.float64] | None = None,
    ) -> None:
        """Request one gradient step on one batch per run; the arguments are those of `Learner.update`."""
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

    def td_errors(self) -> NDArray[np.floating]:
        """Return the TD errors (runs, batch) of the requested update, in the tasks' units."""
        executor = self._executor
        errors: NDArray[np.floating] = executor.td_error / executor.scales[:, None].astype(executor.td_error.dtype)
        return errors

    def copy_target(self) -> None:
        """Copy the target networks, before whatever comes later here."""
        self._executor.copy_target()
