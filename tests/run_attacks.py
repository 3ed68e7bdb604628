"""Attacks on training: runs and fleets that are stopped by signals at random moments and resumed to their end."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

SIGNALS = [signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT]
METHODS = ["ter", "per", "ebu", "ter-shuffled", "uer", "graph"]
RUNS = 2 * int(os.environ.get("TORTURE_LONGER", "1"))
MOST_STARTS = 40
CHECKPOINT = "checkpoints/*/state/manifest.json"


def _forked(work: Callable[[], Any]) -> int:
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            work()
        os._exit(0)
    return child


def _stopped_to_the_end(
    draw: random.Random, folder: Path, work: Callable[[], Any], finished: Callable[[], bool], takes: float
) -> int:
    """Start `work` and stop it, again and again until it has come to its end; return how often it was stopped.

    `takes` may be far more than it takes now, so the first stop comes soon after the first checkpoint at the latest.
    """
    starts = stops = 0
    while not finished():
        starts += 1
        assert starts < MOST_STARTS, "it does not come to its end"
        child = _forked(work)
        # The first stops come anywhere in the time that the whole takes; after many it may go on as long as it wants.
        deadline = time.monotonic() + (draw.uniform(0.02, 0.8) * takes if stops < 8 else 600.0)
        stopped = False
        soon = time.monotonic() + draw.uniform(0.0, 0.2)
        while os.waitpid(child, os.WNOHANG)[0] == 0:
            if stops == 0 and time.monotonic() > soon and any(folder.rglob(CHECKPOINT)):
                deadline = 0.0
            if not stopped and time.monotonic() > deadline:
                stopped = True
                with contextlib.suppress(ProcessLookupError):
                    os.kill(child, draw.choice(SIGNALS))
            time.sleep(0.002)
        stops += stopped
    return stops


def _whole(folder: Path, configs: dict[str, Any]) -> float:
    """Train without a stop, in a process of its own, since nothing can be forked from one that has used OpenMP."""
    import torch  # noqa: F401  here, so that the processes forked from this one need not

    began = time.monotonic()
    os.waitpid(_forked(lambda: _start(folder, configs)), 0)
    return time.monotonic() - began


def _start(folder: Path, configs: dict[str, Any]) -> None:
    """Start the runs, or go on with them."""
    import torch

    from backsweep.agent import resume, train_fleet

    torch.set_num_threads(1)
    if any(folder.rglob(CHECKPOINT)):
        resume(folder, quiet=True, checkpoint_interval=100)
    else:
        train_fleet(configs, folder, quiet=True, checkpoint_interval=100, restart=True)


def stopped_runs(draw: random.Random, folder: Path) -> int:
    """Runs stopped at random moments and resumed: the same records as those of runs that nobody stopped."""
    from trainer_helpers import chain, comparable_records

    runs = 0
    for number in range(RUNS):
        config = {".": chain(method=draw.choice(METHODS), steps=1_200, seed=draw.randrange(1000))}
        whole, run = folder / f"whole-{number}", folder / f"run-{number}"
        takes = _whole(whole, config)
        finished = (run / "finished.json").exists
        runs += _stopped_to_the_end(draw, run, lambda run=run, config=config: _start(run, config), finished, takes) > 0
        assert comparable_records(run) == comparable_records(whole)
    return runs


def stopped_fleets(draw: random.Random, folder: Path) -> int:
    """Fleets of several methods, stopped and resumed: the same records for each of their runs."""
    from trainer_helpers import chain, comparable_records

    fleets = 0
    for number in range(RUNS // 2):
        methods = draw.sample(METHODS, 3)
        configs = {
            method: chain(method=method, steps=1_200, seed=draw.randrange(1000), dtype="float64") for method in methods
        }
        whole, fleet = folder / f"whole-{number}", folder / f"fleet-{number}"
        takes = _whole(whole, configs)

        def finished(fleet: Path = fleet, methods: list[str] = methods) -> bool:
            return all((fleet / method / "finished.json").exists() for method in methods)

        def work(fleet: Path = fleet, configs: dict[str, Any] = configs) -> None:
            _start(fleet, configs)

        fleets += _stopped_to_the_end(draw, fleet, work, finished, takes) > 0
        for method in methods:
            assert comparable_records(fleet / method) == comparable_records(whole / method), method
    return fleets
