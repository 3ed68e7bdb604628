"""The curves of the live page."""

from __future__ import annotations

import math
import threading
from typing import Any

from backsweep.agent.session.records.record_types import EvaluationRecord, Record, ReplayRecord, TrainingRecord

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
