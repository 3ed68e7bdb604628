"""One job on a node of a cluster, in its own process as on a single machine."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from backsweep.lab.runs.engine import worker_process
from backsweep.lab.runs.remote_folder import RemoteFolder, is_url, newest_state

LOOK_EVERY = 1.0


@dataclass(frozen=True)
class Assignment:
    """A job for a node. The paths in its order begin with `root`, the driver's results folder."""

    order: dict[str, Any]
    root: str
    results: str
    """The node's results folder: the same path, or a URL."""
    log_name: str
    runs: int
    threads: int


def carry_out(assignment: Assignment) -> int:
    """Run an assignment on this node and return the exit code of its process.

    A job that was started before, here or on a lost node, resumes from its last checkpoint.
    """
    order = assignment.order
    if not is_url(assignment.results):
        log = Path(assignment.results, "logs", assignment.log_name)
        return _run(order, log, assignment, lambda: None)
    with tempfile.TemporaryDirectory(prefix="backsweep-") as scratch:
        remote = RemoteFolder(assignment.results, Path(scratch))
        place = order["file"] if order["kind"] == "study" else order["folder"]
        name = Path(place).relative_to(assignment.root).as_posix()
        moved = {"file" if order["kind"] == "study" else "folder": str(Path(scratch, name))}
        if order["kind"] != "study":
            remote.pull(name, checkpoints=True)
        sent = newest_state(Path(scratch, name))

        def send_checkpoints() -> None:
            nonlocal sent
            if order["kind"] != "study" and (now := newest_state(Path(scratch, name))) != sent:
                remote.push(name)
                sent = now

        try:
            return _run({**order, **moved}, Path(scratch, "logs", assignment.log_name), assignment, send_checkpoints)
        finally:
            if order["kind"] != "study":
                remote.push(name)
            elif Path(scratch, name).exists():
                remote.push_file(name)
            remote.push_file(f"logs/{assignment.log_name}")


def _run(order: dict[str, Any], log: Path, assignment: Assignment, look: Callable[[], None]) -> int:
    """Run the worker to its end; when cancelled, let it write a checkpoint first."""
    log.parent.mkdir(parents=True, exist_ok=True)
    # The worker dies with its parent, so that a retry never overlaps with it.
    order = {**order, "again": True, "parent": os.getpid()}
    process = worker_process(order, log, assignment.runs, assignment.threads)
    try:
        while process.poll() is None:
            time.sleep(LOOK_EVERY / 5)
            look()
        return process.returncode
    except BaseException:
        return _stop(process)


def _stop(process: subprocess.Popen[bytes]) -> int:
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
    process.wait()
    return process.returncode
