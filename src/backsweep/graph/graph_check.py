"""Checks that a loaded graph is the graph of the loaded rows, before any kernel follows its indices.

The kernels in `graph_check_kernels.py` decide.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from backsweep.graph.graph_check_kernels import EDGE_NOTES, NOTE_COLUMNS, edges_fit, rows_fit_graph
from backsweep.graph.graph_kernels import (
    COLLISIONS,
    EDGES_HIGH,
    EDGES_LIVE,
    KEY,
    POOL_USED,
    TERMINALS,
    VERTICES_EVER,
    VERTICES_HIGH,
    VERTICES_LIVE,
)
from backsweep.snapshot.contents import ContentsError, need, need_lengths
from backsweep.snapshot.contents_kernels import all_finite
from backsweep.snapshot.saved_component import CheckStep
from backsweep.store.ring_kernels import OBSERVATION, RING

if TYPE_CHECKING:
    from backsweep.encoding.base import LiveEncoder
    from backsweep.graph.graph import Graph
    from backsweep.store.store import Store

KEYS_COMPARED = 64


class GraphCheck:
    """The check of a loaded graph."""

    def __init__(self, graph: Graph, store: Store) -> None:
        self._graph, self._store = graph, store
        self._noted = self._notes = np.zeros((0, 0), np.int32)

    def steps(self) -> tuple[CheckStep, ...]:
        """Return the steps: sizes, then edges, then whether it is the graph of the store's rows, then the returns."""
        vertices = ("observation_vertex", "reward_sums", "terminals")
        return (
            CheckStep(("graph_counters",), self._check_sizes),
            CheckStep(("vertices", "edges", "pool"), self._check_edges),
            CheckStep((*vertices, "graph_rows"), self._check_rows),
            CheckStep(("returns",), self._check_returns),
        )

    def _check_sizes(self, loaded: Mapping[str, NDArray[Any]]) -> None:
        _check_counters(self._graph)
        need_lengths(loaded, self._graph.all_arrays())

    def _check_edges(self, _: Mapping[str, NDArray[Any]]) -> None:
        self._noted, self._notes = notes_for(self._graph)
        if not edges_fit(self._graph.addresses, self._noted, self._notes):
            raise ContentsError("its vertices and edges do not fit together")

    def _check_rows(self, _: Mapping[str, NDArray[Any]]) -> None:
        if not rows_fit_graph(self._store.table[RING], self._graph.addresses, self._noted, self._notes):
            raise ContentsError("its vertices, edges and rows do not fit together")

    def _check_returns(self, loaded: Mapping[str, NDArray[Any]]) -> None:
        need(all_finite(loaded["returns"]), "returns hold NaN or infinity")


def notes_for(graph: Graph) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return empty notes of the vertices and of the edges of a graph."""
    vertices, edges = int(graph.counters[VERTICES_HIGH]), int(graph.counters[EDGES_HIGH])
    return np.zeros((vertices, NOTE_COLUMNS), np.int32), np.empty((edges, EDGE_NOTES), np.int32)


def graph_fits(graph: Graph, store: Store) -> bool:
    """Say whether a graph is that of a store's rows, as far as kernels follow it."""
    notes = notes_for(graph)
    return bool(edges_fit(graph.addresses, *notes) and rows_fit_graph(store.table[RING], graph.addresses, *notes))


def _check_counters(graph: Graph) -> None:
    counters = graph.counters
    for live, high, most in (
        (VERTICES_LIVE, VERTICES_HIGH, len(graph.vertices)),
        (EDGES_LIVE, EDGES_HIGH, len(graph.edges)),
        (TERMINALS, VERTICES_LIVE, len(graph.terminals)),
    ):
        need(0 <= counters[live] <= counters[high] <= most, "the numbers of vertices and edges are out of range")
    need(0 <= counters[POOL_USED] <= len(graph.pool), "the used part of the pool is out of range")
    need(counters[VERTICES_EVER] >= counters[VERTICES_HIGH], "the number of vertices ever made is out of range")
    need(counters[COLLISIONS] >= 0, "the number of collisions is out of range")


def check_keys(graph: Graph, store: Store, encoder: LiveEncoder) -> None:
    """Encode some observations again: a different space or encoder would give different keys."""
    slots = np.arange(store.oldest, store.total, max(len(store) // KEYS_COMPARED, 1)) % store.capacity
    held = np.unique(store.rows[slots, OBSERVATION]).astype(np.int64)
    if len(held):
        keys = np.asarray(encoder.encode(store.layout.views(store.observation_words(held))))
        found = graph.vertices[graph.observation_vertex[held] - 1, KEY:]
        need(keys.shape == found.shape and (keys == found).all(), "the keys of vertices are not those of observations")
