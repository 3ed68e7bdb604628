"""A run that is given more steps is the run that had them from its start."""

from __future__ import annotations

import dataclasses
import json
import shutil
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from backsweep.agent import METHOD_NAMES, RunConfig, RunError, is_finished, resume, run_config, train, train_fleet
from backsweep.agent.methods import method_for
from backsweep.agent.session import checkpoint as checkpoints
from backsweep.agent.session import extension
from backsweep.agent.session.checkpoint import load_agent, newest_replay
from backsweep.agent.session.extension import extended
from backsweep.agent.session.folder import read_config
from backsweep.agent.session.records import RecordWriter
from backsweep.agent.session.session import Session
from backsweep.cli import main
from trainer_helpers import chain, check_same_records, comparable_records, grid, interrupted_at, paper_config


def short(**options: Any) -> RunConfig:
    """Return a run that takes a fraction of a second."""
    fields = {"steps": 700, "warmup_steps": 300, "evaluation_episodes": 2, "probe_size": 8, "dtype": "float64"}
    return chain(**{**fields, **options})


def check_same_run(folder: Path, whole: Path) -> None:
    """Check that two runs ended in the same way; `check_same_records` says what may round otherwise."""
    assert is_finished(folder)
    check_same_records(folder, whole)
    assert read_config(folder) == read_config(whole)
    (ours, step, _), (others, other, _) = load_agent(folder), load_agent(whole)
    assert step == other
    np.testing.assert_allclose(ours, others, rtol=1e-8, atol=1e-10)
    assert newest_replay(folder).replay.stats() == newest_replay(whole).replay.stats()
    assert json.loads((folder / "finished.json").read_text())["step"] == step
    assert not (folder / "extension.json").exists()


CARTPOLE = paper_config(
    env="CartPole-v1",
    method="uer",
    steps=400,
    warmup_steps=150,
    evaluation_interval=150,
    evaluation_episodes=2,
    record_interval=60,
    num_envs=3,
    linear=(16,),
    probe_size=8,
    dtype="float64",
)
CONFIGS = {
    "at an evaluation": short(method="uer", steps=1_000),
    "at a record": short(method="graph-uniform", explore="graph"),
    "between records": short(method="uer", steps=733),
    "at an evaluation between records": short(method="discor", steps=750, evaluation_interval=250),
    "during the warm-up": short(method="uer", steps=233),
    "prioritized, images": grid(method="ter", steps=410, dtype="float64"),
    "episodes, two environments": short(method="ebu-mixed", num_envs=2, steps=733),
    "other package, three environments": CARTPOLE,
    "scaled by what was seen": dataclasses.replace(CARTPOLE, method="per", reward_scale="auto", num_envs=1),
}


@pytest.mark.parametrize("name", CONFIGS)
def test_a_finished_run_goes_on_exactly(name: str, tmp_path: Path) -> None:
    config = CONFIGS[name]
    longer = config.steps + 300
    assert train(config, tmp_path / "run", quiet=True).finished
    (result,) = resume(tmp_path / "run", steps=longer, quiet=True)
    assert result.finished
    assert result.step >= longer
    train(extended(config, longer), tmp_path / "whole", quiet=True)
    check_same_run(tmp_path / "run", tmp_path / "whole")


@pytest.mark.parametrize("engine", ["plain", "compiled"])
def test_either_engine_goes_on_exactly_and_more_than_once(engine: Any, tmp_path: Path) -> None:
    config = grid(method="graph", exact=False, steps=430, dtype="float64")
    train(config, tmp_path / "run", quiet=True, engine=engine)
    for steps in (470, 690):
        resume(tmp_path / "run", steps=steps, quiet=True, engine=engine)
    train(extended(config, 690), tmp_path / "whole", quiet=True, engine=engine)
    check_same_run(tmp_path / "run", tmp_path / "whole")


@pytest.mark.parametrize("name", METHOD_NAMES)
def test_only_the_share_of_the_run_over_which_pers_exponent_rises_changes(name: str) -> None:
    for steps, more, share in ((1_000, 2_000, 0.25), (999, 1_000_003, 1 / 3), (7, 11, 0.0), (1, 10**9, 1.0)):
        config = paper_config("nchain-10", method=name, steps=steps, per_beta_fraction=share)
        longer = extended(config, more)
        assert method_for(longer) == method_for(config)
        assert longer == dataclasses.replace(config, steps=more, per_beta_fraction=longer.per_beta_fraction)
        rises = method_for(dataclasses.replace(config, steps=more)) != method_for(config)
        assert (longer.per_beta_fraction != share) == rises
        assert extended(longer, steps) == longer


