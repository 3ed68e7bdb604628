"""The progress of all jobs: a live table on a terminal, one line per minute elsewhere."""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from backsweep.lab.claims.evidence import left_bounds, return_bounds
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

    def show(self, active: list[Job]) -> None:
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

    def summary(self, results: Path, then: str | None = None) -> list[str]:
        """Return the lines of the summary: what was made, and what to do next.

        `then` is what to do instead of a report, which leaves out runs with tuning seeds.
        """
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
        done = any(code == 0 for code in self._ended.values())
        if then is not None:
            return [*lines, then] if done else lines
        if done:
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
