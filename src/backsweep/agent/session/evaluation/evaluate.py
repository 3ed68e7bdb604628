"""Evaluates the runs of a learner."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from backsweep.agent.config import RunConfig
from backsweep.agent.defaults import task_of, task_options
from backsweep.agent.fleet.run import environment_seed, return_bounds, run_environments
from backsweep.agent.learner.double_dqn import Learner
from backsweep.agent.learner.networks import Parameters, network_tensor
from backsweep.agent.session.evaluation.exact_values import ExactScores, exact_evaluator
from backsweep.agent.session.evaluation.rollouts import ActionValues, FleetValues, Rollouts, play
from backsweep.agent.session.records import EvaluationRecord
from backsweep.jit.random_streams import named_generator
from backsweep.tasks import normalised_return
from backsweep.tasks.environments import Environments, make_environments
from backsweep.tasks.fleet import FleetEnvironments
from backsweep.tasks.lane_seeds import lane_seeds

STRIDE = 7  # steps between two probe states: neighbours are almost equal


def probe_states(envs: Environments, size: int) -> NDArray[Any]:
    """Return `size` observations from random play; they depend only on the environments and their seed."""
    generator = named_generator(0, "probe")
    observations, taken, count, step = envs.reset(), [], 0, 0
    while count < size:
        if step % STRIDE == 0:
            taken.append(observations.copy())
            count += len(observations)
        actions = generator.integers(envs.num_actions, size=envs.num_envs)
        observations = envs.step(actions).observations
        step += 1
    return np.concatenate(taken)[:size]


PIECE_BYTES = {"cpu": 1 << 24, "cuda": 1 << 31}
"""Memory for the layers of a chunk. On a CPU small chunks are twice as fast: they stay in the cache, and the
allocator reuses the same memory instead of new pages."""


@torch.no_grad()
def values_of_runs(learner: Learner, runs: Sequence[int], observations: NDArray[Any]) -> NDArray[np.floating]:
    """Return the online values (runs, rows, actions) of some runs for observations (runs, rows, ...), in task units.

    Observations that are the same for all runs (a broadcast first axis) go to the device and through `prepare` once.
    """
    network, rows = learner.network, observations.shape[1]
    shared = observations.strides[0] == 0
    most = PIECE_BYTES.get(learner.device.type, PIECE_BYTES["cpu"])
    room = most // network.bytes_per_row(learner.dtype, fused=False)
    some_rows = max(1, min(rows, room))
    some_runs = max(1, room // some_rows)
    values = np.empty((len(runs), rows, network.actions), torch.empty(0, dtype=learner.dtype).numpy().dtype)
    for row in range(0, rows, some_rows):
        prepared = _prepared(learner, observations[:1, row : row + some_rows]) if shared else None
        for first in range(0, len(runs), some_runs):
            piece = slice(first, min(first + some_runs, len(runs)))
            if prepared is None:
                given = _prepared(learner, observations[piece, row : row + some_rows])
            else:
                given = prepared.expand(piece.stop - piece.start, *prepared.shape[1:])
            found = network.forward(_parameters(learner, runs[piece]), given)
            values[piece, row : row + some_rows] = found.cpu().numpy()
    scale = learner.scales[list(runs)].astype(values.dtype)
    in_units: NDArray[np.floating] = values / scale[:, None, None]
    return in_units


def _prepared(learner: Learner, observations: NDArray[Any]) -> torch.Tensor:
    tensor = network_tensor(learner.network, observations).to(learner.device, non_blocking=True)
    return learner.network.prepare(tensor, learner.dtype)


def _parameters(learner: Learner, runs: Sequence[int]) -> Parameters:
    """Return some runs' parameters, as views if the runs are adjacent, which they mostly are."""
    if list(runs) == list(range(runs[0], runs[0] + len(runs))):
        return learner.network.layout.views(learner.online[runs[0] : runs[0] + len(runs)])
    return learner.network.layout.views(learner.online[torch.tensor(list(runs), device=learner.device)])


MOST_OTHER_ENVIRONMENTS = 10  # environments of other packages may be large
LONGEST_EPISODE = 27_000
"""Steps after which an evaluation's episode is cut in an environment without a time limit, where it might never end:
as many as Atari's usual limit, half an hour."""
PROBE_ENVIRONMENTS = 8
PROBE_SEED = 0


def evaluate(config: RunConfig, values: ActionValues, step: int) -> EvaluationRecord:
    """Evaluate the policy that is greedy in `values`: a fleet of one."""

    def alone(runs: Sequence[int], observations: NDArray[Any]) -> NDArray[np.floating]:
        return values(observations[0])[None]

    return evaluate_fleet([config], alone, step)[0]


