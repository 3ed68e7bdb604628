"""Questions over a real Ray cluster: a node that dies, a process that is killed, results behind a URL."""

from __future__ import annotations

import argparse
import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ray", reason="needs ray: make test-integrations installs it")

import ray

from backsweep.lab import cli
from backsweep.lab.claims.question import Grid, Variant
from backsweep.lab.runs import jobs
from backsweep.lab.runs.progress import JobProgress
from backsweep.lab.runs.ray_engine import Cluster, Resources, run_jobs_on_ray
from backsweep.lab.runs.remote_folder import RemoteFolder
from backsweep.lab.runs.worker import work

pytestmark = pytest.mark.filterwarnings("ignore")  # Ray's own
CHAIN = {
    "steps": 4_000,
    "warmup_steps": 100,
    "evaluation_interval": 500,
    "evaluation_episodes": 2,
    "record_interval": 100,
    "probe_size": 8,
    "capacity": 300,
    "epsilon_steps": 1_000,
}
LONG = {"steps": 10_000}
"""Long enough that no run has ended when the last one writes its first checkpoint."""
SESSION = {"checkpoint_interval": 300}


def grid_jobs(root: Path, seeds: int, **more: Any) -> list[jobs.Job]:
    grid = Grid(("nchain-6",), (Variant("ter", "ter"),), tuple(range(10_000, 10_000 + seeds)), {**CHAIN, **more})
    found = jobs.plan(root, [grid], "process").jobs
    for job in found:
        job.order["session"] = SESSION
    return found


def evaluations(folder: Path) -> list[dict[str, Any]]:
    """Return what a run found, without what its time was spent on."""
    lines = [json.loads(line) for line in (folder / "records.jsonl").read_text().splitlines()]
    return [line for line in lines if line["kind"] == "evaluation"]


def once(condition: Callable[[], Any], then: Callable[[], Any]) -> threading.Thread:
    """Do something as soon as a condition holds, while others are at work."""

    def watch() -> None:
        deadline = time.monotonic() + 240
        while not condition():
            assert time.monotonic() < deadline
            time.sleep(0.02)
        then()

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    return thread


def sessions(folder: Path) -> list[str]:
    return [json.loads(line)["event"] for line in (folder / "sessions.jsonl").read_text().splitlines()]


def test_a_node_dies_during_a_sweep_and_nothing_is_lost(cluster: Any, tmp_path: Path) -> None:
    node = cluster.add_node(num_cpus=2, object_store_memory=80 << 20)
    cluster.wait_for_nodes()
    root = tmp_path / "results"
    todo = grid_jobs(root, 3, **LONG)
    folders = [Path(job.order["folder"]) for job in todo]
    # Each job takes a whole node, so one of them runs on the node that dies.
    watching = once(
        lambda: all(any((folder / "checkpoints").glob("*/state/manifest.json")) for folder in folders),
        lambda: cluster.remove_node(node, allow_graceful=False),
    )
    place = Cluster(str(root), root, Resources(cores=2, retries=2))
    failures, interrupted = run_jobs_on_ray(todo, place, JobProgress(todo))
    watching.join()
    assert (failures, interrupted) == ([], False)
    assert all((folder / "finished.json").exists() for folder in folders)
    assert grid_jobs(root, 3, **LONG) == []
    histories = [sessions(folder) for folder in folders]
    assert sum("resumed" in history for history in histories) == 1
    # A run that went on elsewhere found what one that was left alone finds.
    (moved,) = [folder for folder, history in zip(folders, histories, strict=True) if "resumed" in history]
    alone = grid_jobs(tmp_path / "alone", 3, **LONG)
    (same,) = [job for job in alone if Path(job.order["folder"]).name == moved.name]
    assert work(same.order) == 0
    assert evaluations(moved) == evaluations(Path(same.order["folder"]))
    assert len(evaluations(moved)) == 20


def ancestors(process: int) -> set[int]:
    """Return the processes that started a process, directly or not."""
    found: set[int] = set()
    while process > 1:
        state = Path(f"/proc/{process}/stat").read_text()
        process = int(state.rpartition(")")[2].split()[1])
        found.add(process)
    return found


def worker_of(folder: Path) -> int | None:
    """Return the process that trains a run: of this test, as others on this machine may train one of that name."""
    for entry in Path("/proc").iterdir():
        try:
            told = (entry / "cmdline").read_bytes()
            if b"backsweep.lab.runs.worker" in told and folder.name.encode() in told:
                process = int(entry.name)
                if os.getpid() in ancestors(process):
                    return process
        except OSError:
            continue
    return None


