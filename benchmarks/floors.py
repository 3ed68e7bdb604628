"""The floors: the least that plain numpy does for the same work."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.streams import Stream, Transition


class GatherFloor:
    """Copy s and s' of one batch out of two arrays, all of whose pages are in memory."""

    def __init__(self, rows: int, shape: tuple[int, ...], dtype: str, batch: int, seed: int = 1) -> None:
        self._s, self._next_s = (_touched((rows, *shape), dtype) for _ in range(2))
        self._out, self._next_out = (_touched((batch, *shape), dtype) for _ in range(2))
        self._picks = np.random.default_rng(seed).integers(0, rows, (1024, batch))
        self._turn = 0

    def block(self, count: int) -> list[int]:
        """Time `count` gathers of freshly drawn rows."""
        clock = time.perf_counter_ns
        times = []
        for _ in range(count):
            self._turn = (self._turn + 1) % len(self._picks)
            row = self._picks[self._turn]
            start = clock()
            # Any mode but "raise" lets np.take write to `out` directly.
            np.take(self._s, row, axis=0, out=self._out, mode="clip")
            np.take(self._next_s, row, axis=0, out=self._next_out, mode="clip")
            times.append(clock() - start)
        return times


class RowStoreFloor:
    """Write s, a, r, s' and the flags to the next place of a ring: one assignment each for all lanes."""

    def __init__(self, rows: int, stream: Stream) -> None:
        space = stream.frames.space
        shape, dtype = space.shape or (), space.dtype
        self._rows = rows - rows % stream.lanes
        self._s, self._next_s = (_touched((rows, *shape), dtype) for _ in range(2))
        self._a = _touched((rows,), np.int64)
        self._r = _touched((rows,), np.float32)
        self._terminated, self._truncated = (_touched((rows,), np.bool_) for _ in range(2))
        self._stream = stream
        self._place = 0

    def block(self, count: int) -> list[int]:
        """Time `count` stores."""
        clock = time.perf_counter_ns
        store = self._store_one if self._stream.lanes == 1 else self._store_many
        times = []
        for transition in self._stream.take(count):
            start = clock()
            store(transition)
            times.append(clock() - start)
        return times

    def _store_one(self, transition: Transition) -> None:
        i = self._place
        self._s[i] = transition[0]
        self._a[i] = transition[1]
        self._r[i] = transition[2]
        self._next_s[i] = transition[3]
        self._terminated[i] = transition[4]
        self._truncated[i] = transition[5]
        self._place = (i + 1) % self._rows

    def _store_many(self, transition: Transition) -> None:
        i = self._place
        j = i + self._stream.lanes
        self._s[i:j] = transition[0]
        self._a[i:j] = transition[1]
        self._r[i:j] = transition[2]
        self._next_s[i:j] = transition[3]
        self._terminated[i:j] = transition[4]
        self._truncated[i:j] = transition[5]
        self._place = j % self._rows


def _touched(shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
    array = np.empty(shape, dtype)
    array.fill(1)  # pages that were never written would all be the one zero page
    return array