def test_an_interrupted_run_goes_on_exactly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config, folder = short(method="per"), tmp_path / "run"
    with interrupted_at(417, monkeypatch):
        train(config, folder, quiet=True, checkpoint_interval=150)
    with interrupted_at(651, monkeypatch):
        resume(folder, steps=1_100, quiet=True, checkpoint_interval=0)
    assert read_config(folder) == extended(config, 1_100)
    (result,) = resume(folder, quiet=True)  # the folder says how long it is
    assert (result.finished, result.step) == (True, 1_100)
    train(extended(config, 1_100), tmp_path / "whole", quiet=True)
    check_same_run(folder, tmp_path / "whole")


def test_checkpoints_from_before_are_those_of_the_longer_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The newest checkpoint is damaged, and the one before it is older than the extension."""
    config, folder = short(method="per"), tmp_path / "run"
    train(config, folder, quiet=True)
    with interrupted_at(801, monkeypatch):
        resume(folder, steps=1_000, quiet=True, checkpoint_interval=0)
    (newest, slot, _), (older, _, _) = checkpoints._slots(folder)
    assert (newest, older) == (801, 700)
    segment = next((slot / "state" / "segments").iterdir())
    segment.write_bytes(segment.read_bytes()[:-1])
    (result,) = resume(folder, quiet=True)
    assert (result.finished, result.step) == (True, 1_000)
    assert "resuming from the previous one" in capsys.readouterr().err
    train(extended(config, 1_000), tmp_path / "whole", quiet=True)
    check_same_run(folder, tmp_path / "whole")


# -- kills ------------------------------------------------------------------------------------------------------------


class Killed(BaseException):
    """The process ends here."""


CHANGES = ("write_json", "note_session", "files.force_folder", "Path.unlink")
"""How an extension changes the disk."""


def killed_at(change: int, monkeypatch: pytest.MonkeyPatch, make: Callable[[], Any]) -> bool:
    """Do something, and end before a change of the disk by an extension; return whether that came."""
    count = 0

    def counted(original: Callable[..., Any]) -> Callable[..., Any]:
        def function(*arguments: Any, **options: Any) -> Any:
            nonlocal count
            if count == change:
                raise Killed
            count += 1
            return original(*arguments, **options)

        return function

    original = extension.extend

    def watched(*arguments: Any) -> Any:
        with monkeypatch.context() as patch:
            for name in CHANGES:
                owner, _, function = name.rpartition(".")
                place: Any = getattr(extension, owner) if owner else extension
                patch.setattr(place, function, counted(getattr(place, function)))
            return original(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(extension, "extend", watched)
        try:
            make()
        except Killed:
            return True
    return False


@pytest.mark.parametrize("names", [["."], ["one", "two"]], ids=["run", "fleet"])
def test_a_kill_at_any_point_leaves_the_old_run_or_a_longer_one(
    names: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configs = {name: short(method="per", seed=seed, steps=350) for seed, name in enumerate(names)}
    longer = {name: extended(config, 400) for name, config in configs.items()}
    train_fleet(configs, tmp_path / "old", quiet=True, engine="plain")
    train_fleet(longer, tmp_path / "whole", quiet=True, engine="plain")

    def old_run(folder: Path, name: str) -> bool:
        return is_finished(folder / name) and read_config(folder / name) == configs[name]

    ends = []
    for change in range(100):
        folder = tmp_path / f"killed-{change}"
        shutil.copytree(tmp_path / "old", folder)
        if not killed_at(change, monkeypatch, lambda folder=folder: resume(folder, steps=400, quiet=True)):
            break
        begun, old = (folder / "extension.json").exists(), all(old_run(folder, name) for name in names)
        ends.append((begun, old))
        for name in names:
            assert not (is_finished(folder / name) and read_config(folder / name) != configs[name])
            assert begun or old or read_config(folder / name) == longer[name]
            lines = [(place / name / "records.jsonl").read_bytes() for place in (folder, tmp_path / "old")]
            assert lines[0] == lines[1]
        if begun or not old:  # it goes on, with the option or without
            resume(folder, quiet=True, engine="plain", steps=None if change % 2 else 400)
            for name in names:
                check_same_run(folder / name, tmp_path / "whole" / name)
            assert not (folder / "extension.json").exists()
    assert len(ends) == 3 + 4 * len(names)  # every change of the disk
    assert {(False, True), (True, True), (True, False)} == set(ends)


def test_a_run_killed_before_it_is_marked_as_finished_has_the_records_of_its_end_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The checkpoint leaves them out where a longer run has none, so they are written again."""
    config = short(method="uer", steps=733)
    train(config, tmp_path / "whole", quiet=True)
    original = checkpoints.save

    def killed(*arguments: Any) -> None:
        original(*arguments)
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(checkpoints, "save", killed)
        with pytest.raises(Killed):
            train(config, tmp_path / "run", quiet=True, checkpoint_interval=0)
    (result,) = resume(tmp_path / "run", quiet=True)
    assert result.finished
    assert comparable_records(tmp_path / "run")[-1]["step"] == 733
    check_same_run(tmp_path / "run", tmp_path / "whole")