def test_results_behind_a_url_and_a_process_that_is_killed(cluster: Any, tmp_path: Path) -> None:
    url, scratch = f"file://{tmp_path}/bucket", tmp_path / "scratch"
    remote = RemoteFolder(url, scratch)
    todo = grid_jobs(scratch, 2)
    names = [Path(job.order["folder"]).relative_to(scratch) for job in todo]
    there = [tmp_path / "bucket" / name for name in names]
    killed: list[int] = []

    def kill() -> None:
        process = worker_of(there[0])
        assert process is not None
        killed.append(process)
        os.kill(process, signal.SIGKILL)

    watching = once(lambda: any((there[0] / "checkpoints").glob("*/state/manifest.json")), kill)
    place = Cluster(url, scratch, Resources(retries=1), remote)
    failures, _ = run_jobs_on_ray(todo, place, JobProgress(todo))
    watching.join()
    assert failures == []
    assert len(killed) == 1
    assert sessions(there[0]).count("resumed") == 1
    for name, folder in zip(names, there, strict=True):
        assert (folder / "finished.json").exists()
        assert not any((folder / "checkpoints").rglob("*.*"))
        assert (scratch / name / "finished.json").exists()  # brought here for the summary
        assert len(evaluations(folder)) == 8
    assert len(list((tmp_path / "bucket" / "logs").iterdir())) == 2
    # Somebody who comes later finds it finished.
    later = RemoteFolder(url, tmp_path / "later")
    later.pull("", checkpoints=False)
    assert grid_jobs(tmp_path / "later", 2) == []


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Let Ctrl-C raise KeyboardInterrupt, also where the process was started in the background and ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupted_sweep_goes_on(cluster: Any, tmp_path: Path) -> None:
    # So long that it cannot end before the interrupt.
    long = {"steps": 2_000_000, "evaluation_interval": 2_000_000}
    todo = grid_jobs(tmp_path, 1, **long)
    folder = Path(todo[0].order["folder"])
    watching = once(
        lambda: any((folder / "checkpoints").glob("*/state/manifest.json")),
        lambda: os.kill(os.getpid(), signal.SIGINT),
    )
    place = Cluster(str(tmp_path), tmp_path, Resources())
    assert run_jobs_on_ray(todo, place, JobProgress(todo)) == ([], True)
    watching.join()
    assert sessions(folder)[-1] == "stopped"
    (again,) = grid_jobs(tmp_path, 1, **long)
    assert again.resumed


def test_failures_are_reported_with_their_logs_and_not_tried_again(cluster: Any, tmp_path: Path) -> None:
    todo = grid_jobs(tmp_path, 2, steps=300, evaluation_interval=100)
    todo[0].order["configs"]["."]["task"] = "nchain-nonsense"
    failures, _ = run_jobs_on_ray(todo, Cluster(str(tmp_path), tmp_path, Resources()), JobProgress(todo))
    (failure,) = failures
    assert failure.code == 1
    assert "nchain-nonsense" in failure.tail()
    assert failure.log.read_text().count("RunError: unknown task") == 1
    assert (Path(todo[1].order["folder"]) / "finished.json").exists()


def test_the_command(cluster: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def call(*arguments: str) -> int:
        parser = argparse.ArgumentParser()
        cli.add_commands(parser.add_subparsers(required=True))
        parsed = parser.parse_args(["experiment", "run", *arguments])
        return int(parsed.run(parsed))

    results = f"file://{tmp_path}/bucket"
    assert call("C20", "--engine", "ray", "--results", results) == 0
    assert "1 run, 0 finished; 1 task to do; the cluster has room for 4 at a time" in capsys.readouterr().out
    assert len(list((tmp_path / "bucket" / "sweep-order").glob("*.jsonl.gz"))) == 1
    assert call("C20", "--engine", "ray", "--results", results) == 0
    assert "the run is finished" in capsys.readouterr().out
    with pytest.raises(ValueError, match="--results must be a folder, got s3://here: URLs are for --engine ray"):
        call("C20", "--results", "s3://here")
    with pytest.raises(ValueError, match="--cores must be above 0, got 0"):
        call("C20", "--engine", "ray", "--cores", "0")
    with pytest.raises(ValueError, match=r"--gpus must be a part of one GPU or a whole number, got 1\.5"):
        call("C20", "--engine", "ray", "--gpus", "1.5")
    assert ray.is_initialized()
