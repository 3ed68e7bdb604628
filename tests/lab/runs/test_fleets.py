"""Which runs share a fleet, what fleets are called, and what becomes of a run that failed."""

from __future__ import annotations

import json
import shutil
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from backsweep.agent import RunConfig, RunError, resume
from backsweep.agent.fleet import fleet
from backsweep.agent.fleet.plain_engine import retire
from backsweep.agent.session.extension import OF_EXPERIMENT
from backsweep.agent.session.folder import locked
from backsweep.agent.session.session import Session
from backsweep.lab.claims.question import Grid
from backsweep.lab.claims.questions import find_question
from backsweep.lab.claims.questions.shared import MINIGRID, WITH_SHUFFLED, variant
from backsweep.lab.runs import jobs
from backsweep.lab.runs.estimate import estimate
from backsweep.lab.runs.worker import work

SMALL: dict[str, Any] = {
    "steps": 120,
    "warmup_steps": 40,
    "evaluation_interval": 60,
    "evaluation_episodes": 2,
    "record_interval": 20,
    "probe_size": 8,
    "capacity": 200,
}


def plan(root: Path, grid: Grid, runs: int = 128, workers: int = 1) -> list[jobs.Job]:
    return jobs.plan(root, [grid], "fleet", fleet_size=runs, workers=workers).jobs


PAPER = Grid(MINIGRID, WITH_SHUFFLED, (100, 101, 102))


def test_methods_with_one_rule_share_a_fleet(tmp_path: Path) -> None:
    found = plan(tmp_path, PAPER)
    methods = [{config["method"] for config in job.order["configs"].values()} for job in found]
    assert methods == [{"uer", "per", "ebu", "ter", "ter-shuffled"}, {"discor"}]
    assert sum(job.runs for job in found) == 7 * 6 * 3
    for job in found:
        fleet.check_same([RunConfig.from_json(config) for config in job.order["configs"].values()])
        names = list(job.order["configs"])
        assert len(set(names)) == len(names) == job.runs
        assert len(job.log_name) < 200
    assert "doorkey-ter-seed-100" in found[0].order["configs"]
    assert Path(found[0].order["folder"]).parent == tmp_path / "runs" / "fleets"
    assert len({job.order["folder"] for job in found}) == 2


def test_runs_with_other_rules_have_fleets_of_their_own(tmp_path: Path) -> None:
    """CEER's cross-entropy takes a share of the graph's values, which is part of its rule."""
    options = {"ceer_imitation": 1.0, "settings": "ours"}
    lines = tuple(variant("ceer", f"ceer, {share}", graph_share=share, **options) for share in (0.2, 0.4))
    found = plan(tmp_path, Grid(MINIGRID[:1], lines, (100, 101)))
    assert [job.runs for job in found] == [2, 2]
    for job in found:
        fleet.check_same([RunConfig.from_json(config) for config in job.order["configs"].values()])


def test_runs_are_shared_out_evenly_and_long_runs_stay_together(tmp_path: Path) -> None:
    first, second, *_ = plan(tmp_path, PAPER, runs=60)  # 105 runs, 15 of them of 6M steps
    assert (first.runs, second.runs) == (52, 53)
    assert sum(config["steps"] == 6_000_000 for config in first.order["configs"].values()) == 15


@pytest.mark.parametrize(
    ("runs", "workers", "sizes"),
    [
        (128, 2, [105, 21]),
        (128, 3, [52, 53, 21]),
        (128, 16, [8] * 12 + [9] + [7] * 3),
        (5, 16, [5] * 21 + [4] * 4 + [5]),
        (128, 1000, [1] * 126),
    ],
)
def test_every_worker_has_a_fleet(tmp_path: Path, runs: int, workers: int, sizes: list[int]) -> None:
    found = plan(tmp_path, PAPER, runs, workers)  # 105 runs that learn alike, and 21 of DisCor
    assert sorted(job.runs for job in found) == sorted(sizes)


def test_other_actions_are_another_fleet(tmp_path: Path) -> None:
    # The released code has three actions on the crossing tasks and seven elsewhere.
    grid = Grid(MINIGRID, (variant("ter"),), (100, 101), {"settings": "released"})
    assert [job.runs for job in plan(tmp_path, grid)] == [6, 8]


