"""The live page: what it requests, and when a new frame is made.

The training thread makes frames, and only while a page is open. A frame that took t seconds is followed by a pause of
t / SHARE, so that frames take at most a fixed share of the run's time. Everything else is done by the server's threads.
"""

from __future__ import annotations

import html
import math
import threading
import time
from typing import Any

from backsweep.agent.fleet.fleet import Fleet
from backsweep.agent.session.evaluation.evaluate import values_of_runs
from backsweep.agent.session.live.frame import make_frame
from backsweep.agent.session.live.server import Answers, Server, as_json
from backsweep.agent.session.records import EvaluationRecord, Record, ReplayRecord, TrainingRecord
from backsweep.tasks.registry import find_task
from backsweep.view.page import filled_page, json_text

SHOWN: dict[type[Record], dict[str, str]] = {
    TrainingRecord: {"mean_return": "training return", "batch_q": "Q of batches", "loss": "loss"},
    EvaluationRecord: {"mean_return": "evaluation return", "start_value": "Q at starts"},
}
"""The fields that are drawn, by kind of record, with their titles."""
STATISTICS = {"vertices": "states", "terminal_vertices": "ends"}


class Curves:
    """A destination of a run's records that returns the points which the page does not have yet."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._points: list[tuple[str, int, float]] = []

    def write(self, record: Record) -> None:
        """Take one record."""
        numbers = {name: getattr(record, field) for field, name in SHOWN.get(type(record), {}).items()}
        if isinstance(record, ReplayRecord):
            numbers = {name: record.statistics.get(field) for field, name in STATISTICS.items()}
        with self._lock:
            for name, number in numbers.items():
                if number is not None and math.isfinite(number):
                    self._points.append((name, record.step, float(number)))

    def close(self) -> None:
        """Keep all points: the page may still request them."""

    def since(self, first: int) -> dict[str, Any]:
        """Return the points from number `first` on, and the number of the next one."""
        with self._lock:
            return {"points": self._points[max(first, 0) :], "next": len(self._points)}


SHARE = 0.015
"""The largest share of the run's time for frames."""
SHORTEST_PAUSE = 1.0
PATIENCE = 6.0
"""Seconds after its last request in which a page counts as open."""
MOST_DIGITS = 15
"""Of the number of a point that a page asks for."""
SCRIPTS = ("data.js", "renderer.js", "camera.js", "colours.js", "details.js", "chart.js", "live.js")


class Live:
    """The page of a fleet's first run, served until `close`."""

    def __init__(self, fleet: Fleet, title: str, port: int = 0) -> None:
        self._run = fleet.runs[0]
        config = self._run.config
        names = None if config.task is None else list(find_task(config.task).action_names)
        self.curves = Curves()
        """Takes the run's records."""
        self._total, self._step = config.steps, fleet.step
        self._frame = b""
        self._version = 0
        self._next_at = 0.0
        self._asked_at = -PATIENCE
        self._page = filled_page(
            "live.html",
            title=html.escape(title),
            style=("view.css", "live.css"),
            scripts=SCRIPTS,
            words=json_text({"title": title, "total": config.steps, "actions": names, "discreteActions": True}),
        ).encode()
        answers: Answers = {"/": self._answer_page, "/state": self._answer_state, "/graph": self._answer_graph}
        self._server = Server(port, answers)

    @property
    def url(self) -> str:
        """The page's address."""
        return self._server.url

    def wants_frame(self, step: int) -> bool:
        """Note the step and return whether another frame is due; cheap, because it is called after every turn."""
        self._step = step
        now = time.monotonic()
        return now >= self._next_at and now - self._asked_at < PATIENCE

    def show(self, fleet: Fleet) -> None:
        """Make a frame of the graph of the run that was the first; none once it has left the fleet."""
        began = time.monotonic()
        run = self._run
        place = next((place for place, other in enumerate(fleet.runs) if other is run), None)
        if place is None:
            self._next_at = math.inf
            return

        def state_values(observations: Any) -> Any:
            return values_of_runs(fleet.learner, [place], observations[None])[0].max(axis=1)

        words = {"step": fleet.step, "epsilon": float(run.epsilon(fleet.step)), "episodes": run.episodes}
        self._frame = make_frame(run.replay, state_values, words)
        self._version += 1
        now = time.monotonic()
        # The first frame also loads modules, so its time does not count.
        cost = now - began if self._version > 1 else 0.0
        self._next_at = now + max(SHORTEST_PAUSE, cost / SHARE)

    def close(self) -> None:
        """Stop serving."""
        self._server.close()

    def _answer_page(self, query: dict[str, str]) -> tuple[str, bytes]:
        return "text/html; charset=utf-8", self._page

    def _answer_state(self, query: dict[str, str]) -> tuple[str, bytes]:
        self._asked_at = time.monotonic()
        first = query.get("from", "0")
        counts = first.isascii() and first.isdigit() and len(first) <= MOST_DIGITS
        points = self.curves.since(int(first) if counts else 0)
        return as_json({"step": self._step, "total": self._total, "graph": self._version, **points})

    def _answer_graph(self, query: dict[str, str]) -> tuple[str, bytes] | None:
        return ("application/octet-stream", self._frame) if self._version else None
