"""Plain environments in groups that alternate, as on a GPU: every run is that run alone."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from backsweep.agent import RunConfig, run_config, train_fleet
from backsweep.agent.fleet import plain_engine
from backsweep.agent.fleet.fleet import Fleet
from backsweep.agent.fleet.loop import Clock
from backsweep.agent.fleet.plain_engine import PlainEngine, retire
from backsweep.agent.fleet.run import Run
from backsweep.agent.learner.executor import Executor
from trainer_helpers import check_same_records

METHODS = ("graph", "uer", "per", "ebu", "n-step")


def configs(**options: Any) -> list[RunConfig]:
    shared: dict[str, Any] = {
        "steps": 400,
        "warmup_steps": 64,
        "dtype": "float64",
        "capacity": 1_000,
        "diffusion": 0.5,
        **options,
    }
    return [run_config(env="CartPole-v1", method=name, seed=seed, **shared) for seed, name in enumerate(METHODS)]


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Acts and updates are recorded programs, here on the CPU, and the device is done with this group or that one."""
    whims = np.random.default_rng(0)
    monkeypatch.setattr(plain_engine, "records_programs", lambda device, config: True)
    monkeypatch.setattr(Executor, "done", property(lambda executor: whims.random() < 0.3))


def trained(runs: list[RunConfig]) -> Fleet:
    fleet = Fleet(runs)
    engine = PlainEngine(fleet)
    while fleet.step < runs[0].steps:
        engine.advance(min(engine.most_steps, runs[0].steps - fleet.step), Clock())
        assert engine.failures() == []
        if fleet.step == 200:
            fleet.drop([1])
            engine = PlainEngine(fleet)
    return fleet


@pytest.mark.parametrize("ratio", [0.25, 2.0])
def test_groups_learn_what_runs_in_turn_learn(ratio: float, request: pytest.FixtureRequest) -> None:
    alone = trained(configs(ratio=ratio))
    request.getfixturevalue("recorded")
    together = trained(configs(ratio=ratio))
    assert len(PlainEngine(together)._sources) == plain_engine.GROUPS
    assert together.learner.updates == alone.learner.updates > 50
    np.testing.assert_allclose(together.learner.online, alone.learner.online, rtol=1e-7, atol=1e-9)
    for run, other in zip(together.runs, alone.runs, strict=True):
        assert len(run.replay) == len(other.replay) == 400
        np.testing.assert_array_equal(run.observations, other.observations)  # so all actions were the same
        np.testing.assert_array_equal(run.replay.sample(32).row, other.replay.sample(32).row)


@pytest.mark.parametrize("broken", [(1,), (0, 1), (0, 1, 2, 3)])
def test_runs_that_fail_do_not_change_the_others(
    broken: tuple[int, ...], recorded: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = Run.step

    def step(self: Run, actions: np.ndarray, clock: Clock) -> None:
        if self.config.seed in broken and self.episodes == 4:
            raise OSError("the environment broke")
        original(self, actions, clock)

    short: dict[str, Any] = {"evaluation_interval": 200, "evaluation_episodes": 2, "probe_size": 16}
    runs = {f"seed{config.seed}": dataclasses.replace(config, **short) for config in configs()}
    train_fleet(runs, tmp_path / "whole", quiet=True)
    monkeypatch.setattr(Run, "step", step)
    results = {result.folder.name: result for result in train_fleet(runs, tmp_path / "fleet", quiet=True)}
    for seed, (name, result) in enumerate(sorted(results.items())):
        assert result.error == ("the environment broke" if seed in broken else None)
        if seed not in broken:
            check_same_records(tmp_path / "whole" / name, tmp_path / "fleet" / name)


def test_a_failed_run_leaves_its_fleet(recorded: None) -> None:
    fleet = Fleet(configs())
    engine, gone = PlainEngine(fleet), []
    engine.advance(100, Clock())
    fleet.learner.online[3] = float("nan")
    engine.advance(50, Clock())
    ((index, error),) = engine.failures()
    assert index == 3
    retire(fleet, index, error, lambda run, why: gone.append((run.config.seed, str(why))))
    assert gone == [(3, "the TD error is not a number")]
    assert [run.config.seed for run in fleet.runs] == [0, 1, 2, 4]
    PlainEngine(fleet).advance(50, Clock())
    assert fleet.step == 200


def test_values_that_are_not_finite_end_their_run_alone() -> None:
    """Of graph values, which a renewal asks the target network for."""
    fleet = Fleet(configs(target_interval=50))
    engine = PlainEngine(fleet)
    while fleet.step < 120:
        engine.advance(engine.most_steps, Clock())
    fleet.learner.target[0] = float("nan")
    fleet.runs[0].values_due = True
    while not engine.failures():
        engine.advance(engine.most_steps, Clock())
    ((index, error),) = engine.failures()
    assert index == 0
    assert "finite" in str(error)


def test_an_observation_that_cannot_be_explored_from_ends_its_run_alone() -> None:
    fleet = Fleet(configs())
    engine = PlainEngine(fleet)
    engine.advance(10, Clock())
    fleet.runs[0].observations = np.full_like(fleet.runs[0].observations, np.nan)  # "graph" looks it up
    engine.advance(10, Clock())
    ((index, error),) = engine.failures()
    assert index == 0
    assert str(error) == "observation must be finite, got NaN or infinity"
