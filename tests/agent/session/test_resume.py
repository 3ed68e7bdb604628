"""A run that was stopped, however it was stopped, goes on as if nothing had happened."""

from __future__ import annotations

import dataclasses
import errno
import json
import multiprocessing
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from backsweep.agent import RunConfig, RunError, resume, train, train_fleet
from backsweep.agent.fleet.run import stored_frames
from backsweep.agent.session import checkpoint as checkpoints
from backsweep.agent.session.records import RecordWriter
from backsweep.agent.session.session import Session
from backsweep.snapshot import SnapshotError, files
from trainer_helpers import chain, check_same_records, comparable_records, grid, interrupted_at, paper_config


def _train_and_stop_at(config: RunConfig, folder: Path, step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Train until Ctrl-C comes at a given step."""
    with interrupted_at(step, monkeypatch):
        result = train(config, folder, quiet=True, checkpoint_interval=0)
    assert not result.finished
    assert result.stopped_by == signal.SIGINT


CONFIGS = {
    "ter on images": grid(method="ter", dtype="float64"),
    "discor on images": grid(method="discor", dtype="float64"),
    "ebu on a chain": chain(method="ebu"),
    "mixed ebu on a chain, released": chain(method="ebu-mixed", settings="released"),
    "shuffled, two environments": chain(method="ter-shuffled", num_envs=2, shuffle=50),
    "other package, three environments": paper_config(
        env="CartPole-v1",
        method="per",
        steps=900,
        warmup_steps=300,
        evaluation_interval=300,
        evaluation_episodes=4,
        record_interval=100,
        num_envs=3,
        linear=(32,),
        probe_size=16,
        dtype="float64",
    ),
}


@pytest.mark.parametrize("name", CONFIGS)
def test_a_stopped_run_goes_on_exactly(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = CONFIGS[name]
    train(config, tmp_path / "whole", quiet=True)
    # Twice, and in the middle of everything: not at a multiple of any interval.
    _train_and_stop_at(config, tmp_path / "parts", config.steps // 2 + 37, monkeypatch)
    original = Session._after_turn

    def look_around(self: Session) -> None:
        original(self)
        if self.fleet.step >= config.steps * 3 // 4 + 11:
            signal.raise_signal(signal.SIGTERM)

    with monkeypatch.context() as patch:
        patch.setattr(Session, "_after_turn", look_around)
        (stopped,) = resume(tmp_path / "parts", quiet=True, checkpoint_interval=0)
    assert stopped.stopped_by == signal.SIGTERM
    (result,) = resume(tmp_path / "parts", quiet=True)
    assert result.finished
    check_same_records(tmp_path / "parts", tmp_path / "whole")
    with pytest.raises(RunError, match="already finished"):
        resume(tmp_path / "parts")


@pytest.mark.parametrize("engine", ["plain", "compiled"])
def test_bands_of_images_change_only_the_memory(engine: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A checkpoint from before images were divided goes on as it is, to the same end."""
    config = dataclasses.replace(
        grid(method="graph", dtype="float64", exact=False), task="sokoban/6x6-2", task_options={}
    )
    assert stored_frames(config) == 6
    train(config, tmp_path / "bands", quiet=True, engine=engine)
    with monkeypatch.context() as patch:
        patch.setattr("backsweep.agent.fleet.run.stored_frames", lambda config: 1)
        _train_and_stop_at(config, tmp_path / "whole", config.steps // 2 + 37, monkeypatch)
    (result,) = resume(tmp_path / "whole", quiet=True, engine=engine)
    assert result.finished
    check_same_records(tmp_path / "bands", tmp_path / "whole", but=("nbytes", "distinct_frames"))


def _go_on(folder: Path, config: dict[str, Any]) -> None:
    """Start the run, or resume it: what a process does that is about to be killed."""
    if (folder / "config.json").exists():
        resume(folder, quiet=True, checkpoint_interval=100)
    else:
        train(RunConfig.from_json(config), folder, quiet=True, checkpoint_interval=100)


def test_kill_9_loses_no_more_than_the_steps_since_the_last_checkpoint(tmp_path: Path) -> None:
    config = chain(method="ter", steps=3_000)
    train(config, tmp_path / "whole", quiet=True)
    folder = tmp_path / "killed"
    # Children are forked from a process that has imported everything, which saves seconds each time.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["backsweep.agent.session.training", Path(__file__).stem])
    for kill in range(6):
        process = context.Process(target=_go_on, args=(folder, config.to_json()))
        process.start()
        # Each time a little later, and at different distances from the checkpoints, which come every 100 steps.
        deadline = time.monotonic() + 60
        while process.is_alive() and time.monotonic() < deadline and _last_step(folder) < 400 * (kill + 1):
            time.sleep(0.005)
        time.sleep(0.013 * (kill % 4))
        assert process.is_alive()
        process.kill()
        process.join()
        known = _last_step(folder)
        newest = max(step for step, _, reason in checkpoints._slots(folder) if reason is None)
        assert known - newest <= 200  # a checkpoint that was under way may be lost with the steps before it
    (result,) = resume(folder, quiet=True)
    assert result.finished
    assert comparable_records(folder) == comparable_records(tmp_path / "whole")


def _last_step(folder: Path) -> int:
    try:
        lines = (folder / "records.jsonl").read_bytes().split(b"\n")[:-1]
        return int(json.loads(lines[-1])["step"]) if lines else 0
    except OSError:
        return 0


def _stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a run with two whole checkpoints, at steps 700 and 800."""
    config = chain(method="ter")
    original = Session._after_turn

    def look_around(self: Session) -> None:
        original(self)
        if self.fleet.step == 800:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Session, "_after_turn", look_around)
        with pytest.raises(KeyboardInterrupt):
            train(config, tmp_path / "run", quiet=True, checkpoint_interval=100)
    return tmp_path / "run"


def test_a_damaged_checkpoint_is_named_and_the_one_before_it_loads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = _stopped(tmp_path, monkeypatch)
    slots = checkpoints._slots(folder)
    assert [step for step, _, _ in slots] == [800, 700]
    for kind in ("state", "replay-0"):
        segment = next((slots[0][1] / kind / "segments").iterdir())
        image = bytearray(segment.read_bytes())
        image[len(image) // 2] ^= 1
        segment.write_bytes(image)
    (result,) = resume(folder, quiet=True)
    assert result.finished
    message = capsys.readouterr().err
    assert "cannot be used; resuming from the previous one" in message
    assert "digest" in message
    train(chain(method="ter"), tmp_path / "whole", quiet=True)
    assert comparable_records(folder) == comparable_records(tmp_path / "whole")


def test_the_checkpoint_after_a_damaged_one_never_replaces_the_only_whole_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = _stopped(tmp_path, monkeypatch)
    (_, newest, _), (_, older, _) = checkpoints._slots(folder)
    segment = next((newest / "state" / "segments").iterdir())
    segment.write_bytes(segment.read_bytes()[:-1])
    loaded = checkpoints.load(folder, device="cpu", warn=print)
    assert checkpoints._next_slot(folder) == newest
    assert [slot for _, slot, _ in checkpoints._slots(folder)] == [older]
    assert loaded.fleet.step == 700
    (result,) = resume(folder, quiet=True)
    assert result.finished
    assert [path.name for path in (folder / "checkpoints").iterdir()] in (["a"], ["b"])


def test_a_checkpoint_torn_between_replay_and_state_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = _stopped(tmp_path, monkeypatch)
    newest, older = checkpoints._slots(folder)[:2]
    loaded = checkpoints.load(folder, device="cpu", warn=print)
    loaded.fleet.runs[0].replay.save(older[1] / "replay-0")  # as if killed before the state was written
    assert checkpoints._slots(folder)[0][1] == older[1]
    checkpoints.load(folder, device="cpu", warn=print)
    assert {path.name for path in (folder / "checkpoints").iterdir()} == {"a", "b"}  # no copy of it is kept
    (result,) = resume(folder, quiet=True)
    assert result.finished
    assert "being written when the process ended" in capsys.readouterr().err
    assert newest[0] == 800


def test_when_nothing_is_whole_every_reason_is_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = _stopped(tmp_path, monkeypatch)
    for _, slot, _ in checkpoints._slots(folder):
        (slot / "state" / "manifest.json").write_text("{}")
    with pytest.raises(RunError, match=r"(?s)no checkpoint can be used:.*a: .*b: "):
        resume(folder, quiet=True)


def test_a_full_disk_is_said_plainly_and_the_checkpoint_before_loads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = chain(method="ter")

    def stage(path: Path, *parts: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    original = Session._checkpoint

    def checkpoint(self: Session) -> None:
        if self.fleet.step >= 900:
            monkeypatch.setattr(files, "stage", stage)
        original(self)

    with monkeypatch.context() as patch:
        patch.setattr(Session, "_checkpoint", checkpoint)
        with pytest.raises(RunError, match=r"step 900 could not be written.*No space left on device.*resume"):
            train(config, tmp_path / "run", quiet=True, checkpoint_interval=100)
    monkeypatch.undo()
    (result,) = resume(tmp_path / "run", quiet=True)
    assert result.finished
    train(config, tmp_path / "whole", quiet=True)
    assert comparable_records(tmp_path / "run") == comparable_records(tmp_path / "whole")


def test_a_full_disk_while_records_are_written_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = chain(method="ter")
    original = RecordWriter.write

    class Full:
        """A file on a full disk."""

        def __init__(self, file: Any) -> None:
            self.file = file

        def write(self, line: bytes) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        def close(self) -> None:
            if not self.file.closed:
                self.file.close()
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def write(self: RecordWriter, record: Any) -> None:
        if record.step >= 900:
            self._file = Full(self._file)
        original(self, record)

    with monkeypatch.context() as patch:
        patch.setattr(RecordWriter, "write", write)
        with pytest.raises(
            ValueError, match=r"records\.jsonl cannot be written: No space left on device.*resume the run"
        ):
            train(config, tmp_path / "run", quiet=True, checkpoint_interval=100)
    (result,) = resume(tmp_path / "run", quiet=True)
    assert result.finished
    train(config, tmp_path / "whole", quiet=True)
    assert comparable_records(tmp_path / "run") == comparable_records(tmp_path / "whole")


@pytest.mark.parametrize(
    ("names", "why"),
    [
        (["../one"], "a run must be named by a folder inside of"),
        (["one", "./one"], "runs must have different names"),
        (["one", "checkpoints"], "a run must not be named like a file of its fleet, got 'checkpoints'"),
        (["fleet.json"], "a run must not be named like a file of its fleet"),
    ],
)
def test_names_of_runs_that_could_not_be_resumed_are_refused(names: list[str], why: str, tmp_path: Path) -> None:
    with pytest.raises(RunError, match=why):
        train_fleet({name: chain(seed=seed) for seed, name in enumerate(names)}, tmp_path / "fleet", quiet=True)
    assert not list(tmp_path.iterdir())


def test_records_that_went_missing_are_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = _stopped(tmp_path, monkeypatch)
    (folder / "records.jsonl").write_bytes(b"")
    with pytest.raises(RunError, match="records have been lost"):
        resume(folder, quiet=True)


def test_a_checkpoint_of_another_release_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = _stopped(tmp_path, monkeypatch)
    monkeypatch.setattr(checkpoints, "VERSION", 7)
    with pytest.raises(RunError, match="version 1 of 'backsweep training', and this release reads 7"):
        resume(folder, quiet=True)


def test_a_run_is_trained_by_one_process_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from backsweep.agent.session.folder import locked

    folder = _stopped(tmp_path, monkeypatch)
    with locked(folder), pytest.raises(RunError, match="another process"):
        resume(folder, quiet=True)


def test_before_the_first_checkpoint_there_is_nothing_to_resume(tmp_path: Path) -> None:
    from backsweep.agent.session.folder import create_run

    create_run(tmp_path / "run", chain())
    with pytest.raises(RunError, match="no checkpoint yet"):
        resume(tmp_path / "run", quiet=True)
    with pytest.raises(RunError, match="there is no folder"):
        resume(tmp_path / "nothing", quiet=True)
    assert issubclass(SnapshotError, ValueError)
