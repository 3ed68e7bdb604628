"""The progress of all jobs: a live table on a terminal, one line per minute elsewhere."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from backsweep.lab.runs.jobs import Job
from backsweep.lab.runs.watch import JobWatch, trained

LINE_EVERY = 60.0
LOOK_EVERY = 2.0
PACE_OVER = 120.0  # seconds over which speed is measured: long enough to average out evaluations


class JobProgress:
    """Shows the progress of each job and of all together, and a summary at the end."""

    def __init__(
        self, jobs: Sequence[Job], console: Console | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._console = Console() if console is None else console
        self._clock = clock
        self._watches = {id(job): JobWatch(job) for job in jobs}
        self._ended: dict[int, int] = {}
        """Exit codes of the jobs that have ended."""
        self._live: Live | None = None
        self._since = self._last = clock()
        self._history: deque[tuple[float, int]] = deque([(self._since, self._steps())])

    def __enter__(self) -> Self:
        self._since = self._last = self._clock()
        if self._console.is_terminal:
            self._live = Live(console=self._console, auto_refresh=False, transient=True)
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def show(self, active: list[Job], waiting: int) -> None:
        """Show the current state, if it is time."""
        now = self._clock()
        if now - self._last < (LOOK_EVERY if self._live is not None else LINE_EVERY):
            return
        self._last = now
        self._look([self._watches[id(job)] for job in active], now)
        if self._live is not None:
            self._live.update(Group(Text(self._status()), self._table(active)), refresh=True)
        else:
            self._print(self._status())

    def ended(self, job: Job, code: int, seconds: float) -> None:
        """Show that a job has ended."""
        self._ended[id(job)] = code
        self._watches[id(job)].look()
        ending = "done" if code == 0 else ("stopped" if code > 128 or code < 0 else "FAILED")
        self._print(f"[{len(self._ended)}/{len(self._watches)}] {job.name}: {ending} after {duration(seconds)}")

    def summary(self, results: Path) -> list[str]:
        """Return the lines of the summary: what was made, and what to do next."""
        watches = list(self._watches.values())
        self._look(watches, self._clock())
        training = trained(watches)
        spent = self._clock() - self._since
        lines = []
        if training:
            steps = sum(watch.step - watch.begun_at for watch in training)
            runs, finished = sum(len(watch.runs) for watch in training), sum(watch.finished for watch in training)
            pace = f", {steps / spent:,.0f} a second" if spent > 0 else ""
            lines.append(f"{finished} of {runs} runs finished, {steps:,} steps in {duration(spent)}{pace}")
        if studies := len(watches) - len(training):
            done = sum(code == 0 for key, code in self._ended.items() if not self._watches[key].runs)
            lines.append(f"{done} of {studies} studies done in {duration(spent)}")
        if gone := [run for watch in training for run in watch.diverged]:
            names = ", ".join(str(run.records.parent) for run in gone[:3]) + (", ..." if len(gone) > 3 else "")
            lines.append(f"{_runs(len(gone))} with values outside the bounds of returns: {names}")
        if any(code == 0 for code in self._ended.values()):
            lines.append(f"next: 'backsweep report {results} --out report' makes a page with verdicts and curves")
        if any(watch.finished for watch in training):
            lines.append(f"      'backsweep experiment pack {results} --results KEPT' keeps what such a page needs")
        return lines

    def _look(self, watches: Sequence[JobWatch], now: float) -> None:
        for watch in watches:
            watch.look()
        self._history.append((now, self._steps()))
        while now - self._history[0][0] > PACE_OVER and len(self._history) > 2:
            self._history.popleft()

    def _steps(self) -> int:
        return sum(watch.step for watch in self._watches.values())

    def _pace(self) -> float:
        """Return the steps per second of all jobs together in the last minutes."""
        (since, before), (now, after) = self._history[0], self._history[-1]
        return max(0.0, (after - before) / (now - since)) if now > since else 0.0

    def _status(self) -> str:
        """Return the overall progress in one line."""
        watches = list(self._watches.values())
        training = trained(watches)
        words = [f"{len(self._ended)} of {len(watches)} processes done"]
        if training:
            steps = sum(watch.job.steps for watch in training)
            left = sum(max(0, watch.job.steps - watch.step) for watch in training if id(watch.job) not in self._ended)
            pace = self._pace()
            runs = sum(len(watch.runs) for watch in training)
            words.append(f"{sum(watch.finished for watch in training)} of {runs} runs")
            words.append(f"{(steps - left) / steps:.0%} of {steps:,} steps")
            words.append(f"{pace:,.0f} steps/s")
            words.append(f"about {duration(left / pace)} left" if pace > 0 else "time left not known yet")
            gone = sum(len(watch.diverged) for watch in training)
            words.append(f"values diverged in {_runs(gone)}" if gone else "no values diverged")
        if failed := sum(0 < code <= 128 for code in self._ended.values()):
            words.append(f"{failed} FAILED")
        return ", ".join(words)

    def _table(self, active: Sequence[Job]) -> Table:
        """Return a row for each job that runs."""
        # Long names are shortened, numbers are not.
        table = Table(box=None, pad_edge=False, header_style="dim", expand=True)
        table.add_column("process", overflow="ellipsis", no_wrap=True, ratio=1)
        table.add_column("", width=20)
        for title, width in (("done", 4), ("runs", 7), ("diverged", 8)):
            table.add_column(title, justify="right", no_wrap=True, min_width=width)
        for job in active:
            watch = self._watches[id(job)]
            bar = ProgressBar(total=1.0, completed=watch.share, width=20) if watch.runs else Text("study", "dim")
            gone = len(watch.diverged)
            table.add_row(
                Text(job.name),
                bar,
                f"{watch.share:.0%}" if watch.runs else "",
                f"{watch.finished}/{len(watch.runs)}" if watch.runs else "",
                Text(str(gone), "bold red") if gone else "",
            )
        return table

    def _print(self, line: str) -> None:
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)


def duration(seconds: float) -> str:
    """Return a time in words."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 172_800 else f"{seconds / 86_400:.1f} days"


def _runs(count: int) -> str:
    return f"{count} {'run' if count == 1 else 'runs'}"
