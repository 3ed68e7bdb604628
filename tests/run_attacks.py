"""Attacks on training: runs and fleets that are stopped by signals at random moments and resumed to their end."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

SIGNALS = [signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT]
METHODS = ["ter", "per", "ebu", "ter-shuffled", "uer", "graph"]
CONFIGS = int(os.environ.get("TORTURE_LONGER", "1"))
RUNS_EACH, FLEETS_EACH = 4, 2
"""How many runs, stopped at moments of their own, are compared with one that nobody stops."""
MOST_STARTS = 40
CHECKPOINT = "checkpoints/*/state/manifest.json"
SHORT = {"steps": 600, "warmup_steps": 200, "evaluation_interval": 250}
CHECKPOINT_INTERVAL = 50


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
    most_stops = draw.randrange(1, 4)
    while not finished():
        starts += 1
        assert starts < MOST_STARTS, "it does not come to its end"
        child = _forked(work)
        # The first stops come anywhere in the time that the whole takes; after them it may go on as long as it wants.
        deadline = time.monotonic() + (draw.uniform(0.02, 0.8) * takes if stops < most_stops else 600.0)
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
    began = time.monotonic()
    os.waitpid(_forked(lambda: _start(folder, configs)), 0)
    return time.monotonic() - began


def _start(folder: Path, configs: dict[str, Any]) -> None:
    """Start the runs, or go on with them."""
    import torch

    from backsweep.agent import resume, train_fleet

    torch.set_num_threads(1)
    if any(folder.rglob(CHECKPOINT)):
        resume(folder, quiet=True, checkpoint_interval=CHECKPOINT_INTERVAL)
    else:
        train_fleet(configs, folder, quiet=True, checkpoint_interval=CHECKPOINT_INTERVAL, restart=True)


def stopped_runs(draw: random.Random, folder: Path) -> int:
    """Runs stopped at random moments and resumed: the same records as those of runs that nobody stopped."""
    from trainer_helpers import chain

    configs = ({".": chain(method=draw.choice(METHODS), seed=draw.randrange(1000), **SHORT)} for _ in range(CONFIGS))
    return sum(_compared(draw, folder / f"{i}", config, RUNS_EACH) for i, config in enumerate(configs))


def stopped_fleets(draw: random.Random, folder: Path) -> int:
    """Fleets of several methods, stopped and resumed: the same records for each of their runs."""
    from trainer_helpers import chain

    fleets = 0
    for number in range(CONFIGS):
        methods = draw.sample(METHODS, 3)
        configs = {name: chain(method=name, seed=draw.randrange(1000), dtype="float64", **SHORT) for name in methods}
        fleets += _compared(draw, folder / f"{number}", configs, FLEETS_EACH)
    return fleets


def _compared(draw: random.Random, folder: Path, configs: dict[str, Any], times: int) -> int:
    """Compare fleets that are stopped and resumed with one that is not; return how many were really stopped."""
    from trainer_helpers import comparable_records

    stopped = 0
    takes = _whole(folder / "whole", configs)
    for number in range(times):
        own = folder / f"stopped-{number}"

        def finished(own: Path = own) -> bool:
            return all((own / name / "finished.json").exists() for name in configs)

        def work(own: Path = own) -> None:
            _start(own, configs)

        stopped += _stopped_to_the_end(draw, own, work, finished, takes) > 0
        for name in configs:
            assert comparable_records(own / name) == comparable_records(folder / "whole" / name), name
    shutil.rmtree(folder)
    return stopped
