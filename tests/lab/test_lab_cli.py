"""The commands from end to end, at the smallest scale."""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from backsweep.agent import RunConfig, RunError
from backsweep.agent.session import checkpoint
from backsweep.agent.session.folder import locked
from backsweep.cli import main
from backsweep.lab import cli
from backsweep.lab.claims.evidence import ADDED_LATER, configuration_key
from backsweep.lab.claims.question import Grid, Variant
from backsweep.lab.runs import jobs
from backsweep.lab.runs.engine import run_jobs, shares_of, terminated_like_interrupted
from backsweep.lab.runs.progress import JobProgress, duration
from backsweep.lab.runs.worker import work
from backsweep.snapshot import write_snapshot
from trainer_helpers import paper_config


def parse(*arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    cli.add_commands(parser.add_subparsers(required=True))
    return parser.parse_args(["experiment", *arguments])


def call(*arguments: str) -> int:
    parsed = parse(*arguments)
    return int(parsed.run(parsed))


def test_list_and_show(capsys: pytest.CaptureFixture[str]) -> None:
    assert call("list") == 0
    assert "C24" in capsys.readouterr().out
    assert call("show", "c3") == 0
    shown = capsys.readouterr().out
    assert "TER beats UER, PER, EBU and DisCor on 7 MiniGrid tasks" in shown
    assert "210 runs" in shown
    assert "--lines uer per ebu discor ter ter-shuffled\n" in shown
    assert call("show", "C17") == 0
    assert "nothing to run" in capsys.readouterr().out
    assert call("show", "G1") == 0
    assert "the goal: Graph values solve 95%" in capsys.readouterr().out


def test_a_study_runs_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call("run", "C20", "--results", str(tmp_path), "--dry-run") == 0
    shown = capsys.readouterr()
    assert "1 run, 0 finished, 1 to do in 1 process,\n" in shown.out
    assert "measuring how fast this machine is" in shown.err
    assert call("run", "C20", "--results", str(tmp_path)) == 0
    done = capsys.readouterr().out
    assert "1 run, 0 finished; 1 process to do, " in done
    # No report uses tuning seeds, which is all that this was.
    command = f"backsweep experiment run C20 --scale laptop --results {tmp_path}\n"
    assert f"it works; for a verdict (5 runs; --dry-run says how long it takes): {command}" in done
    assert "backsweep report" not in done
    (file,) = (tmp_path / "sweep-order").glob("*.jsonl.gz")
    written = file.stat().st_mtime_ns
    assert call("run", "C20", "--results", str(tmp_path)) == 0
    assert "the run is finished" in capsys.readouterr().out
    assert file.stat().st_mtime_ns == written


@pytest.mark.parametrize(
    ("arguments", "count", "then"),
    [
        (("C3",), 210, "experiment run C3 --scale laptop"),
        (
            ("C3", "--settings", "ours", "--lines", "ter", "uer", "--tasks", "minigrid/doorkey", "--seeds", "10003"),
            10,
            "experiment run C3 --scale laptop --tasks minigrid/doorkey --lines ter uer --settings ours",
        ),
        (
            ("C12", "C13", "--engine", "fleet", "--fleet-size", "128", "--results", "my results", "--dry-run"),
            75,
            "experiment run C12 C13 --scale laptop --engine fleet --fleet-size 128 --results 'my results'",
        ),
        # At the next scale the question has other tasks.
        (("C9", "--tasks", "minigrid/doorkey"), 30, "experiment run C9 --scale paper --tasks minigrid/doorkey"),
    ],
)
def test_a_trial_says_how_to_get_to_a_verdict_about_the_same(arguments: tuple[str, ...], count: int, then: str) -> None:
    hint = cli._after_tuning(parse("run", *arguments))
    assert hint == f"it works; for a verdict ({count} runs; --dry-run says how long it takes): backsweep {then}"
    again = parse(*shlex.split(then)[1:])
    assert sum(len(what.runs()) for what in cli._chosen(again, again.scale, again.seeds)) == count


def test_trials_of_constants_lead_to_no_verdict() -> None:
    assert cli._after_tuning(parse("run", "T1")) == "it works; reports leave out runs with tuning seeds"


CHAIN = {
    "steps": 300,
    "warmup_steps": 100,
    "evaluation_interval": 100,
    "evaluation_episodes": 2,
    "record_interval": 50,
    "probe_size": 8,
    "capacity": 300,
}


def small_grid(engine: jobs.Engine, root: Path, methods: tuple[str, ...] = ("ter",), **more: object) -> jobs.Plan:
    variants = tuple(Variant(name, name) for name in methods)
    grid = Grid(("nchain-6",), variants, (10_000, 10_001), {**CHAIN, **more})
    return jobs.plan(root, [grid], engine)


def test_a_failing_run_is_reported_and_the_others_go_on(tmp_path: Path) -> None:
    plan = small_grid("process", tmp_path)
    assert (len(plan.jobs), plan.finished, plan.total) == (2, 0, 2)
    plan.jobs[0].order["configs"]["."]["task"] = "nchain-nonsense"
    failures, interrupted = run_jobs(plan.jobs, tmp_path / "logs", 2, JobProgress(plan.jobs))
    assert not interrupted
    (failure,) = failures
    assert "nchain-nonsense" in failure.tail()
    again = small_grid("process", tmp_path)
    assert (len(again.jobs), again.finished) == (1, 1)
    (folder,) = (path.parent for path in tmp_path.rglob("finished.json"))
    assert not (folder / "checkpoints").exists()
    assert json.loads((folder / "config.json").read_text())["seed"] == 10_001


def test_fleets_share_runs_with_processes_and_interrupted_runs_go_on(tmp_path: Path) -> None:
    plan = small_grid("fleet", tmp_path)
    (job,) = plan.jobs
    assert job.runs == 2
    assert work(job.order) == 0
    assert small_grid("process", tmp_path).finished == 2

    # A run that was killed before it had anything to go on from begins again.
    (broken,) = [job for job in small_grid("process", tmp_path, ("uer",)).jobs if "10000" in job.name]
    folder = Path(broken.order["folder"])
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(broken.order["configs"]["."]))
    (again,) = [job for job in small_grid("process", tmp_path, ("uer",)).jobs if "10000" in job.name]
    assert (again.order["folder"], again.order["removed"], again.resumed) == (str(folder), [str(folder)], False)
    assert work(again.order) == 0
    assert (folder / "finished.json").exists()
    # Other settings are another run.
    assert small_grid("process", tmp_path, ("uer",), batch_size=7).finished == 0


