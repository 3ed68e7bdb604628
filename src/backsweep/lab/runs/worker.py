"""One job in its own process: `python -m backsweep.lab.runs.worker ORDER`, where ORDER is JSON."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import shutil
import sys
import time
from pathlib import Path
from typing import Any

from backsweep.run_files import CONFIG, FINISHED, FLEET

LOCK_PATIENCE = 180.0
"""Seconds to wait for the lock of an earlier process."""
PR_SET_PDEATHSIG = 1


def work(order: dict[str, Any]) -> int:
    """Carry out an order; return the exit code: 0 done, 1 failed, above 128 stopped by a signal."""
    if order["kind"] == "study":
        from backsweep.lab.records import write_lines
        from backsweep.lab.studies.registry import STUDIES

        records = STUDIES[order["study"]].records(order["seed"], **order["arguments"])
        count = write_lines(Path(order["file"]), records)
        print(f"{order['file']}: {count} records")
        return 0
    return _train(order)


def _train(order: dict[str, Any]) -> int:
    from backsweep.agent import RunConfig, SessionConfig, resume
    from backsweep.agent.session.session import exit_code
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
            remove_unfinished(Path(path))
        configs = {name: RunConfig.from_json(config) for name, config in configs.items()}
        results = start(folder, configs, SessionConfig(**session))
    for result in results:
        state = "finished" if result.finished else "stopped"
        print(f"{result.folder}: {result.error or state} at step {result.step}")
    return exit_code(results)


def _what_is_left(folder: Path, configs: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return what to do with runs that a lost process may have started, and which of them are left.

    A network file system may hold the lost process's lock for a while.
    """
    from backsweep.agent.session.folder import RunError, locked

    deadline = time.monotonic() + LOCK_PATIENCE
    while folder.exists():
        try:
            with locked(folder):  # until what is left of a run is removed: another process may be about to train it
                return _left_in(folder, configs)
        except RunError:
            if time.monotonic() > deadline:
                raise
            time.sleep(1.0)
    return "train", configs


def _left_in(folder: Path, configs: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    from backsweep.agent.session import checkpoint

    left = {name: config for name, config in configs.items() if not (folder / name / FINISHED).exists()}
    if not left:
        return "finished", left
    # The process may have died when the runs in the checkpoint were finished, and those that are left had failed.
    if checkpoint.exists(folder) and any(checkpoint.holds(folder, name) for name in left):
        return "resume", left
    checkpoint.remove(folder)
    for name in left:
        shutil.rmtree(folder / name, ignore_errors=True)
    return "train", left


def die_with(parent: int, number: int) -> None:
    """Let the system send this process a signal when its parent dies."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, number)
    if os.getppid() != parent:
        os.kill(os.getpid(), number)


def remove_unfinished(folder: Path) -> None:
    """Remove an unfinished run, and its fleet's folder if no other run is left in it.

    Another process may be training it: that raises an error, and nothing is removed. Of a fleet that has left the run
    behind it may train the others.
    """
    from backsweep.agent.session import checkpoint
    from backsweep.agent.session.folder import locked

    if not folder.exists():
        return
    in_fleet = (folder.parent / FLEET).exists()
    place = folder.parent if in_fleet else folder
    left_behind = in_fleet and checkpoint.exists(place) and not checkpoint.holds(place, folder.name)
    with contextlib.nullcontext() if left_behind else locked(place):
        if (folder / FINISHED).exists():
            return
        shutil.rmtree(folder)
        if in_fleet and not left_behind and not any(place.glob(f"*/{CONFIG}")):
            shutil.rmtree(place)


if __name__ == "__main__":
    order = json.loads(sys.argv[1])
    if "parent" in order:
        die_with(order["parent"], order["parent_lost"])
    sys.exit(work(order))
