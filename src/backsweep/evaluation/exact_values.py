"""Exact scores of a network on tasks whose states can all be listed."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backsweep.envs import ExactTask, exact

BATCH = 1024


@dataclass(frozen=True)
class ExactScores:
    """What a greedy policy gets in expectation, and how far its values are from the best ones."""

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

    def scores(self, values: Callable[[NDArray[Any]], NDArray[np.floating]], random_chance: float = 0.0) -> ExactScores:
        """Return the scores of the policy that is greedy in `values`, with some random actions."""
        q = np.empty(self._best.shape)
        for states, observations in self._task.batches(BATCH):
            q[states] = values(observations)
        outcome = self._task.expected_return(q, random_chance)
        error = float(np.abs(q - self._best).mean())
        return ExactScores(outcome.mean_return, outcome.normalised, outcome.success, error)


def exact_evaluator(task: str, options: dict[str, Any], discount: float) -> ExactEvaluator:
    """Return the evaluator of a task; runs on the same task share one."""
    return _shared(task, json.dumps(options, sort_keys=True), discount)


@lru_cache(maxsize=16)
def _shared(task: str, options: str, discount: float) -> ExactEvaluator:
    return ExactEvaluator(exact(task, **json.loads(options)), discount)
