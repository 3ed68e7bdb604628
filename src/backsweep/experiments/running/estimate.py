"""How long it would take on this machine: a small piece of each kind of work is done and timed."""

from __future__ import annotations

import dataclasses
import json
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from backsweep.experiments.question import Study
from backsweep.experiments.running.jobs import Job

PROBE_WARMUP, PROBE_STEPS = 40, 160


def estimate(jobs: list[Job], workers: int) -> float:
    """Return seconds for all jobs, spread over `workers` processes."""
    seconds = [_study_seconds(job) if job.order["kind"] == "study" else _training_seconds(job) for job in jobs]
    if not seconds:
        return 0.0
    # Jobs cannot be cut: no better than the longest, no better than a fair share.
    return max(max(seconds), sum(seconds) / min(workers, len(seconds)))


_unit_seconds: dict[str, float] = {}
_step_seconds: dict[tuple[str, str], tuple[float, float]] = {}


def _study_seconds(job: Job) -> float:
    from backsweep.experiments.studies import STUDIES

    name = job.order["study"]
    if name not in _unit_seconds:
        kind = STUDIES[name]
        sample = Study(name, (0,), kind.sample)
        _exhaust(kind.records(0, **sample.arguments))  # compiles whatever has to be
        started = time.perf_counter()
        _exhaust(kind.records(0, **sample.arguments))
        _unit_seconds[name] = (time.perf_counter() - started) / kind.work(**sample.arguments)
    return job.steps * _unit_seconds[name]


def _training_seconds(job: Job) -> float:
    total = 0.0
    for config in job.order["configs"].values():
        family = str(config["task"]).split("/")[0]
        key = (family, f"{config['method']} {config['ratio']} {config['batch_size']} {config['convolutions']}")
        if key not in _step_seconds:
            _step_seconds[key] = _probe(config)
        per_step, per_episode = _step_seconds[key]
        evaluations = config["steps"] // config["evaluation_interval"]
        total += config["steps"] * per_step + evaluations * config["evaluation_episodes"] * per_episode
    return total


def _probe(config: dict[str, Any]) -> tuple[float, float]:
    """Return seconds per step and per evaluated episode, from a short run."""
    from backsweep.trainer import RunConfig, train

    short = dataclasses.replace(
        RunConfig.from_json(config),
        steps=PROBE_STEPS,
        warmup_steps=PROBE_WARMUP,
        record_interval=20,
        evaluation_interval=PROBE_STEPS,
        evaluation_episodes=2,
        capacity=1_000,
        shuffle=100,
        probe_size=8,
        exact=False,
    )
    with tempfile.TemporaryDirectory() as folder:
        train(short, Path(folder) / "run", quiet=True, checkpoint_interval=0)
        lines = (Path(folder) / "run" / "records.jsonl").read_text().splitlines()
    timings = [record for line in lines if (record := json.loads(line))["kind"] == "timing"]
    # The first records pay for compilation; the evaluation comes after the last one.
    steady = sorted(sum(entry["seconds"].values()) / max(entry["steps"], 1) for entry in timings[-4:])
    per_step = steady[len(steady) // 2]
    # An untrained agent plays to the time limit: as many steps as an episode can have, without updates.
    return per_step, 50 * per_step


def _exhaust(records: Iterable[Any]) -> None:
    for _ in records:
        pass