def test_an_interrupted_run_goes_on_from_its_checkpoint(tmp_path: Path) -> None:
    long = {"steps": 6_000, "epsilon_steps": 1_000, "evaluation_interval": 6_000}
    job = small_grid("process", tmp_path, **long).jobs[0]
    process = subprocess.Popen(
        [sys.executable, "-m", "backsweep.lab.runs.worker", json.dumps(job.order)], stdout=subprocess.PIPE
    )
    (records,) = job.watched
    while not records.exists() or records.stat().st_size < 100:
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM
    (resumed,) = [entry for entry in small_grid("process", tmp_path, **long).jobs if entry.resumed]
    before = records.read_bytes()
    assert work(resumed.order) == 0
    assert records.read_bytes().startswith(before)
    assert small_grid("process", tmp_path, **long).finished == 1


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_ending_the_command_stops_its_jobs_in_good_order(ending: signal.Signals, tmp_path: Path) -> None:
    long = {"steps": 50_000, "epsilon_steps": 1_000, "evaluation_interval": 50_000}
    code = (
        "import json, sys; from pathlib import Path; from backsweep.lab.runs.engine import run_jobs; "
        "from backsweep.lab.runs.progress import JobProgress; "
        f"sys.path.append({str(Path(__file__).parents[1])!r}); "  # for the helpers of the tests
        f"from {Path(__file__).stem} import small_grid; root = Path(sys.argv[1]); "
        "found = small_grid('process', root, **json.loads(sys.argv[2])); "
        "sys.exit(130 if run_jobs(found.jobs, root / 'logs', 2, JobProgress(found.jobs))[1] else 0)"
    )
    watched = [path for job in small_grid("process", tmp_path, **long).jobs for path in job.watched]
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path), json.dumps(long)], cwd=Path(__file__).parent, stdout=subprocess.PIPE
    )
    while not all(records.exists() and records.stat().st_size > 100 for records in watched):
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(ending)
    process.communicate(timeout=60)
    assert process.returncode == (-ending if ending == signal.SIGKILL else 130)
    wait_until_free(path.parent for path in watched)  # the jobs of a killed command end after it
    assert [job.resumed for job in small_grid("process", tmp_path, **long).jobs] == [True, True]


