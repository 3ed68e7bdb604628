"""Evaluations of many runs at once: each record is that of its run alone."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from backsweep.agent import RunConfig
from backsweep.agent.fleet.fleet import Fleet
from backsweep.agent.session.evaluation import evaluate as evaluation
from backsweep.agent.session.evaluation.evaluate import evaluate, evaluate_fleet, evaluate_runs, values_of_runs
from backsweep.agent.session.evaluation.exact_values import ExactEvaluator
from backsweep.agent.session.records import EvaluationRecord
from backsweep.jit.random_streams import named_generator
from backsweep.tasks import exact
from trainer_helpers import paper_config

SMALL_GRID: dict[str, Any] = {
    "convolutions": ((16, 8, 4), (16, 3, 2)),
    "linear": (32,),
    "evaluation_episodes": 12,
    "probe_size": 16,
    "capacity": 50,
    "dtype": "float64",
    "evaluation_random_chance": 0.3,
}


def grid(task: str, seed: int, **options: Any) -> RunConfig:
    return paper_config(task, seed=seed, task_options={"size": 5, "max_steps": 40}, **{**SMALL_GRID, **options})


def made_up_values(run: int, observations: NDArray[Any]) -> NDArray[np.float64]:
    """Return values that depend on the run and on each observation, and on nothing else."""
    table = named_generator(run, "values").normal(size=(509, 6))
    flat = observations.reshape(len(observations), -1).astype(np.int64)
    return table[(flat * np.arange(1, flat.shape[1] + 1)).sum(axis=1) % 509]


class MadeUpValues:
    """Made-up values of several runs, and how many rows were asked for."""

    def __init__(self, actions: int) -> None:
        self.actions = actions
        self.rows: list[int] = []

    def __call__(self, runs: Sequence[int], observations: NDArray[Any]) -> NDArray[np.float64]:
        assert len(runs) == len(observations)
        self.rows.append(len(runs) * observations.shape[1])
        return np.stack([self.alone(run, seen) for run, seen in zip(runs, observations, strict=True)])

    def alone(self, run: int, observations: NDArray[Any]) -> NDArray[np.float64]:
        return made_up_values(run, observations)[:, : self.actions]


@pytest.mark.parametrize(
    "configs",
    [
        [paper_config("nchain-10", seed=seed, evaluation_episodes=7, probe_size=9) for seed in range(3)],
        [grid("minigrid/doorkey", seed) for seed in range(4)],
        # Several tasks, in turns; some with exact scores.
        [
            grid("minigrid/doorkey", 0),
            grid("minigrid/lavacrossing-easy", 1),
            grid("minigrid/doorkey", 2, exact=False),
            grid("minigrid/lavacrossing-easy", 1, discount=0.9),
            grid("minigrid/doorkey", 5, evaluation_episodes=3),
        ],
        [
            paper_config(
                "sokoban/5x5-1", seed=seed, task_options={"max_steps": 20}, evaluation_episodes=6, probe_size=5
            )
            for seed in range(2)
        ],
    ],
    ids=["chain", "grid", "several tasks", "sokoban"],
)
def test_each_record_is_that_of_its_run_alone(configs: list[RunConfig]) -> None:
    assert configs[0].task is not None
    values = MadeUpValues({"nchain": 2, "minigrid": 6, "sokoban": 8}[configs[0].task.split("/")[0].split("-")[0]])
    if values.actions == 8:
        values.actions = 6  # the table has no more columns; two actions are then never the best
    together = evaluate_fleet(configs, values, step=300)
    for run, config in enumerate(configs):
        assert together[run] == evaluate(config, partial(values.alone, run), step=300)
    assert evaluate_fleet(configs, values, step=300) == together
    assert evaluate_fleet(configs, values, step=400) != together


def test_finished_episodes_are_not_looked_at_again() -> None:
    # Steps at random into lava end soon, in one run after another.
    config = grid("minigrid/lavacrossing-easy", 0, exact=False, evaluation_random_chance=1.0)
    values = MadeUpValues(6)
    records = evaluate_fleet([dataclasses.replace(config, seed=seed) for seed in range(3)], values, step=0)
    assert all(record.terminated > 0 for record in records)
    rollouts = values.rows[:-1]  # the last is the probe
    assert rollouts[0] == 36
    assert sorted(rollouts, reverse=True) == rollouts
    assert rollouts[-1] < 36


def test_environments_of_other_packages_are_evaluated_as_ever() -> None:
    config = paper_config(env="CartPole-v1", evaluation_episodes=3, probe_size=8)
    configs = [dataclasses.replace(config, seed=seed) for seed in range(2)]
    values = MadeUpValues(2)
    expected = [evaluate(config, partial(values.alone, run), step=1) for run, config in enumerate(configs)]
    assert evaluate_fleet(configs, values, step=1) == expected


def test_exact_scores_of_several_runs() -> None:
    evaluator = ExactEvaluator(exact("minigrid/doorkey", size=5), 0.99)
    values = MadeUpValues(6)
    together = evaluator.scores(values, [4, 2, 7], 0.05)
    assert together == [evaluator.scores(values, [run], 0.05)[0] for run in (4, 2, 7)]
    assert len({scores.value_error for scores in together}) == 3


def comparable(record: EvaluationRecord) -> dict[str, Any]:
    return {name: value for name, value in dataclasses.asdict(record).items() if value is not None}


@pytest.mark.parametrize("piece", [1 << 30, 1 << 20], ids=["in one piece", "in pieces"])
@pytest.mark.parametrize("runs", [[0, 1, 2, 3], [3, 0, 1]], ids=["all runs", "some runs"])
def test_a_learners_runs(runs: list[int], piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(evaluation.PIECE_BYTES, "cpu", piece)
    fleet = Fleet([grid("minigrid/doorkey", seed) for seed in range(4)])
    configs = [fleet.runs[run].config for run in runs]
    records = evaluate_runs(configs, fleet.learner, runs, step=0)
    for run, config, record in zip(runs, configs, records, strict=True):
        alone = evaluate(config, partial(fleet.learner.values, run), step=0)
        assert comparable(record) == pytest.approx(comparable(alone), rel=1e-9)


@pytest.mark.parametrize("piece", [1 << 30, 1 << 17], ids=["in one piece", "in pieces"])
def test_values_of_runs_are_those_of_each(piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(evaluation.PIECE_BYTES, "cpu", piece)
    generator = np.random.default_rng(0)
    chain = paper_config("nchain-10", seed=1)
    fleets = [
        (Fleet([grid("minigrid/doorkey", seed) for seed in range(3)]), generator.integers(256, size=(2, 5, 40, 40, 3))),
        (Fleet([dataclasses.replace(chain, seed=seed) for seed in range(3)]), generator.integers(9, size=(2, 5))),
    ]
    for fleet, numbers in fleets:
        learner = fleet.learner
        learner.online.normal_()
        observations = numbers.astype(fleet.runs[0].observations.dtype)
        for runs in ([0, 1], [2, 0]):
            for seen in (observations, np.broadcast_to(observations[:1], observations.shape)):
                found = values_of_runs(learner, runs, seen)
                for place, run in enumerate(runs):
                    alone = learner.values(run, seen[place].copy())
                    np.testing.assert_allclose(found[place], alone, rtol=1e-10)
                    assert found.dtype == alone.dtype