def test_two_settings_of_one_method_have_runs_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleet, "OWN_FIELDS", (*fleet.OWN_FIELDS, "eta"))
    grid = Grid(("nchain-6",), (variant("ter", "low", eta=0.1), variant("ter", "high", eta=0.7)), (100,), SMALL)
    (job,) = plan(tmp_path, grid)
    assert len(job.order["configs"]) == 2


def test_questions_that_share_runs_do_them_once(tmp_path: Path) -> None:
    first = Grid(("nchain-6",), (variant("ter"),), (100, 101), SMALL)
    second = Grid(("nchain-6", "nchain-7"), (variant("ter"),), (101, 102), SMALL)
    found = jobs.plan(tmp_path, [first, second], "fleet")
    assert found.total == sum(job.runs for job in found.jobs) == 5


def test_other_observations_are_another_fleet(tmp_path: Path) -> None:
    # Chains of different length have tables of different length.
    grid = Grid(("nchain-6", "nchain-7"), (variant("uer"),), (100, 101), SMALL)
    assert [job.runs for job in plan(tmp_path, grid)] == [2, 2]


def minigrid() -> Grid:
    small = {**SMALL, "convolutions": ((4, 8, 4),), "linear": (8,), "exact": False, "batch_size": 8}
    short = {"task_options": {"max_steps": 20}}
    tasks = ("minigrid/unlock", "minigrid/lavacrossing-easy")
    return Grid(tasks, (variant("uer", **short),), (100, 101), small)


def test_a_fleet_of_several_tasks_runs(tmp_path: Path) -> None:
    (job,) = plan(tmp_path, minigrid())
    assert sorted(job.order["configs"]) == [
        "lavacrossing-easy-uer-seed-100",
        "lavacrossing-easy-uer-seed-101",
        "unlock-uer-seed-100",
        "unlock-uer-seed-101",
    ]
    assert "minigrid/unlock, minigrid/lavacrossing-easy; uer; seeds 100 to 101" in job.name
    assert work(job.order) == 0
    assert jobs.plan(tmp_path, [minigrid()], "process").finished == 4


def test_a_run_that_failed_begins_again_and_takes_nobody_with_it(tmp_path: Path) -> None:
    (job,) = plan(tmp_path, minigrid())
    assert work(job.order) == 0
    place = Path(job.order["folder"])
    run = place / "unlock-uer-seed-100"
    (run / "finished.json").unlink()
    with open(run / "sessions.jsonl", "a") as file:
        file.write(json.dumps({"event": "failed"}) + "\n")
    (again,) = plan(tmp_path, minigrid())
    assert (again.runs, again.resumed, again.order["removed"]) == (1, False, [str(run)])
    assert work(again.order) == 0
    assert not run.exists()
    assert len(list(place.glob("*/finished.json"))) == 3
    assert jobs.plan(tmp_path, [minigrid()], "fleet").finished == 4


def failure_of(name: str) -> Any:
    """Return a `Session._move` that lets a run of a fleet of four fail at step 60."""
    original = Session._move

    def move(self: Session) -> None:
        if self.fleet.step == 60 and len(self.files) == 4:
            index = [files.name for files in self.files].index(name)
            self._hand_back()
            self._drop_engine()
            retire(self.fleet, index, RuntimeError("made up"), self._failed)
        original(self)

    return move


def test_a_run_that_failed_begins_again_while_its_fleet_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (job,) = plan(tmp_path, minigrid())
    original = Session._after_turn

    def stop(self: Session) -> None:
        original(self)
        self.stopped_by = signal.SIGTERM if self.fleet.step >= 90 else None

    job.order["session"] = {"checkpoint_interval": 30}
    with monkeypatch.context() as patch:
        patch.setattr(Session, "_move", failure_of("unlock-uer-seed-100"))
        patch.setattr(Session, "_after_turn", stop)
        assert work(job.order) == 1
    others, failed = plan(tmp_path, minigrid())
    assert (others.resumed, others.runs, failed.resumed, failed.runs) == (True, 3, False, 1)
    with locked(Path(others.order["folder"])):  # by another worker of the same command
        assert work(failed.order) == 0
    assert work(others.order) == 0
    assert jobs.plan(tmp_path, [minigrid()], "fleet").finished == 4


