"""Exact scores of a network on tasks whose states can be enumerated."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backsweep.agent.config import RunConfig
from backsweep.agent.defaults import task_options
from backsweep.agent.session.evaluation.rollouts import FleetValues
from backsweep.jit.compilation import threads_in_use
from backsweep.tasks import ExactTask, exact

BATCH = 1024


@dataclass(frozen=True)
class ExactScores:
    """The expected return of a greedy policy, and the error of its values against Q*."""

    mean_return: float
    normalised: float
    success: float
    value_error: float
    """Mean over all states and actions of |Q - Q*|."""


class ExactEvaluator:
    """All states of a task and their Q*."""

    def __init__(self, task: ExactTask, discount: float) -> None:
        self._task = task
        self._best = task.optimal_values(discount)

    def scores(self, values: FleetValues, runs: Sequence[int], random_chance: float = 0.0) -> list[ExactScores]:
        """Return the scores of several runs' policies, which are evaluated together on all states.

        Threads draw the states and evaluate the policies without the interpreter lock.
        """
        tables: list[NDArray[np.floating]] = []
        with ThreadPoolExecutor(threads_in_use()) as pool:
            for states, observations in self._batches_ahead(pool, 2 * threads_in_use()):
                found = values(runs, np.broadcast_to(observations, (len(runs), *observations.shape)))
                if not tables:
                    tables = [np.empty(self._best.shape, found.dtype) for _ in runs]
                for table, rows in zip(tables, found, strict=True):
                    table[states] = rows
            return list(pool.map(lambda table: self._scores_of(table.astype(np.float64), random_chance), tables))

    def _batches_ahead(self, pool: ThreadPoolExecutor, ahead: int) -> Iterator[tuple[NDArray[np.int64], NDArray[Any]]]:
        """Yield (states, observations) as `ExactTask.batches` does, while threads draw the next few."""
        waiting: deque[tuple[NDArray[np.int64], Future[NDArray[Any]]]] = deque()
        for first in range(0, self._task.num_states, BATCH):
            states = np.arange(first, min(first + BATCH, self._task.num_states))
            waiting.append((states, pool.submit(self._task.observations, states)))
            if len(waiting) > ahead:
                shown, painting = waiting.popleft()
                yield shown, painting.result()
        for shown, painting in waiting:
            yield shown, painting.result()

    def _scores_of(self, q: NDArray[np.float64], random_chance: float) -> ExactScores:
        outcome = self._task.expected_return(q, random_chance)
        error = float(np.abs(q - self._best).mean())
        return ExactScores(outcome.mean_return, outcome.normalised, outcome.success, error)


def exact_evaluator(config: RunConfig) -> ExactEvaluator:
    """Return the evaluator of a run's task; runs on the same task share one."""
    assert config.task is not None
    return _shared(config.task, tuple(sorted(task_options(config).items())), config.discount)


@lru_cache(maxsize=16)
def _shared(task: str, options: tuple[tuple[str, Any], ...], discount: float) -> ExactEvaluator:
    return ExactEvaluator(exact(task, **dict(options)), discount)