def evaluate_fleet(configs: Sequence[RunConfig], values: FleetValues, step: int) -> list[EvaluationRecord]:
    """Evaluate the policies of several runs; `values` takes runs by their index in `configs`.

    Levels and random actions depend only on a run's seed and the step, and are independent of those of training. Runs
    that differ only in seeds and methods are evaluated together, if they are on one of the project's own tasks.
    """
    together: dict[str, list[int]] = {}
    for run, config in enumerate(configs):
        shared = (config.task, task_options(config), config.evaluation_episodes, config.evaluation_random_chance)
        key = json.dumps([*shared, config.discount, config.probe_size], sort_keys=True)
        together.setdefault(key if is_own(config) else f"run {run}", []).append(run)
    records: dict[int, EvaluationRecord] = {}
    for runs in together.values():
        found = _evaluate_together([configs[run] for run in runs], values, runs, step)
        records.update(zip(runs, found, strict=True))
    return [records[run] for run in range(len(configs))]


def _evaluate_together(
    configs: Sequence[RunConfig], values: FleetValues, runs: Sequence[int], step: int
) -> list[EvaluationRecord]:
    """Evaluate runs that are on the same task and differ in their seeds, or a single run."""
    one = configs[0]
    generators = [named_generator(config.seed, "evaluation", str(step)) for config in configs]
    settings = one.evaluation_episodes, one.evaluation_random_chance, one.discount
    envs = _environments(configs, f"evaluation {step}")
    try:
        rollouts = play(envs, values, runs, *settings, generators)
    finally:
        envs.close()
    scores: dict[int, ExactScores] = {}
    if exact := [run for run, config in zip(runs, configs, strict=True) if config.exact]:
        found = exact_evaluator(one).scores(values, exact, one.evaluation_random_chance)
        scores.update(zip(exact, found, strict=True))
    probe = probe_for(one)
    probe_q = values(runs, np.broadcast_to(probe, (len(runs), *probe.shape)))
    return [
        _record(config, step, played, seen, scores.get(run))
        for config, run, played, seen in zip(configs, runs, rollouts, probe_q, strict=True)
    ]


def _environments(configs: Sequence[RunConfig], purpose: str) -> Environments | FleetEnvironments:
    """Return environments for the runs' episodes: one for each, or a few if they may be large."""
    one = configs[0]
    if not is_own(one):
        count = min(one.evaluation_episodes, MOST_OTHER_ENVIRONMENTS)
        return run_environments(one, purpose, count, longest=LONGEST_EPISODE)
    assert one.task is not None
    roots = [environment_seed(config, purpose) for config in configs]
    seeds = [seed for root in roots for seed in lane_seeds(root, one.evaluation_episodes)]
    return FleetEnvironments(one.task, task_options(one), seeds)


def _record(
    config: RunConfig, step: int, rollouts: Rollouts, probe_q: NDArray[np.floating], scores: ExactScores | None
) -> EvaluationRecord:
    """Return the record of an evaluation; `probe_q` are the values (states, actions) of the probe's states."""
    bounds = return_bounds(config)
    mean = float(rollouts.returns.mean())
    record: dict[str, Any] = {}
    if scores is not None:
        record = {
            "exact_return": scores.mean_return,
            "exact_normalised": scores.normalised,
            "exact_success": scores.success,
            "value_error": scores.value_error,
        }
    return EvaluationRecord(
        step=step,
        episodes=len(rollouts.returns),
        mean_return=mean,
        median_return=float(np.median(rollouts.returns)),
        lowest_return=float(rollouts.returns.min()),
        highest_return=float(rollouts.returns.max()),
        normalised_return=None if bounds is None else normalised_return(mean, bounds),
        terminated=float(rollouts.terminated.mean()),
        mean_length=float(rollouts.lengths.mean()),
        start_value=float(rollouts.start_values.mean()),
        discounted_return=float(rollouts.discounted.mean()),
        probe_q=float(probe_q.max(axis=1).mean()),
        **record,
    )


class EvaluationStopped(Exception):  # noqa: N818
    """An evaluation was given up because the session is to stop."""


def evaluate_runs(
    configs: Sequence[RunConfig],
    learner: Learner,
    runs: Sequence[int],
    step: int,
    stops: Callable[[], bool] = lambda: False,
) -> list[EvaluationRecord]:
    """Evaluate some runs of a learner; `configs` are theirs.

    `stops` is asked before every step: once it says so, the evaluation ends with EvaluationStopped.
    """

    def values(places: Sequence[int], observations: NDArray[Any]) -> NDArray[np.floating]:
        if stops():
            raise EvaluationStopped
        return values_of_runs(learner, [runs[place] for place in places], observations)

    return evaluate_fleet(configs, values, step)


def is_own(config: RunConfig) -> bool:
    """Return whether a run is on one of the project's own tasks, of which hundreds of copies are cheap."""
    task = task_of(config)
    return task is not None and task.is_own


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
