"""A run on a GPU takes the steps and draws the rows of the same run on a CPU for as long as their actions agree."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from backsweep.agent import RunConfig, resume, run_config, train_fleet
from backsweep.agent.fleet.compiled import CompiledRuns
from backsweep.agent.fleet.engine import Engine
from backsweep.agent.fleet.fleet import Fleet
from backsweep.agent.fleet.loop import Clock
from backsweep.agent.fleet.plain_engine import GROUPS, PlainEngine
from backsweep.agent.session.records import TimingRecord, read_records
from trainer_helpers import paper_config

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")

STEPS, WARMUP = 700, 300
FIRST_BATCHES = 10


@dataclass
class Diary:
    """What happened in each turn: actions taken (runs,), rows drawn and TD errors found (runs, batch)."""

    actions: list[Any] = field(default_factory=list)
    rows: list[Any] = field(default_factory=list)
    errors: list[Any] = field(default_factory=list)


def configs(task: str, method: str) -> list[RunConfig]:
    options: dict[str, Any] = {"warmup_steps": WARMUP, "epsilon_steps": STEPS, "epsilon_end": 0.3, "steps": STEPS}
    return [
        paper_config(task, method=method, seed=seed, capacity=600, target_interval=100, **options) for seed in (1, 2, 3)
    ]


def keep_diary(runs: list[RunConfig], device: str, monkeypatch: pytest.MonkeyPatch) -> Diary:
    diary = Diary()
    turn = CompiledRuns.turn

    def noted(self: CompiledRuns, step: int, **what: Any) -> None:
        if what.get("apply"):
            diary.errors.append(self.buffers.td_error.copy())
        turn(self, step, **what)
        if what.get("steps") == 1:
            diary.actions.append(self._actions[:, 0].copy())
        if what.get("draw"):
            diary.rows.append(self.row.copy())

    fleet = Fleet(runs, device=device)
    with monkeypatch.context() as patch:
        patch.setattr(CompiledRuns, "turn", noted)
        engine = Engine(fleet, [1_300] * len(runs), 1)
        while fleet.step < STEPS:
            engine.advance(100, Clock())
    return diary


@pytest.mark.parametrize("method", ["ter", "per", "ebu", "discor"])
@pytest.mark.parametrize("task", ["minigrid/lavacrossing-easy", "sokoban/5x5-1"])
def test_the_same_steps_and_rows_while_actions_agree(task: str, method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if task.startswith("sokoban") and method != "ter":
        pytest.skip("one method is enough for other images")
    runs = configs(task, method)
    cpu, gpu = keep_diary(runs, "cpu", monkeypatch), keep_diary(runs, "cuda", monkeypatch)
    apart, soon = [], []  # of each batch, and of each run's first ones, the share of rows whose TD errors are apart
    for run in range(len(runs)):
        # Where a greedy action differs (two values were nearly the same), the runs are in different places from there.
        differs = [not np.array_equal(a[run], b[run]) for a, b in zip(cpu.actions, gpu.actions, strict=True)]
        agree = differs.index(True) if any(differs) else len(differs)
        for place in range(agree // 4):
            first, second = cpu.errors[place][run], gpu.errors[place][run]
            scale = np.abs(first).max() + 1e-3
            if place == 0:
                assert np.array_equal(cpu.rows[place][run], gpu.rows[place][run])
            if not np.array_equal(cpu.rows[place][run], gpu.rows[place][run]):
                # Priorities are made of TD errors, which are rounded differently: a draw may fall on a neighbour.
                assert method in ("ter", "per")
                break
            apart.append(np.mean(np.abs(first - second) > 0.05 * scale))
            if place < FIRST_BATCHES:
                soon.append(apart[-1])
    assert len(apart) >= 20, "the runs parted so early that nothing was compared"
    # Where two next actions are worth nearly the same, rounding decides which of them a target is made with, and the
    # target is another one; EBU carries it through an episode, which may be the whole batch. A CPU whose parameters
    # start 0.0002 or 0.0005 apart (relative; half precision rounds by as much) does the same: no row in the first
    # batches, at most 0.034 of all, but single batches of EBU and DisCor whole (six trials of each).
    assert max(soon) <= 0.05
    assert np.mean(apart) <= 0.05


def test_a_fleet_on_the_gpu_is_saved_and_goes_on(tmp_path: Path) -> None:
    options: dict[str, Any] = {"capacity": 600, "evaluation_interval": 350, "record_interval": 350}
    runs = {
        f"seed{seed}": paper_config(
            "minigrid/doorkey", method="ter", seed=seed, steps=700, warmup_steps=200, exact=False, **options
        )
        for seed in (1, 2)
    }
    results = train_fleet(runs, tmp_path / "fleet", device="cuda", checkpoint_interval=350, quiet=True)
    assert all(result.finished for result in results)
    (tmp_path / "fleet" / "seed1" / "finished.json").unlink()
    (tmp_path / "fleet" / "seed2" / "finished.json").unlink()
    assert all(result.finished for result in resume(tmp_path / "fleet", device="cuda", quiet=True))


def test_making_room_on_the_gpu_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = {f"seed{config.seed}": config for config in configs("sokoban/5x5-1", "ter")}
    train_fleet(runs, tmp_path / "at once", device="cuda", quiet=True)
    made = []

    class Watched(Engine):
        def __init__(self, fleet: Fleet, observations_per_run: list[int], groups: int) -> None:
            made.append(observations_per_run)
            super().__init__(fleet, observations_per_run, groups)

    monkeypatch.setattr("backsweep.agent.fleet.memory_budget.FIRST_LIMIT", 1)
    monkeypatch.setattr("backsweep.agent.session.session.MOST_STEPS_UNSEEN", 10)
    monkeypatch.setattr("backsweep.agent.session.session.Engine", Watched)
    results = train_fleet(runs, tmp_path / "bit by bit", device="cuda", quiet=True)
    assert all(result.finished for result in results)
    assert len(made) > 2
    for name in runs:
        first, second = (
            [record for record in read_records(tmp_path / folder / name) if not isinstance(record, TimingRecord)]
            for folder in ("at once", "bit by bit")
        )
        assert first == second


@pytest.mark.parametrize("method", ["graph", "per"])
def test_plain_environments_in_groups_are_those_of_a_cpu(method: str) -> None:
    """In float64 the devices round alike enough for 400 steps of CartPole to have the same actions."""
    options: dict[str, Any] = {"steps": 400, "warmup_steps": 64, "dtype": "float64", "capacity": 1_000}
    runs = [run_config(env="CartPole-v1", method=method, seed=seed, **options) for seed in range(4)]
    fleets = [Fleet(runs, device=device) for device in ("cpu", "cuda")]
    for fleet in fleets:
        engine = PlainEngine(fleet)
        while fleet.step < 400:
            engine.advance(engine.most_steps, Clock())
        assert engine.failures() == []
    assert len(engine._sources) == GROUPS
    here, there = fleets
    assert here.learner.updates == there.learner.updates > 50
    np.testing.assert_allclose(there.learner.online.cpu(), here.learner.online, rtol=1e-6, atol=1e-8)
    for run, other in zip(here.runs, there.runs, strict=True):
        np.testing.assert_array_equal(run.observations, other.observations)
        np.testing.assert_array_equal(run.replay.sample(32).row, other.replay.sample(32).row)
