"""A learner's acts and updates with the interface of `RecordedLearner`, computed at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backsweep.agent.learner.double_dqn import Learner
from backsweep.types import Batch


class DirectLearner:
    """The acts, updates and target copies of a learner; every request is answered when it returns."""

    done = True

    def __init__(self, learner: Learner) -> None:
        self._learner = learner
        self._best = np.empty((0, 0), np.int64)
        self._td_errors: NDArray[np.floating] = np.empty((0, 0))

    def wait(self) -> None:
        """Nothing is pending."""

    def request_actions(self, observations: NDArray[Any]) -> None:
        """Compute the best actions for observations (runs, envs, ...)."""
        self._best = self._learner.greedy(observations)

    def best_actions(self) -> NDArray[np.int64]:
        """Return the requested actions (runs, envs)."""
        return self._best

    def request_update(
        self,
        batches: Sequence[Batch],
        known: NDArray[np.float64] | None = None,
        tried: NDArray[np.float64] | None = None,
    ) -> None:
        """Take one gradient step on one batch per run; the arguments are those of `Learner.update`."""
        self._td_errors = self._learner.update(batches, known, tried).td_error

    def td_errors(self) -> NDArray[np.floating]:
        """Return the TD errors (runs, batch) of the requested update, in the tasks' units."""
        return self._td_errors

    def copy_target(self) -> None:
        """Copy the target networks."""
        self._learner.copy_target()
