"""The progress of running jobs, from the files that their runs write."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

from backsweep.lab.claims.bounds import left_bounds, return_bounds
from backsweep.lab.records import STEP
from backsweep.lab.runs.jobs import Job
from backsweep.run_files import FINISHED

_EVALUATION = b'{"kind":"evaluation"'


class RunWatch:
    """One run: its step, whether it is finished, and whether its values left the bounds of returns."""

    def __init__(self, records: Path, config: dict[str, Any]) -> None:
        self.records = records
        self.step = 0
        self.finished = False
        self.diverged = False
        self._bounds = _bounds(json.dumps({name: config.get(name) for name in _BOUNDING}))
        self._read = 0

    def look(self) -> None:
        """Read the complete lines written since the last call."""
        if self.finished:
            return
        self.finished = (self.records.parent / FINISHED).exists()  # read first: all records are then written
        try:
            with open(self.records, "rb") as file:
                if file.seek(0, 2) < self._read:  # an interrupted run resumes before its last records
                    self._read = 0
                file.seek(self._read)
                new = file.read()
        except OSError:
            return
        new = new[: new.rfind(b"\n") + 1]
        self._read += len(new)
        if steps := STEP.findall(new):
            self.step = int(steps[-1])
        if self._bounds is not None and not self.diverged:
            self.diverged = any(
                left_bounds(value, self._bounds)
                for line in new.splitlines()
                if line.startswith(_EVALUATION) and (value := _probe(line)) is not None
            )


class JobWatch:
    """The runs of a job."""

    def __init__(self, job: Job) -> None:
        self.job = job
        configs = job.order.get("configs", {}).values()
        self.runs = [RunWatch(records, config) for records, config in zip(job.watched, configs, strict=True)]
        self.look()
        self.begun_at = self.step if job.resumed else 0
        """Steps taken before this command started."""

    def look(self) -> None:
        """Update all of them."""
        for run in self.runs:
            run.look()

    @property
    def step(self) -> int:
        """Steps taken by all its runs."""
        return sum(run.step for run in self.runs)

    @property
    def share(self) -> float:
        """The share of steps that is done; 0 for studies."""
        return min(1.0, self.step / self.job.steps) if self.runs and self.job.steps else 0.0

    @property
    def finished(self) -> int:
        """The number of finished runs."""
        return sum(run.finished for run in self.runs)

    @property
    def diverged(self) -> list[RunWatch]:
        """The runs whose values left the bounds of returns."""
        return [run for run in self.runs if run.diverged]


def trained(watches: Iterable[JobWatch]) -> list[JobWatch]:
    """Return the training jobs; studies have no steps."""
    return [watch for watch in watches if watch.runs]


_BOUNDING = ("task", "task_options", "settings", "faithful")


@lru_cache(maxsize=256)
def _bounds(config: str) -> tuple[float, float] | None:
    found = {name: value for name, value in json.loads(config).items() if value is not None}
    try:
        return return_bounds(found)
    except ValueError:  # the run itself reports what is wrong with its task
        return None


def _probe(line: bytes) -> float | None:
    try:
        value = json.loads(line).get("probe_q")
    except ValueError:
        return None
    return None if value is None else float(value)