def wait_until_free(folders: Iterable[Path]) -> None:
    """Return when no process trains in these folders."""
    deadline = time.monotonic() + 60
    for folder in folders:
        while True:
            try:
                with locked(folder):
                    break
            except RunError:
                assert time.monotonic() < deadline
                time.sleep(0.05)


def test_a_program_that_outlives_its_terminal_ignores_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("backsweep.lab.runs.engine.leave_terminal", lambda: None)  # the test's own output
    with pytest.raises(KeyboardInterrupt), terminated_like_interrupted():
        signal.raise_signal(signal.SIGHUP)
    with terminated_like_interrupted():
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGHUP)
        signal.raise_signal(signal.SIGHUP)  # the second one of a closed terminal interrupts no tidying up
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does
    try:
        with terminated_like_interrupted():
            signal.raise_signal(signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_run_that_another_process_trains_is_not_removed(tmp_path: Path) -> None:
    (job,) = [each for each in small_grid("process", tmp_path, ("uer",)).jobs if "10000" in each.name]
    folder = Path(job.order["folder"])
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(job.order["configs"]["."]))
    (again,) = [each for each in small_grid("process", tmp_path, ("uer",)).jobs if "10000" in each.name]
    assert again.order["removed"] == [str(folder)]
    with locked(folder), pytest.raises(RunError, match="is being trained by another process"):
        work(again.order)
    assert (folder / "config.json").exists()
    assert work(again.order) == 0


def test_a_checkpoint_of_no_release_stops_only_its_own_run(tmp_path: Path) -> None:
    (job,) = [each for each in small_grid("process", tmp_path, ("uer",)).jobs if "10000" in each.name]
    folder = Path(job.order["folder"])
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(job.order["configs"]["."]))
    write_snapshot(folder / "checkpoints" / "a" / "state", {}, {}, kind=checkpoint.KIND, version=checkpoint.VERSION)
    (again,) = [each for each in small_grid("process", tmp_path, ("uer",)).jobs if "10000" in each.name]
    assert again.resumed
    with pytest.raises(RunError, match="this release of backsweep writes no such files"):
        work(again.order)


def test_killed_in_its_first_checkpoint_a_run_starts_again(tmp_path: Path) -> None:
    (job,) = [each for each in small_grid("process", tmp_path, ("uer",)).jobs if "10000" in each.name]
    folder = Path(job.order["folder"])
    (folder / "checkpoints" / "a" / "replay-0").mkdir(parents=True)
    (folder / "checkpoints" / "a" / "state").mkdir()
    (folder / "config.json").write_text(json.dumps(job.order["configs"]["."]))
    (again,) = [each for each in small_grid("process", tmp_path, ("uer",)).jobs if "10000" in each.name]
    assert (again.resumed, again.order["removed"]) == (False, [str(folder)])
    assert work(again.order) == 0
    # A damaged one is an error instead: it may be all that is left of a long run.
    (folder / "finished.json").unlink()
    state = folder / "checkpoints" / "a" / "state"
    state.mkdir(parents=True)
    (state / "manifest.json").write_text("{}")
    (again,) = [each for each in small_grid("process", tmp_path, ("uer",)).jobs if "10000" in each.name]
    assert again.resumed
    with pytest.raises(RunError, match="no checkpoint can be used"):
        work(again.order)


def test_runs_recorded_before_an_option_existed_are_known(tmp_path: Path) -> None:
    """Their configuration lacks the option; a golden name makes sure that none that comes later gives them another."""
    config = paper_config("minigrid/doorkey", method="ter", seed=100).to_json()
    assert configuration_key(config, frozenset()) == "961ba218ed13"
    fields = {field.name: field for field in dataclasses.fields(RunConfig)}
    for name, value in ADDED_LATER.items():
        assert json.loads(json.dumps(fields[name].default)) == value
    plan = small_grid("process", tmp_path)
    folder = Path(plan.jobs[0].order["folder"])
    folder.mkdir(parents=True)
    before = {name: value for name, value in plan.jobs[0].order["configs"]["."].items() if name not in ADDED_LATER}
    (folder / "config.json").write_text(json.dumps(before))
    (folder / "finished.json").write_text("{}")
    assert small_grid("process", tmp_path).finished == 1
    assert small_grid("process", tmp_path, encoder="bytes").finished == 0


