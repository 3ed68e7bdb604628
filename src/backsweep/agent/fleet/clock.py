"""Time spent in each part of the loop."""

from __future__ import annotations

from collections import defaultdict
from time import perf_counter

PARTS = ("environment", "replay", "stepping", "values", "network", "evaluation", "checkpoint", "other")


class Clock:
    """Adds up seconds by part. Each `lap` adds the time since the last one to a part."""

    def __init__(self) -> None:
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._last = perf_counter()

    def lap(self, part: str) -> None:
        """Add the time since the last lap to `part`."""
        now = perf_counter()
        self._seconds[part] += now - self._last
        self._last = now

    def take(self) -> dict[str, float]:
        """Return the seconds of every part since the last call."""
        taken = {part: round(self._seconds[part], 6) for part in PARTS if part in self._seconds}
        self._seconds.clear()
        return taken
