"""The floors: the minimum that plain numpy does for the same work."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.streams import Stream


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


SMALL_RING = 128


class RowStoreFloor:
    """Write s, a, r, s' and the flags to the next place of a ring: one assignment each for all lanes.

    A ring of `SMALL_RING` rows stays in the processor's cache: then this is the price of the assignments alone, and
    the floor that targets are judged by. With as many rows as a replay has, the price of memory comes on top, which
    makes for a floor up to twice as high and ratios that look better for everyone.
    """

    def __init__(self, rows: int, stream: Stream) -> None:
        space = stream.frames.space
        shape, dtype = space.shape or (), space.dtype
        self._rows = max(rows - rows % stream.lanes, stream.lanes)
        self._s, self._next_s = (_touched((self._rows, *shape), dtype) for _ in range(2))
        self._a = _touched((self._rows,), np.int64)
        self._r = _touched((self._rows,), np.float32)
        self._terminated, self._truncated = (_touched((self._rows,), np.bool_) for _ in range(2))
        self._stream = stream
        self._place = 0

    def block(self, count: int) -> list[int]:
        """Time `count` stores."""
        return self._block_of_rows(count) if self._stream.lanes == 1 else self._block_of_slices(count)

    def _block_of_rows(self, count: int) -> list[int]:
        s, a, r, next_s = self._s, self._a, self._r, self._next_s
        terminated, truncated, i = self._terminated, self._truncated, self._place
        clock = time.perf_counter_ns
        times = []
        for transition in self._stream.take(count):
            start = clock()
            s[i] = transition[0]
            a[i] = transition[1]
            r[i] = transition[2]
            next_s[i] = transition[3]
            terminated[i] = transition[4]
            truncated[i] = transition[5]
            times.append(clock() - start)
            i = (i + 1) % self._rows
        self._place = i
        return times

    def _block_of_slices(self, count: int) -> list[int]:
        s, a, r, next_s = self._s, self._a, self._r, self._next_s
        terminated, truncated, i = self._terminated, self._truncated, self._place
        clock, lanes = time.perf_counter_ns, self._stream.lanes
        times = []
        for transition in self._stream.take(count):
            j = i + lanes
            start = clock()
            s[i:j] = transition[0]
            a[i:j] = transition[1]
            r[i:j] = transition[2]
            next_s[i:j] = transition[3]
            terminated[i:j] = transition[4]
            truncated[i:j] = transition[5]
            times.append(clock() - start)
            i = j % self._rows
        self._place = i
        return times


def _touched(shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
    array = np.empty(shape, dtype)
    array.fill(1)  # pages that were never written would all be the one zero page
    return array
