"""Lanes for trajectories that arrive in parts and are identified by a number or a name."""

from __future__ import annotations

from collections.abc import Hashable


class Lanes:
    """Assigns a lane to every unfinished trajectory."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.of: dict[Hashable, int] = {}
        """The lanes in use, least recently used first."""

    def take(self, trajectory: Hashable, *, ends: bool) -> int:
        """Return the lane of a trajectory, which keeps it until it `ends` or others need all lanes."""
        lane = self.of.pop(trajectory, None)
        if lane is None:
            taken = set(self.of.values())
            lane = next((each for each in range(self.count) if each not in taken), None)
        if lane is None:
            lane = self.of.pop(next(iter(self.of)))
        if not ends:
            self.of[trajectory] = lane
        return lane
