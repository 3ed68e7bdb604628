"""Adapters for other frameworks, each imported only by its own module, and what several of them use."""

from __future__ import annotations

import warnings
import zlib
from collections.abc import Hashable
from typing import Any

import numpy as np

REMEMBERED = 10_000


class LanePool:
    """Assigns a lane to every unfinished trajectory; warns once if one that runs has lost its lane to others."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.of: dict[Hashable, int] = {}
        """The lanes in use, least recently used first."""
        self._lost: dict[Hashable, None] = {}
        self._warned = False

    def take(self, trajectory: Hashable, *, ends: bool) -> int:
        """Return the lane of a trajectory, which keeps it until it `ends` or others need all lanes."""
        lane = self.of.pop(trajectory, None)
        if lane is None:
            taken = set(self.of.values())
            lane = next((each for each in range(self.count) if each not in taken), None)
        if lane is None:
            oldest = next(iter(self.of))
            lane = self.of.pop(oldest)
            self._lost[oldest] = None  # it may have been given up, which does no harm
            if len(self._lost) > REMEMBERED:
                self._lost.pop(next(iter(self._lost)))
        if trajectory in self._lost:
            del self._lost[trajectory]
            self._warn()
        if not ends:
            self.of[trajectory] = lane
        return lane

    def _warn(self) -> None:
        if not self._warned:
            self._warned = True
            warnings.warn(
                f"lanes must be at least the number of episodes that run at the same time; there are more than "
                f"{self.count}, so episodes are stored in pieces",
                stacklevel=4,
            )


def seed_from_numpy() -> int:
    """Return a seed derived from numpy's global random state, without changing that state.

    Frameworks seed that state before they make their buffers. So the same seed gives the same rows, and different seeds
    give different streams.
    """
    state: Any = np.random.get_state()  # noqa: NPY002 - looked at, not drawn from
    return zlib.crc32(np.asarray(state[1]).tobytes() + int(state[2]).to_bytes(4, "little"))