def test_a_reader_who_has_seen_enough_is_no_error() -> None:
    command = [sys.executable, "-m", "backsweep", "experiment", "list"]
    read, write = os.pipe()
    os.close(read)
    try:
        ended = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, check=False)
    finally:
        os.close(write)
    assert (ended.returncode, ended.stderr) == (141, b"")


def test_one_is_not_many() -> None:
    assert [cli._count(number, "file") for number in (0, 1, 2)] == ["0 files", "1 file", "2 files"]
    assert [cli._count(number, "process") for number in (1, 1_000)] == ["1 process", "1,000 processes"]


def test_durations_in_words() -> None:
    assert [duration(seconds) for seconds in (5, 600, 7200, 400_000)] == ["5 s", "10 min", "2.0 h", "4.6 days"]


def test_a_part_of_a_question_can_be_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    part = ("--tasks", "minigrid/doorkey", "minigrid/unlock", "--lines", "ter", "uer")
    rate = ("--results", str(tmp_path), "--dry-run", "--steps-per-second", "1000", "--scale", "paper")
    assert call("run", "C3", *part, *rate) == 0
    assert "20 runs, 0 finished, 20 to do" in capsys.readouterr().out
    assert call("run", "C3", *part, "--seeds", "100", "103", *rate) == 0
    assert "8 runs, 0 finished, 8 to do" in capsys.readouterr().out
    # Of several questions each gives what it has of what is named.
    assert call("run", "C12", "C13", "--lines", "ter", "ter-pseudo", *rate) == 0
    assert "15 runs, 0 finished, 15 to do" in capsys.readouterr().out
    with pytest.raises(ValueError, match=r"no line 'ter-single' in these .*; they have uer, .*, ter, ter-pseudo"):
        call("run", "C12", "C13", "--lines", "ter-single", *rate)
    assert call("run", "C3", *part, "--seeds", "200", "200", "7", *rate) == 0
    assert "8 runs, 0 finished, 8 to do" in capsys.readouterr().out
    with pytest.raises(ValueError, match="must not be from 10000 to 10099 here, the seeds for tuning, got 10003"):
        call("run", "C3", "--seeds", "200", "10003", *rate)
    with pytest.raises(
        ValueError, match="must be from 10000 to 10099 here, the seeds for tuning, got 200; --scale laptop"
    ):
        call("run", "T1", "--seeds", "200", *rate)
    with pytest.raises(ValueError, match=r"no task 'minigrid/doorkye' in these .*; they have minigrid/doorkey"):
        call("run", "C3", "--tasks", "minigrid/doorkye", *rate)
    with pytest.raises(ValueError, match="no line 'dqn' in these questions at this scale; they have uer"):
        call("run", "C3", "--lines", "dqn", *rate)


