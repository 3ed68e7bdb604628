"""From a learner's lane to an evaluation record."""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backsweep.envs import normalised_return
from backsweep.envs.resumable import make_environments
from backsweep.evaluation import exact_evaluator, play, probe_states
from backsweep.evaluation.rollouts import ActionValues
from backsweep.learner.double_dqn import Learner
from backsweep.records.rows import EvaluationRecord
from backsweep.seeding import named_generator
from backsweep.trainer.config import RunConfig
from backsweep.trainer.defaults import task_of, task_options
from backsweep.trainer.lane import lane_environments

MOST_OTHER_ENVIRONMENTS = 10  # of other packages' environments, which may be large
PROBE_ENVIRONMENTS = 8
PROBE_SEED = 0


def evaluate(config: RunConfig, values: ActionValues, step: int, *, episodes: int | None = None) -> EvaluationRecord:
    """Return how good the policy is that is greedy in `values`.

    Levels and random actions depend on the run's seed and the step alone, and share nothing with those of training.
    """
    count = config.evaluation_episodes if episodes is None else episodes
    num_envs = count if is_own(config) else min(count, MOST_OTHER_ENVIRONMENTS)
    envs = lane_environments(config, f"evaluation {step}", num_envs)
    try:
        generator = named_generator(config.seed, "evaluation", str(step))
        rollouts = play(envs, values, count, config.evaluation_random_chance, config.discount, generator)
    finally:
        envs.close()
    bounds = return_bounds(config)
    mean = float(rollouts.returns.mean())
    record: dict[str, Any] = {}
    if config.exact:
        assert config.task is not None
        exact = exact_evaluator(config.task, task_options(config), config.discount)
        scores = exact.scores(values, config.evaluation_random_chance)
        record = {
            "exact_return": scores.mean_return,
            "exact_normalised": scores.normalised,
            "exact_success": scores.success,
            "value_error": scores.value_error,
        }
    return EvaluationRecord(
        step=step,
        episodes=count,
        mean_return=mean,
        median_return=float(np.median(rollouts.returns)),
        lowest_return=float(rollouts.returns.min()),
        highest_return=float(rollouts.returns.max()),
        normalised_return=None if bounds is None else normalised_return(mean, bounds),
        terminated=float(rollouts.terminated.mean()),
        mean_length=float(rollouts.lengths.mean()),
        start_value=float(rollouts.start_values.mean()),
        discounted_return=float(rollouts.discounted.mean()),
        probe_q=float(values(probe_for(config)).max(axis=1).mean()),
        **record,
    )


def evaluate_lane(config: RunConfig, learner: Learner, lane: int, step: int) -> EvaluationRecord:
    """Return how good one lane of a learner is."""
    return evaluate(config, partial(learner.values, lane), step)


def is_own(config: RunConfig) -> bool:
    """Say whether a run is on one of the project's own tasks, of which hundreds of copies cost next to nothing."""
    task = task_of(config)
    return task is not None and task.family not in ("atari", "lunarlander")


def return_bounds(config: RunConfig) -> tuple[float, float] | None:
    """Return the worst and best return of an episode, None where they are not known."""
    task = task_of(config)
    if task is None:
        return None
    bounds: tuple[float, float] | None = task.options(**task_options(config)).return_bounds
    return bounds


def probe_for(config: RunConfig) -> NDArray[Any]:
    """Return the fixed states of a task: the same for all methods and seeds."""
    options = tuple(sorted(task_options(config).items()))
    return _probe(config.task, config.env, options, config.probe_size)


@lru_cache(maxsize=16)
def _probe(task: str | None, env: str | None, options: tuple[tuple[str, Any], ...], size: int) -> NDArray[Any]:
    envs = make_environments(task, env, PROBE_ENVIRONMENTS, PROBE_SEED, dict(options))
    try:
        return probe_states(envs, size)
    finally:
        envs.close()
