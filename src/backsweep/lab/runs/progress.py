"""One display for all jobs: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from backsweep.lab.runs.jobs import Job
from backsweep.lab.runs.steps import last_step

LINE_EVERY = 30.0
LOOK_EVERY = 2.0


class JobProgress:
    """Shows how many jobs are done and how far the running ones are."""

    def __init__(self, total: int, console: Console | None = None) -> None:
        self._console = Console() if console is None else console
        self._total, self._done, self._failed = total, 0, 0
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        self._last = time.monotonic()

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._bar = Progress(
                TextColumn("{task.completed:.1f} of {task.total:.0f} jobs"),
                BarColumn(),
                TimeElapsedColumn(),
                TextColumn("left"),
                TimeRemainingColumn(),
                TextColumn("{task.description}"),
                console=self._console,
            )
            self._task = self._bar.add_task("", total=self._total)
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def show(self, active: list[Job], waiting: int) -> None:
        """Show the state of things, if it is time."""
        now = time.monotonic()
        if now - self._last < (LOOK_EVERY if self._bar is not None else LINE_EVERY):
            return
        self._last = now
        shares = [_share(job) for job in active]
        if self._bar is not None and self._task is not None:
            names = ", ".join(job.name for job in active)
            self._bar.update(self._task, completed=self._done + sum(shares), description=names)
        else:
            names = ", ".join(f"{job.name} ({share:.0%})" for job, share in zip(active, shares, strict=True))
            self._print(f"{self._done} of {self._total} done, {waiting} waiting, running: {names}")

    def ended(self, job: Job, code: int, seconds: float) -> None:
        """Show that a job has ended."""
        self._done += 1
        self._failed += code != 0
        ending = "done" if code == 0 else ("stopped" if code > 128 or code < 0 else "FAILED")
        self._print(f"[{self._done}/{self._total}] {job.name}: {ending} after {duration(seconds)}")
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=self._done)

    def _print(self, line: str) -> None:
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)


def duration(seconds: float) -> str:
    """Return a time in words."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 172_800 else f"{seconds / 86_400:.1f} days"


def _share(job: Job) -> float:
    """Return how much of a training job is done, from the ends of its record files."""
    if not job.watched or not job.steps:
        return 0.0
    return min(1.0, sum(map(last_step, job.watched)) / job.steps)
