"""Nothing leaks between runs: run i of a fleet is that run alone."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from backsweep.agent import RunConfig, RunError, resume, run_config, train, train_fleet
from backsweep.agent.fleet.fleet import Fleet
from backsweep.agent.fleet.loop import Clock
from backsweep.agent.fleet.plain_engine import take_turn
from backsweep.agent.fleet.run import Run, given_reward_scale
from backsweep.agent.session.checkpoint import RUNS
from trainer_helpers import chain, comparable_records, grid, paper_config


def _raise(run: Run, error: Exception) -> None:
    raise error


class Diary:
    """Writes down which actions each run takes and which rows it draws."""

    def __init__(self, fleet: Fleet) -> None:
        self.actions: list[list[np.ndarray]] = [[] for _ in fleet.runs]
        self.rows: list[list[np.ndarray]] = [[] for _ in fleet.runs]
        for index, run in enumerate(fleet.runs):
            self._listen(run, index)

    def _listen(self, run: Run, index: int) -> None:
        step, sample = run.step, run.sample

        def listening_step(actions: np.ndarray, clock: Clock) -> None:
            self.actions[index].append(actions.copy())
            step(actions, clock)

        def listening_sample() -> Any:
            batch = sample()
            self.rows[index].append(batch.row.copy())
            return batch

        run.step, run.sample = listening_step, listening_sample  # type: ignore[method-assign]


def _diary(configs: list[RunConfig]) -> tuple[Diary, Fleet]:
    fleet = Fleet(configs)
    diary = Diary(fleet)
    while fleet.step < configs[0].steps:
        take_turn(fleet, Clock(), _raise)
    return diary, fleet


@pytest.mark.parametrize("method", ["ter", "per", "ebu", "discor"])
def test_a_run_takes_the_same_actions_and_draws_the_same_rows_as_alone(method: str) -> None:
    # Different tasks of one form, different seeds, several environments each.
    first = grid(method=method, dtype="float64", num_envs=2, steps=360, seed=1)
    configs = [
        first,
        dataclasses.replace(first, seed=2),
        dataclasses.replace(first, seed=1, task="minigrid/lavacrossing-easy", exact=False),
    ]
    together, fleet = _diary(configs)
    for index, config in enumerate(configs):
        alone, single = _diary([config])
        assert len(alone.rows[0]) == 40  # (360 - 200) / 4
        for mine, its in ((together.actions[index], alone.actions[0]), (together.rows[index], alone.rows[0])):
            assert all(np.array_equal(a, b) for a, b in zip(mine, its, strict=True))
        np.testing.assert_allclose(
            fleet.learner.online[index].numpy(), single.learner.online[0].numpy(), rtol=1e-8, atol=1e-10
        )


def test_a_fleets_folders_hold_the_records_of_each_run_alone(tmp_path: Path) -> None:
    runs = {f"seed{seed}": chain(method="ter", seed=seed, dtype="float64") for seed in (3, 4)}
    runs["short"] = chain(method="ter", seed=5, steps=900, dtype="float64")
    runs["short"] = dataclasses.replace(runs["short"], per_beta_fraction=runs["seed3"].per_beta_fraction)
    results = train_fleet(runs, tmp_path / "fleet", quiet=True)
    assert all(result.finished for result in results)
    assert results[0].folder.name == "short"  # leaves the fleet at its own end
    for name, config in runs.items():
        train(config, tmp_path / name, quiet=True)
        assert comparable_records(tmp_path / "fleet" / name) == comparable_records(tmp_path / name)


def test_a_fleet_is_resumed_like_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import signal

    from backsweep.agent.session.session import Session

    runs = {f"seed{seed}": chain(method="ter", seed=seed, steps=900 + 300 * seed) for seed in (0, 1)}
    train_fleet(runs, tmp_path / "whole", quiet=True)
    original = Session._after_turn

    def look_around(self: Session) -> None:
        original(self)
        if self.fleet.step == 1013:  # the first run has come to its end already
            signal.raise_signal(signal.SIGINT)

    with monkeypatch.context() as patch:
        patch.setattr(Session, "_after_turn", look_around)
        results = train_fleet(runs, tmp_path / "parts", engine="plain", quiet=True)
    assert [result.finished for result in results] == [True, False]
    assert all(result.finished for result in resume(tmp_path / "parts", quiet=True))
    for name in runs:
        assert comparable_records(tmp_path / "parts" / name) == comparable_records(tmp_path / "whole" / name)


def test_a_run_that_fails_is_reported_and_the_others_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    original = Run.step

    def step(self: Run, actions: np.ndarray, clock: Clock) -> None:
        if self.config.seed == 1 and self.episodes == 2:
            raise OSError("the environment broke")
        original(self, actions, clock)

    runs = {f"seed{seed}": chain(method="ter", seed=seed, dtype="float64") for seed in (0, 1, 2)}
    with monkeypatch.context() as patch:
        patch.setattr(Run, "step", step)
        results = train_fleet(runs, tmp_path / "fleet", engine="plain", quiet=True)
    by_name = {result.folder.name: result for result in results}
    assert by_name["seed1"].error == "the environment broke"
    assert "seed1 failed" in capsys.readouterr().err
    assert by_name["seed0"].finished
    assert by_name["seed2"].finished
    train(runs["seed2"], tmp_path / "alone", quiet=True)
    assert comparable_records(tmp_path / "fleet" / "seed2") == comparable_records(tmp_path / "alone")


def test_a_network_that_blows_up_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fleet = Fleet([chain(seed=0), chain(seed=1)])
    gone: list[tuple[int, str]] = []
    while fleet.step < 700:
        take_turn(fleet, Clock(), _raise)
    fleet.learner.online[0] = float("nan")
    while fleet.step < 750:
        take_turn(fleet, Clock(), lambda run, error: gone.append((run.config.seed, str(error))))
    assert gone == [(0, "the TD error is not a number")]
    assert [run.config.seed for run in fleet.runs] == [1]
    monkeypatch.setattr(Run, "step", lambda self, actions, clock: 1 / 0)
    with pytest.raises(RunError, match="failed at step"):
        train(chain(), tmp_path / "run", quiet=True)


def test_runs_that_cannot_share_a_fleet_are_refused() -> None:
    with pytest.raises(ValueError, match=r"may differ in .* only, got batch_size=64 and 32"):
        Fleet([chain(), chain(batch_size=32)])
    with pytest.raises(ValueError, match="same observations and actions"):
        Fleet([chain(), dataclasses.replace(chain(), task="nchain-12")])
    with pytest.raises(ValueError, match="at least one run"):
        Fleet([])


def test_updates_come_at_the_asked_for_ratio() -> None:
    for ratio, updates in ((0.25, 25), (1.0, 100), (2.0, 200), (0.1, 10), (0.0, 0)):
        fleet = Fleet([paper_config("nchain-10", method="uer", warmup_steps=50, ratio=ratio, steps=150, batch_size=4)])
        while fleet.step < 150:
            take_turn(fleet, Clock(), _raise)
            if fleet.step <= 50:
                assert fleet.learner.updates == 0
        assert fleet.learner.updates == updates


def test_the_target_is_copied_every_so_many_steps() -> None:
    fleet = Fleet(
        [paper_config("nchain-10", method="uer", warmup_steps=8, target_interval=10, num_envs=4, batch_size=4)]
    )
    copied: list[bool] = []
    fleet.learner.copy_target = lambda: copied.append(True)  # type: ignore[method-assign]
    copies: list[int] = []
    while fleet.step < 48:
        take_turn(fleet, Clock(), _raise)
        copies += [fleet.step for _ in copied]
        copied.clear()
    assert copies == [12, 20, 32, 40]  # the first turn at or past each multiple of 10


def test_a_fleet_that_is_refused_leaves_nothing(tmp_path: Path) -> None:
    train(chain(steps=650), tmp_path / "fleet" / "old", quiet=True)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(RunError, match="old already holds a run, which is finished"):
        train_fleet({"new": chain(seed=1), "old": chain(seed=2)}, tmp_path / "fleet", quiet=True)
    assert sorted(tmp_path.rglob("*")) == before


def test_replays_of_runs_that_have_left_are_removed(tmp_path: Path) -> None:
    runs = {f"run{seed}": chain(seed=seed, steps=700 + 200 * seed) for seed in range(3)}
    train_fleet(runs, tmp_path / "fleet", quiet=True, checkpoint_interval=100)
    for slot in (tmp_path / "fleet" / "checkpoints").iterdir():
        state = json.loads((slot / "state" / "manifest.json").read_text())
        kept = sorted(place.name for place in slot.glob("replay-*"))
        assert kept == [f"replay-{index}" for index in range(len(state["metadata"][RUNS]))]


def test_a_task_that_never_pays_has_no_scale() -> None:
    assert given_reward_scale(run_config("nchain-5", task_options={"max_steps": 2})) == 1.0
