"""Time spent on each activity of the loop."""

from __future__ import annotations

from collections import defaultdict
from time import perf_counter

ACTIVITIES = ("environment", "replay", "stepping", "values", "network", "evaluation", "checkpoint", "other")


class Clock:
    """Adds up seconds by activity. Each `lap` adds the time since the last one to an activity."""

    def __init__(self) -> None:
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._last = perf_counter()

    def lap(self, activity: str) -> None:
        """Add the time since the last lap to `activity`."""
        now = perf_counter()
        self._seconds[activity] += now - self._last
        self._last = now

    def take(self) -> dict[str, float]:
        """Return the seconds of every activity since the last call."""
        taken = {activity: round(self._seconds[activity], 6) for activity in ACTIVITIES if activity in self._seconds}
        self._seconds.clear()
        return taken
