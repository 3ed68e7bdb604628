"""The live page: what it requests, and when a new frame is made.

The training thread makes frames, and only while a page is open. A frame that took t seconds is followed by a pause of
t / SHARE, so that frames take at most a fixed share of the run's time. Everything else is done by the server's threads.
"""

from __future__ import annotations

import html
import time
from typing import Any

from backsweep.agent.fleet.fleet import Fleet
from backsweep.agent.session.evaluation.run_values import values_of_runs
from backsweep.agent.session.live.curves import Curves
from backsweep.agent.session.live.frame import make_frame
from backsweep.agent.session.live.server import Answers, Server, as_json
from backsweep.tasks.registry import find_task
from backsweep.view.packing import json_text
from backsweep.view.page import filled_page

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
        config = fleet.runs[0].config
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
        """Make a frame of the first run's graph."""
        began = time.monotonic()
        run = fleet.runs[0]

        def state_values(observations: Any) -> Any:
            return values_of_runs(fleet.learner, [0], observations[None])[0].max(axis=1)

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