def test_a_run_that_failed_after_the_newest_checkpoint_goes_on_with_its_fleet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its fleet's checkpoint needs its records, so it must not begin again elsewhere and lose them."""
    (job,) = plan(tmp_path, minigrid())
    original = Session._failed
    fail = failure_of(failing := "unlock-uer-seed-100")

    def killed(self: Session, run: Any, error: Exception) -> None:
        original(self, run, error)
        raise KeyboardInterrupt  # before the next checkpoint

    job.order["session"] = {"checkpoint_interval": 30}
    with monkeypatch.context() as patch:
        patch.setattr(Session, "_move", fail)
        patch.setattr(Session, "_failed", killed)
        with pytest.raises(KeyboardInterrupt):
            work(job.order)
    (again,) = plan(tmp_path, minigrid())
    assert (again.runs, again.resumed) == (4, True)
    with monkeypatch.context() as patch:  # this time nothing kills it
        patch.setattr(Session, "_move", fail)
        assert work({**again.order, "session": {"checkpoint_interval": 30}}) == 1
    (last,) = plan(tmp_path, minigrid())
    assert (last.runs, last.resumed) == (1, False)
    assert [Path(path).name for path in last.order["removed"]] == [failing]
    assert work(last.order) == 0
    assert jobs.plan(tmp_path, [minigrid()], "fleet").finished == 4


def test_a_fleet_that_was_killed_early_begins_again(tmp_path: Path) -> None:
    (job,) = plan(tmp_path, minigrid())
    place = Path(job.order["folder"])
    for name, config in job.order["configs"].items():
        (place / name).mkdir(parents=True)
        (place / name / "config.json").write_text(json.dumps(config))
    (place / "fleet.json").write_text(json.dumps({"runs": list(job.order["configs"])}))
    (again,) = plan(tmp_path, minigrid())
    assert len(again.order["removed"]) == 4
    assert work(again.order) == 0
    assert not place.exists()
    assert jobs.plan(tmp_path, [minigrid()], "fleet").finished == 4


def test_runs_of_an_experiment_keep_their_steps(tmp_path: Path) -> None:
    """Wherever a run is planned, its folder is known as an experiment's; one that a user chooses is not."""
    one = Grid(("nchain-6",), (variant("uer"),), (100,), SMALL)
    places = [
        Path(plan(tmp_path, grid)[0].order["folder"]) for grid in (one, replace(one, seeds=(100, 101)), minigrid())
    ]
    assert len({place.parent.parent for place in places}) == 2
    for place in (*places, places[1].with_name(f"{places[1].name}-2"), places[2].with_name(f"{places[2].name}-2")):
        assert OF_EXPERIMENT.search(place.as_posix()), place
    for name in ("runs/nchain-6/uer-seed0", "runs/fleets/seeds", "runs/fleets/batch-64", "runs/nchain-6/uer-seed0-2"):
        assert not OF_EXPERIMENT.search((tmp_path / name).as_posix()), name

    (job,) = plan(tmp_path, one)
    assert work(job.order | {"session": {"final_checkpoint": True}}) == 0
    with pytest.raises(RunError, match=r"belongs to an experiment's results.*copy the folder"):
        resume(places[0], steps=200, quiet=True)
    assert plan(tmp_path, one) == []
    shutil.copytree(places[0], tmp_path / "copy")
    assert resume(tmp_path / "copy", steps=200, quiet=True)[0].finished


def test_an_estimate_counts_the_start_of_every_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = find_question("G7").plan("paper")
    assert study is not None
    found = jobs.plan(tmp_path, [study], "process").jobs
    assert len(found) == 40
    monkeypatch.setattr("backsweep.lab.runs.estimate.start_seconds", lambda: 0.0)
    working = estimate(found, 2)
    monkeypatch.setattr("backsweep.lab.runs.estimate.start_seconds", lambda: 3.0)
    assert estimate(found, 2) == pytest.approx(working + 40 * 3.0 / 2)


def test_an_estimate_is_of_the_fleet_and_not_of_its_runs_one_by_one(tmp_path: Path) -> None:
    found = plan(tmp_path, PAPER)
    steps = sum(job.steps for job in found)
    assert estimate(found, 1, steps_per_second=1000.0) == pytest.approx(steps / 1000.0)
    largest = max(job.steps for job in found)
    assert estimate(found, 3, steps_per_second=1000.0) == pytest.approx(largest / 1000.0)
    (small,) = plan(tmp_path, minigrid())
    assert 0.0 < estimate([small], 1) < 60.0