@pytest.mark.parametrize("steps", [None, 900])
def test_a_stop_in_the_evaluation_of_an_end_loses_nothing(
    steps: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, folder = short(method="uer", steps=733), tmp_path / "run"
    original = Session._evaluate

    def interrupted(self: Session, runs: Sequence[int]) -> bool:
        if self.fleet.step >= 733:
            signal.raise_signal(signal.SIGINT)
        return original(self, runs)

    with monkeypatch.context() as patch:
        patch.setattr(Session, "_evaluate", interrupted)
        assert not train(config, folder, quiet=True).finished
    assert [record["kind"] for record in comparable_records(folder)[-2:]] == ["training", "replay"]
    assert resume(folder, steps=steps, quiet=True)[0].finished
    train(extended(config, steps or 0), tmp_path / "whole", quiet=True)
    check_same_run(folder, tmp_path / "whole")


# -- fleets -----------------------------------------------------------------------------------------------------------


def test_a_fleet_goes_on_exactly(tmp_path: Path) -> None:
    """Also one whose runs differ in what a longer run needs."""
    configs = {name: short(method=name, steps=633) for name in ("uer", "per", "ter")}
    train_fleet(configs, tmp_path / "fleet", quiet=True)
    assert all(result.finished for result in resume(tmp_path / "fleet", steps=900, quiet=True))
    train_fleet({name: extended(config, 900) for name, config in configs.items()}, tmp_path / "whole", quiet=True)
    for name in configs:
        check_same_records(tmp_path / "fleet" / name, tmp_path / "whole" / name)
        assert read_config(tmp_path / "fleet" / name) == read_config(tmp_path / "whole" / name)
    with pytest.raises(RunError, match=r"is a run of a fleet, whose runs train together: resume the fleet, .*fleet$"):
        resume(tmp_path / "fleet" / "uer", steps=1_000, quiet=True)
    assert is_finished(tmp_path / "fleet" / "uer")


def test_runs_of_different_length_get_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    configs = {"first": short(method="per", steps=500), "second": short(method="per", steps=600)}
    configs["second"] = dataclasses.replace(configs["second"], per_beta_fraction=0.5)
    folder = tmp_path / "fleet"
    with interrupted_at(417, monkeypatch):
        train_fleet(configs, folder, quiet=True, engine="plain")
    with pytest.raises(RunError, match=r"steps must be 600 or more, as many as .*fleet has already, got 550"):
        resume(folder, steps=550, quiet=True)
    assert [result.step for result in resume(folder, steps=600, quiet=True)] == [600, 600]
    for name, config in configs.items():
        train(extended(config, 600), tmp_path / name, quiet=True)
        check_same_records(folder / name, tmp_path / name)


def test_a_fleet_that_a_run_has_left_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "fleet"
    configs = {"first": short(method="uer", steps=400), "second": short(method="uer", steps=500)}
    train_fleet(configs, folder, quiet=True, engine="plain")
    before = {name: (folder / name / "records.jsonl").read_bytes() for name in configs}
    with pytest.raises(RunError, match="cannot be given more steps: first finished before the others"):
        resume(folder, steps=800, quiet=True)
    for name, config in configs.items():
        assert is_finished(folder / name)
        assert read_config(folder / name) == config
        assert (folder / name / "records.jsonl").read_bytes() == before[name]


@pytest.mark.parametrize("second", [633, 700])
def test_a_finished_fleet_is_not_resumed(second: int, tmp_path: Path) -> None:
    """Its end would be evaluated and recorded again."""
    folder, configs = tmp_path / "fleet", {"first": short(steps=633), "second": short(steps=second)}
    train_fleet(configs, folder, quiet=True, engine="plain")
    paths = [folder / name / file for name in configs for file in ("records.jsonl", "sessions.jsonl", "finished.json")]
    before = [path.read_bytes() for path in paths]
    with pytest.raises(RunError, match=r"runs of .* are already finished: .*second\. 'backsweep resume .* --steps"):
        resume(folder, quiet=True)
    assert [path.read_bytes() for path in paths] == before


# -- refusals and remarks ---------------------------------------------------------------------------------------------


def test_what_cannot_be_done_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    train(short(method="uer"), folder, quiet=True)
    for steps, why in (
        (600, "steps must be 700 or more, as many as .*run has already, got 600"),
        (700, "already finished; .* and 'backsweep resume .*run --steps N' trains it for longer, to N steps in all"),
        (None, "already finished"),
        ("800", "steps must be a whole number or None, got '800'"),
        (True, "steps must be a whole number or None, got True"),
    ):
        with pytest.raises(RunError, match=why):
            resume(folder, steps=steps, quiet=True)  # type: ignore[arg-type]
        assert is_finished(folder)
    (folder / "extension.json").write_text('{"steps": "many"}')
    with pytest.raises(RunError, match=r"extension\.json cannot be read: its steps are 'many'"):
        resume(folder, quiet=True)
    with pytest.raises(RunError, match="there is no folder"):
        resume(tmp_path / "nothing", steps=800)


def test_without_a_checkpoint_it_is_said_how_to_keep_one(tmp_path: Path) -> None:
    for name, configs in {"run": {".": short()}, "fleet": {"one": short()}}.items():
        train_fleet(configs, tmp_path / name, quiet=True, final_checkpoint=False)
        with pytest.raises(RunError, match=r"no checkpoint to go on from.*unless it is trained with --no-final-ch"):
            resume(tmp_path / name, steps=800, quiet=True)
        assert is_finished(tmp_path / name / next(iter(configs)))


def test_settings_that_follow_from_the_length_stay_and_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    small = {"task_options": {"size": 5}, "convolutions": ((4, 8, 4),), "linear": (8,), "batch_size": 8}
    config = run_config("minigrid/doorkey", method="per", steps=400, evaluation_episodes=1, exact=False, **small)
    folder = tmp_path / "run"
    train(config, folder, quiet=True)
    resume(folder, steps=500)
    told = " ".join(capsys.readouterr().out.split())
    assert "400 steps become 500" in told
    assert "per_beta_fraction is 0.2 now, not 0.25: PER's exponent rises over 100 rows, as before" in told
    assert (
        "settings that follow from a run's length stay: warmup_steps 20, epsilon_steps 320, evaluation_interval 400 "
        "(by default a new run has warmup_steps 25, epsilon_steps 400, evaluation_interval 500)"
    ) in told
    events = [json.loads(line) for line in (folder / "sessions.jsonl").read_text().splitlines()]
    assert [event["event"] for event in events] == ["started", "finished", "extended", "resumed", "finished"]


def test_nothing_is_said_of_settings_where_none_follow(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    train(short(method="uer"), tmp_path / "run", quiet=True)
    resume(tmp_path / "run", steps=800)
    told = capsys.readouterr().out
    assert "700 steps become 800" in told
    for word in ("per_beta_fraction", "settings", "recorded"):
        assert word not in told


@pytest.mark.parametrize("steps", [733, 700])
def test_a_checkpoint_with_the_records_of_an_end_is_told_of(
    steps: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As earlier releases wrote them."""
    with monkeypatch.context() as patch:
        patch.setattr(RecordWriter, "leave_out", lambda self: None)
        train(short(method="uer", steps=steps), tmp_path / "run", quiet=True)
    resume(tmp_path / "run", steps=900)
    assert f"what was recorded for the end at step {steps} stays" in capsys.readouterr().out
    assert [record["step"] for record in comparable_records(tmp_path / "run")].count(steps) == 3


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "run"
    train(short(method="uer"), folder, quiet=True)
    with pytest.raises(SystemExit):
        main(["resume", str(folder), "--steps", "many"])
    assert "must be a whole number, got 'many'" in capsys.readouterr().err
    assert main(["resume", str(folder), "--steps", "500"]) == 2
    assert "steps must be 700 or more" in capsys.readouterr().err
    assert main(["resume", str(folder), "--steps", "1_000"]) == 0
    assert f"{folder}: finished at step 1,000" in capsys.readouterr().out
    with pytest.raises(
        RunError, match=r"which is finished: train it for longer with 'backsweep resume .*run --steps N', choose"
    ):
        train(short(method="uer"), folder, quiet=True)
