"""Progress display: a live table on a terminal, plain lines elsewhere, nothing if quiet."""

from __future__ import annotations

import contextlib
import sys
import time
from collections import deque
from types import TracebackType
from typing import Self

from rich.columns import Columns
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table

from backsweep.agent.fleet.fleet import Fleet
from backsweep.agent.session.records import EvaluationRecord

LIVE_EVERY = 0.25
LINE_EVERY = 30.0
WINDOW = 60.0  # seconds over which speeds are taken
MOST_ROWS = 20
"""The largest number of runs with a row each; more runs are shown in a compact form."""


class Progress:
    """Shows the progress of the runs, a few times per second at most."""

    def __init__(self, total: int, *, quiet: bool = False, console: Console | None = None) -> None:
        self._total = total
        self._quiet = quiet
        self._console = Console(stderr=False) if console is None else console
        self._live: Live | None = None
        self._every = LIVE_EVERY if self._console.is_terminal else LINE_EVERY
        self._last = time.monotonic()
        self._marks: deque[tuple[float, int, int]] = deque()
        self._turns = 0
        self._started, self._first_step, self._first_updates = time.monotonic(), 0, 0

    def __enter__(self) -> Self:
        if not self._quiet and self._console.is_terminal:
            self._live = Live(console=self._console, auto_refresh=False, transient=False)
            self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.__exit__(kind, error, traceback)
            self._live = None

    def step(self, fleet: Fleet, shown: list[tuple[str, EvaluationRecord | None]]) -> None:
        """Called after each turn; shows it if it is time. `shown` has each run's name and last evaluation."""
        if not self._turns:
            self._started, self._first_step, self._first_updates = time.monotonic(), fleet.step, fleet.learner.updates
        self._turns += 1
        if self._quiet:
            return
        now = time.monotonic()
        if now - self._last < self._every or not fleet.runs:
            return
        self._last = now
        if not self._marks:
            self._marks.append((self._started, self._first_step, self._first_updates))
        self._marks.append((now, fleet.step, fleet.learner.updates))
        while now - self._marks[0][0] > WINDOW and len(self._marks) > 2:
            self._marks.popleft()
        if self._live is not None:
            self._live.update(self._picture(fleet, shown), refresh=True)
        else:
            self._print(self._line(fleet))

    def evaluated(self, name: str, record: EvaluationRecord) -> None:
        """Show an evaluation on a separate line."""
        words = [f"{name}  step {record.step:,}", f"return {record.mean_return:.4g}"]
        if record.normalised_return is not None:
            words.append(f"normalised {record.normalised_return:.3f}")
        words.append(f"terminated {record.terminated:.0%}")
        if record.exact_return is not None:
            words.append(f"exact return {record.exact_return:.4g}")
        if record.value_error is not None:
            words.append(f"|Q - Q*| {record.value_error:.4g}")
        self._print("  ".join(words))

    def failed(self, name: str, error: Exception) -> None:
        """Show that a run has failed."""
        print(f"{name} failed and leaves the fleet: {type(error).__name__}: {error}", file=sys.stderr)

    def warn(self, message: str) -> None:
        """Show a warning."""
        print(f"warning: {message}", file=sys.stderr)

    def note(self, message: str) -> None:
        """Show what a user may want to know."""
        self._print(message)

    def stopping(self, message: str) -> None:
        """Show that a stop was asked for. Called by a signal's handler, which must not fail."""
        # Another line may be half written, and the terminal or the pipe's reader may be gone.
        with contextlib.suppress(RuntimeError, OSError, SystemExit):
            self._print(message)

    def _print(self, line: str) -> None:
        if self._quiet:
            return
        self._console.print(line, highlight=False, soft_wrap=True)

    def _speeds(self) -> tuple[float, float]:
        (t0, step0, updates0), (t1, step1, updates1) = self._marks[0], self._marks[-1]
        seconds = max(t1 - t0, 1e-9)
        return (step1 - step0) / seconds, (updates1 - updates0) / seconds

    def _left(self, fleet: Fleet) -> str:
        speed = self._speeds()[0]
        if speed <= 0:
            return "?"
        seconds = int((self._total - fleet.step) / speed)
        return f"{seconds // 3600}:{seconds % 3600 // 60:02}:{seconds % 60:02}"

    def _line(self, fleet: Fleet) -> str:
        run, (steps, updates) = fleet.runs[0], self._speeds()
        stats = run.replay.stats()
        graph = f"  states {int(stats['vertices']):,}" if "vertices" in stats else ""
        returns = run.finished_returns
        mean = f"  return {sum(returns) / len(returns):.4g}" if returns else ""
        return (
            f"step {fleet.step:,} of {self._total:,}{mean}  epsilon {run.epsilon(fleet.step):.3f}  "
            f"{_speed(steps, fleet)}  {updates:,.0f} updates/s{graph}  left {self._left(fleet)}"
        )

    def _picture(self, fleet: Fleet, shown: list[tuple[str, EvaluationRecord | None]]) -> Table | Group:
        steps, updates = self._speeds()
        title = (
            f"step {fleet.step:,} of {self._total:,}   {_speed(steps, fleet)}   {updates:,.0f} updates/s   "
            f"left {self._left(fleet)}"
        )
        if len(shown) <= MOST_ROWS:
            return self._table(title, fleet, shown)
        runs = [f"{name} {_score(record)}" for name, record in shown]
        chances = [run.epsilon(fleet.step) for run in fleet.runs]  # differ where some wait for their first reward
        most = "" if min(chances) == max(chances) else f" to {max(chances):.3f}"
        return Group(f"{title}   epsilon {min(chances):.3f}{most}", Columns(runs, equal=True))

    def _table(self, title: str, fleet: Fleet, shown: list[tuple[str, EvaluationRecord | None]]) -> Table:
        table = Table(title=title, title_justify="left")
        for column in ("run", "return", "evaluation", "normalised", "epsilon", "episodes", "rows", "states", "edges"):
            table.add_column(column, justify="left" if column == "run" else "right")
        for (name, record), run in zip(shown, fleet.runs, strict=True):
            stats, returns = run.replay.stats(), run.finished_returns
            table.add_row(
                name,
                f"{sum(returns) / len(returns):.4g}" if returns else "-",
                "-" if record is None else f"{record.mean_return:.4g}",
                "-" if record is None or record.normalised_return is None else f"{record.normalised_return:.3f}",
                f"{run.epsilon(fleet.step):.3f}",
                f"{run.episodes:,}",
                f"{int(stats['rows']):,}",
                f"{int(stats['vertices']):,}" if "vertices" in stats else "-",
                f"{int(stats['edges']):,}" if "edges" in stats else "-",
            )
        return table


def _speed(steps: float, fleet: Fleet) -> str:
    """Return the steps per second, of all runs together if there are several."""
    runs = len(fleet.runs)
    return f"{steps:,.0f} steps/s" if runs == 1 else f"{steps * runs:,.0f} steps/s in {runs} runs"


def _score(record: EvaluationRecord | None) -> str:
    """Return the score of the last evaluation."""
    if record is None:
        return "-"
    return f"{record.mean_return:.4g}" if record.normalised_return is None else f"{record.normalised_return:.3f}"