@pytest.mark.parametrize(
    ("arguments", "groups"), [((), 2), (("--jobs", "2"), 1), (("--jobs", "2", "--groups", "3"), 3)]
)
def test_fleets_side_by_side_take_turns_anyway(
    arguments: tuple[str, ...], groups: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    def note(todo: list[jobs.Job], *rest: object, **more: object) -> tuple[list[object], bool]:
        asked.extend(job.order["session"]["groups"] for job in todo)
        return [], False

    monkeypatch.setattr("backsweep.lab.runs.engine.run_jobs", note)
    assert call("run", "C3", "--engine", "fleet", "--results", str(tmp_path), *arguments) == 0
    assert asked == [groups, groups]  # DisCor's runs, and the others'


CONTROL = """#!/bin/sh
if [ "$1" = -d ]; then
    [ -e {pipes}/forbidden ] && echo "not allowed here" >&2 && exit 1
    touch {pipes}/control; echo started >> {pipes}/log
else
    read word; rm {pipes}/control; echo "$word" >> {pipes}/log
fi
"""


def test_processes_share_a_gpu_through_mps_which_the_command_starts_and_stops(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bin").mkdir()
    running: list[bool] = []

    def note(todo: list[jobs.Job], *_: object) -> tuple[list[object], bool]:
        running.append((tmp_path / "control").exists())
        return [], False

    monkeypatch.setattr("backsweep.lab.runs.engine.run_jobs", note)
    monkeypatch.setenv("CUDA_MPS_PIPE_DIRECTORY", str(tmp_path))
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    fleets = ("run", "C3", "--engine", "fleet", "--results", str(tmp_path / "results"))
    on_gpu = (*fleets, "--device", "cuda", "--jobs", "2")

    assert call(*on_gpu) == 0
    assert "nvidia-cuda-mps-control was not found" in capsys.readouterr().err

    control = tmp_path / "bin" / "nvidia-cuda-mps-control"
    control.write_text(CONTROL.format(pipes=tmp_path))
    control.chmod(0o755)
    assert call(*fleets, "--jobs", "2") == call(*fleets, "--device", "cuda", "--jobs", "1") == 0
    assert not (tmp_path / "log").exists(), "one process, or none on a GPU, needs no MPS"
    assert capsys.readouterr().err == ""

    assert call(*on_gpu) == 0
    assert running == [False, False, False, True]
    assert (tmp_path / "log").read_text().split() == ["started", "quit"]
    assert "it stops with this command" in capsys.readouterr().err

    (tmp_path / "control").touch()  # somebody else's, which is left running
    assert call(*on_gpu) == 0
    assert (tmp_path / "control").exists()
    assert capsys.readouterr().err == ""

    (tmp_path / "control").unlink()
    (tmp_path / "forbidden").touch()
    assert call(*on_gpu) == 0
    assert "could not be started (not allowed here)" in capsys.readouterr().err


def test_fleets_on_a_gpu_are_one_per_core_where_they_can_share_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[int] = []
    monkeypatch.setattr(
        "backsweep.lab.runs.engine.run_jobs", lambda todo, *_: (asked.append(len(todo)), ([], False))[1]
    )
    monkeypatch.setattr("backsweep.cores.usable_cores", lambda: 7)
    monkeypatch.setenv("CUDA_MPS_PIPE_DIRECTORY", str(tmp_path))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    command = ("run", "C3", "--engine", "fleet", "--device", "cuda", "--results", str(tmp_path / "results"))
    assert call(*command) == 0
    (tmp_path / "control").touch()
    assert call(*command) == 0
    assert asked == [2, 7]  # without MPS the fewest possible: DisCor's runs, and the others'


@pytest.mark.parametrize(
    ("cores", "workers", "shares"), [(16, 6, [3, 3, 3, 3, 2, 2]), (16, 1, [16]), (2, 2, [1, 1]), (2, 3, [1, 1, 1])]
)
def test_cores_are_shared_out(cores: int, workers: int, shares: list[int]) -> None:
    assert shares_of(cores, workers) == shares


def test_runs_can_follow_the_released_code(tmp_path: Path) -> None:
    grid = Grid(("minigrid/lavacrossing-easy", "sokoban/5x5-1"), (Variant("uer", "uer"),), (100,))
    configs = [jobs.run_configuration(run) for run in grid.with_settings("released").runs()]
    assert [config["settings"] for config in configs] == ["released", "released"]
    assert [config["capacity"] for config in configs] == [1_000_000, 50_000]
    plain = [jobs.run_configuration(run) for run in grid.runs()]
    assert plain == [jobs.run_configuration(run) for run in grid.with_settings("paper").runs()]
    assert [config["settings"] for config in plain] == ["paper", "paper"]


def test_the_package_is_the_command() -> None:
    done = subprocess.run([sys.executable, "-m", "backsweep", "experiment", "list"], capture_output=True, text=True)
    assert done.returncode == 0
    assert "C24" in done.stdout


def test_no_process_outlives_an_error_of_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = small_grid("process", tmp_path).jobs
    started: list[subprocess.Popen[bytes]] = []

    def sleeps(*_: Any) -> subprocess.Popen[bytes]:
        started.append(subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]))
        return started[-1]

    def full(*_: Any) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr("backsweep.lab.runs.engine.worker_process", sleeps)
    monkeypatch.setattr(JobProgress, "show", full)
    with pytest.raises(OSError, match="no space left"):
        run_jobs(found, tmp_path / "logs", 1, JobProgress(found))
    assert [process.poll() for process in started] == [-signal.SIGTERM]


def test_seeds_of_a_study(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["experiment", "run", "C1", "--scale", "smoke", "--dry-run", "--results", str(tmp_path), "--seeds"]
    assert main([*command, "10007"]) == 0
    assert "tabular seed 10007" in capsys.readouterr().out
    assert main([*command, "7"]) == 2
    assert "--seeds must be from 10000 to 10099 here" in capsys.readouterr().err
