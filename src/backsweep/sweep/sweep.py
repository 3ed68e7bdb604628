"""The sweep as a class over the kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backsweep.checks import is_int, is_number, need_fields
from backsweep.graph.graph import Graph
from backsweep.jit.array_table import addresses_of
from backsweep.jit.memory import READ_ALL_OVER, reserve
from backsweep.snapshot.contents import need, need_within
from backsweep.store.ring_kernels import RING
from backsweep.store.store import Store
from backsweep.sweep import sweep_kernels
from backsweep.sweep.sweep_kernels import (
    EXPANSIONS,
    HUB,
    HUB_NEXT,
    PENDING_COUNT,
    PENDING_HEAD,
    Q_ROW,
    Q_VERTEX,
    QUEUE_COUNT,
    QUEUE_HEAD,
    RESTARTS,
    ROOTS_COUNT,
    ROOTS_NEXT,
    SWEEP,
    SweepArrays,
)
from backsweep.types import Rows

MOST_CANDIDATES = 1024


@dataclass(frozen=True)
class Terminals:
    """Start at terminal vertices."""

    candidates: int = 1
    """The number of terminal vertices that each root is chosen from. 1 draws roots uniformly without replacement. With
    more, that many are drawn uniformly, and the root is a random one of those in the upper half of the range of their
    average accumulated rewards (`PseudoTerminals` defines it). Sweeps then start mostly where episodes succeeded, even
    if most of them fail."""

    def __post_init__(self) -> None:
        whole = f"an int from 1 to {MOST_CANDIDATES}"
        need_fields(self, lambda v: is_int(v) and 1 <= v <= MOST_CANDIDATES, whole, "candidates")


@dataclass(frozen=True)
class PseudoTerminals:
    """Start at vertices drawn from softmax(U / kappa), for tasks whose goals do not end the episode.

    U is a vertex's average accumulated reward: the mean, over its stored visits, of the reward collected from the
    episode's start to the visit.
    """

    kappa: float = 0.01
    """The temperature. Small values are close to an argmax, with ties shared."""

    def __post_init__(self) -> None:
        need_fields(self, lambda v: is_number(v) and v > 0, "positive and finite", "kappa")


MOST_EVER = 2**62
"""Counters below this never overflow. Marks of visited vertices hold the lower half of a sweep's number, so that it may
grow beyond that."""


class Sweep:
    """A sweep in progress: it resumes where the last call stopped and restarts when nothing is left to expand."""

    def __init__(
        self,
        store: Store,
        graph: Graph,
        *,
        roots: int,
        predecessors: int | None,
        start: Terminals | PseudoTerminals,
        separate_trees: bool,
        by_visits: bool,
        stitch: bool,
        seed: np.uint64,
    ) -> None:
        self._store = store
        self._graph = graph
        pseudo = isinstance(start, PseudoTerminals)
        kappa = start.kappa if isinstance(start, PseudoTerminals) else 1.0
        candidates = start.candidates if isinstance(start, Terminals) else 1
        # No vertex has more predecessors than there are rows, and the kernel makes room for as many as are followed.
        most = sweep_kernels.ALL_PREDECESSORS if predecessors is None else min(predecessors, store.capacity)
        most_vertices = len(graph.vertices)
        if not pseudo and candidates == 1:
            roots = min(roots, most_vertices)  # drawn without replacement
        self._queue = reserve((most_vertices, sweep_kernels.QUEUE_COLUMNS), np.int64)
        self._visited = reserve((most_vertices,), np.int64, READ_ALL_OVER)
        self._pending = reserve((store.capacity + 1,), np.int64)
        self._roots = np.zeros((2, roots), np.int64)
        self._counters = np.zeros(sweep_kernels.SWEEP_COUNTERS, np.int64)
        self._random = np.array([seed], np.uint64)
        temperatures = graph.draws.temperatures
        tree = temperatures.index(float(kappa)) if pseudo and kappa in temperatures else -1
        bounds = sweep_kernels.DEFAULT_EDGES_AT_ONCE, sweep_kernels.DEFAULT_LONG_QUEUE
        flags = pseudo, separate_trees, by_visits, stitch
        self.settings = np.array((roots, most, *flags, tree, *bounds, candidates), np.int64)
        # The arrays never move, so their addresses are stored once.
        self.bundle = SweepArrays(
            self.settings,
            np.array([kappa], np.float64),
            self._random,
            self._queue,
            self._visited,
            self._pending,
            self._roots,
            self._counters,
        )
        self._addresses = store.table[RING], graph.addresses, addresses_of(self.bundle)

    def advance(self, count: int) -> Rows:
        """Return the next `count` rows, or fewer if there are no roots or many sweeps in a row found no rows."""
        out = np.empty(count, np.int64)
        return out[: self.advance_into(out)]

    def advance_into(self, out: Rows) -> int:
        """Write the next rows to `out` and return their number: its length, or fewer as in `advance`."""
        return int(sweep_kernels.sweep_rows(*self._addresses, out))

    def statistics(self) -> dict[str, int]:
        """Count what the sweep has done."""
        return {
            "sweep_restarts": int(self._counters[RESTARTS]),
            "sweep_expansions": int(self._counters[EXPANSIONS]),
            "sweep_frontier": int(self._counters[QUEUE_COUNT]),
        }

    @property
    def nbytes(self) -> int:
        """Bytes in use."""
        return sum(array.nbytes for array in self.arrays().values())

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the position of the sweep; the rings are unrolled so that they start at 0."""
        counters = self._counters.copy()
        queue_places = (counters[QUEUE_HEAD] + np.arange(counters[QUEUE_COUNT])) % len(self._queue)
        pending_places = (counters[PENDING_HEAD] + np.arange(counters[PENDING_COUNT])) % len(self._pending)
        counters[QUEUE_HEAD] = counters[PENDING_HEAD] = 0
        return {
            "queue": self._queue[queue_places],
            "visited": self._visited[: self._graph.vertices_high],
            "pending": self._pending[pending_places],
            "roots": self._roots[:, : counters[ROOTS_COUNT]].copy(),
            "counters": counters,
            "random": self._random,
        }

    def _check(self, arrays: dict[str, NDArray[Any]]) -> None:
        total, high = self._store.total, self._graph.vertices_high
        known = {
            "queue": (self._queue.dtype, (-1, self._queue.shape[1])),
            "visited": (self._visited.dtype, (high,)),
            "pending": (self._pending.dtype, (-1,)),
            "roots": (self._roots.dtype, (2, -1)),
            "counters": (self._counters.dtype, self._counters.shape),
            "random": (self._random.dtype, (1,)),
        }
        need(set(arrays) == set(known), f"a sweep has the arrays {sorted(arrays)} where {sorted(known)} are expected")
        for name, (dtype, shape) in known.items():
            found = arrays[name]
            fits = found.ndim == len(shape)
            fits = fits and all(want in (-1, size) for want, size in zip(shape, found.shape, strict=True))
            need(fits and found.dtype == dtype, f"{name} of a sweep is {found.dtype} {found.shape}")
        queue, pending, roots, counters = (arrays[name] for name in ("queue", "pending", "roots", "counters"))
        need(len(queue) <= len(self._queue) and len(pending) <= len(self._pending), "a sweep holds too much")
        need(roots.shape[1] <= self._roots.shape[1], "a sweep has too many roots")
        need_within(queue[:, Q_VERTEX], 0, high, "vertices in the queue")
        need_within(queue[:, Q_ROW], -1, total, "rows in the queue")
        need_within(pending, 0, total, "pending rows")
        need_within(roots[0], 0, high, "roots")
        expected = {QUEUE_HEAD: 0, QUEUE_COUNT: len(queue), PENDING_HEAD: 0, PENDING_COUNT: len(pending)}
        expected[ROOTS_COUNT] = roots.shape[1]
        need(all(counters[place] == number for place, number in expected.items()), "a sweep's counters do not add up")
        need(0 <= counters[HUB] <= high, "the vertex that a sweep expands is out of range")
        need(0 <= counters[HUB_NEXT] <= self._store.capacity, "the next edge that a sweep follows is out of range")
        need(0 <= counters[ROOTS_NEXT] <= counters[ROOTS_COUNT], "a sweep's next root is out of range")
        need_within(counters[[SWEEP, RESTARTS, EXPANSIONS]], 0, MOST_EVER, "the numbers of sweeps and of expansions")

    def load(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Resume from a saved position; raise a ContentsError if it is invalid."""
        counters = arrays.get("counters")
        if counters is not None and counters.shape == (HUB,):  # saved before vertices were expanded in parts
            arrays = {**arrays, "counters": np.append(counters, np.zeros_like(self._counters[HUB:]))}
        self._check(arrays)
        self._queue[: len(arrays["queue"])] = arrays["queue"]
        self._visited[: len(arrays["visited"])] = arrays["visited"]
        self._pending[: len(arrays["pending"])] = arrays["pending"]
        self._roots[:, : arrays["roots"].shape[1]] = arrays["roots"]
        self._counters[:] = arrays["counters"]
        self._random[:] = arrays["random"]
