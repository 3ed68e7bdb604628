"""Estimates the time of jobs by timing a short burst of each kind on the chosen device."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from backsweep.lab.claims.question import Study
from backsweep.lab.runs.jobs import Job
from backsweep.run_files import RECORDS

PROBE_WARMUP, PROBE_STEPS, PROBE_EPISODES = 40, 240, 10
MOST_CPU_RUNS = 8  # on a CPU time is proportional to runs, so a few are enough


@dataclass(frozen=True)
class Pace:
    """How fast training is: seconds per environment step of one run, and per evaluated episode."""

    step: float
    episode: float


def estimate(jobs: list[Job], workers: int, steps_per_second: float | None = None) -> float:
    """Return seconds for all jobs, `workers` at a time.

    `steps_per_second` is the speed of one training process, all its runs and evaluations together; without it a short
    burst of each kind of process is measured, and how long a process takes to start.
    """
    seconds = [
        _study_seconds(job) + start_seconds()
        if job.order["kind"] == "study"
        else (
            _training_seconds(job) + start_seconds() if steps_per_second is None else job.steps_left / steps_per_second
        )
        for job in jobs
    ]
    if not seconds:
        return 0.0
    # Jobs cannot be split: the time is at least that of the longest, and at least a fair share.
    return max(max(seconds), sum(seconds) / min(workers, len(seconds)))


@cache
def start_seconds() -> float:
    """Return the seconds that a new process takes before its work begins."""
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import backsweep.lab.studies.registry"], check=True)
    return time.perf_counter() - began


_unit_seconds: dict[str, float] = {}
_paces: dict[str, Pace] = {}


def _study_seconds(job: Job) -> float:
    from backsweep.lab.studies.registry import STUDIES

    name = job.order["study"]
    if name not in _unit_seconds:
        kind = STUDIES[name]
        sample = Study(name, (0,), kind.sample)
        _exhaust(kind.records(0, **sample.arguments))  # compiles the kernels
        started = time.perf_counter()
        _exhaust(kind.records(0, **sample.arguments))
        _unit_seconds[name] = (time.perf_counter() - started) / kind.work(**sample.arguments)
    return job.steps * _unit_seconds[name]


def _training_seconds(job: Job) -> float:
    """Return the time of a run or of a fleet, in which all runs share the time of a step."""
    configs = list(job.order["configs"].values())
    pace = _pace(configs, job.order["device"])
    episodes = sum(
        config["steps"] // config["evaluation_interval"] * config["evaluation_episodes"] for config in configs
    )
    whole = job.steps * pace.step + int(episodes) * pace.episode
    return whole * job.steps_left / job.steps


def _pace(configs: list[dict[str, Any]], device: str) -> Pace:
    """Return the pace of runs like these; it is measured once for each kind."""
    kinds = sorted(
        f"{str(config['task']).split('/')[0]} {config['method']} {config['ratio']} {config['batch_size']} "
        f"{config['convolutions']}"
        for config in configs
    )
    if device == "cpu":
        kinds = sorted(set(kinds))
    name = json.dumps([kinds, device, min(len(configs), MOST_CPU_RUNS)])
    if name not in _paces:
        some = configs[:: max(1, len(configs) // MOST_CPU_RUNS)] if device == "cpu" else configs
        _paces[name] = _measure(some, device)
    return _paces[name]


def _measure(configs: list[dict[str, Any]], device: str) -> Pace:
    """Return the pace of a short run, or of a short fleet."""
    from backsweep.agent import RunConfig, train, train_fleet

    short = {
        f"run-{place}": dataclasses.replace(
            RunConfig.from_json(config),
            steps=PROBE_STEPS,
            warmup_steps=PROBE_WARMUP,
            record_interval=20,
            evaluation_interval=PROBE_STEPS // 3,
            evaluation_episodes=PROBE_EPISODES,
            capacity=1_000,
            shuffle=100,
            probe_size=8,
            exact=False,
        )
        for place, config in enumerate(configs)
    }
    session: dict[str, Any] = {"quiet": True, "checkpoint_interval": 0, "device": device}
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "run"
        if len(short) == 1:
            train(short["run-0"], place, **session)
        else:
            train_fleet(short, place, **session)
            place = place / "run-0"
        lines = (place / RECORDS).read_text().splitlines()
    timings = [record["seconds"] for line in lines if (record := json.loads(line))["kind"] == "timing"]
    # The first records include compilation; an evaluation is in the record after it. An untrained agent plays to the
    # time limit, so the estimate assumes the longest evaluations.
    spent = sorted(sum(entry.values()) - entry.get("evaluation", 0.0) for entry in timings[-4:])
    evaluation = [entry["evaluation"] for entry in timings if entry.get("evaluation")][-1]
    per_turn = spent[len(spent) // 2] / 20
    return Pace(per_turn / len(short), evaluation / (PROBE_EPISODES * len(short)))


def _exhaust(records: Iterable[Any]) -> None:
    for _ in records:
        pass
