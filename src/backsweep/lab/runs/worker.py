"""One job in its own process: `python -m backsweep.lab.runs.worker ORDER`, where ORDER is JSON."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import Any

from backsweep.lab.claims.evidence import CONFIG, FINISHED
from backsweep.lab.runs.fleets import FLEET_FILE

LOCK_PATIENCE = 180.0
"""Seconds that a run waits for the lock of the process that had it before."""
PR_SET_PDEATHSIG = 1


def work(order: dict[str, Any]) -> int:
    """Do an order; return the exit code: 0 done, 1 failed, above 128 stopped by a signal."""
    if order["kind"] == "study":
        from backsweep.lab.runs.lines import write_lines
        from backsweep.lab.studies.registry import STUDIES

        records = STUDIES[order["study"]].records(order["seed"], **order["arguments"])
        count = write_lines(Path(order["file"]), records)
        print(f"{order['file']}: {count} records")
        return 0
    return _train(order)


def _train(order: dict[str, Any]) -> int:
    from backsweep.agent import RunConfig, SessionConfig, resume
    from backsweep.agent.session.training import start

    folder = Path(order["folder"])
    # A checkpoint is as large as the replay, and a finished run needs none.
    session: dict[str, Any] = {"device": order["device"], "quiet": True, "threads": 1, "final_checkpoint": False}
    session.update(order.get("session", {}))
    kind, configs = order["kind"], order["configs"]
    if order.get("again"):
        kind, configs = _what_is_left(folder, configs)
        if kind == "finished":
            return 0
    if kind == "resume":
        results = resume(folder, **session)
    else:
        for path in order.get("removed", []):
            clear_away(Path(path))
        configs = {name: RunConfig.from_json(config) for name, config in configs.items()}
        results = start(folder, configs, SessionConfig(**session))
    for result in results:
        state = "finished" if result.finished else "stopped"
        print(f"{result.folder}: {result.error or state} at step {result.step}")
    if any(result.error is not None for result in results):
        return 1
    stopped = [result.stopped_by for result in results if result.stopped_by is not None]
    return 128 + stopped[0] if stopped else 0


def _what_is_left(folder: Path, configs: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return what to do about runs that another process may have begun, and with which of them.

    The other process is gone, but a file system on the network may hold its lock for a while.
    """
    from backsweep.agent.session import checkpoint
    from backsweep.agent.session.folder import RunError, only_user

    deadline = time.monotonic() + LOCK_PATIENCE
    while folder.exists():
        try:
            with only_user(folder):
                break
        except RunError:
            if time.monotonic() > deadline:
                raise
            time.sleep(1.0)
    left = {name: config for name, config in configs.items() if not (folder / name / FINISHED).exists()}
    if not left:
        return "finished", left
    if checkpoint.there_is_one(folder):
        return "resume", left
    checkpoint.remove(folder)
    for name in left:
        shutil.rmtree(folder / name, ignore_errors=True)
    return "train", left


def die_with(parent: int) -> None:
    """Let the system kill this process when its parent dies: another one is then going to take its place."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)


def clear_away(folder: Path) -> None:
    """Remove an unfinished run that restarts, and its fleet's folder if it was the last run there."""
    if not folder.exists() or (folder / FINISHED).exists():
        return
    shutil.rmtree(folder)
    fleet = folder.parent
    if (fleet / FLEET_FILE).exists() and not any(fleet.glob(f"*/{CONFIG}")):
        shutil.rmtree(fleet)


if __name__ == "__main__":
    told = json.loads(sys.argv[1])
    if "parent" in told:
        die_with(told["parent"])
    sys.exit(work(told))
