"""What a consistent graph is, in plain numpy: the twin of `graph_check_kernels`; it says what is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from backsweep.graph.graph_kernels import (
    CONTINUED,
    COUNT,
    E_COUNT,
    E_HEAD,
    E_SIZE,
    E_START,
    EDGES_FREE,
    EDGES_HIGH,
    EDGES_LIVE,
    ENDINGS,
    HEAD,
    PLACE,
    POOL_USED,
    ROW_EDGE,
    ROW_FLAGS,
    SIZE,
    SOURCE,
    STAMP,
    START,
    TARGET,
    TERMINAL,
    TERMINALS,
    USES,
    VERTICES_EVER,
    VERTICES_FREE,
    VERTICES_LIVE,
    VISITS,
)
from backsweep.snapshot.contents import need, need_finite, need_within
from backsweep.store.ring_kernels import FLAGS, NEXT, NEXT_OBSERVATION, OBSERVATION, TERMINATED
from backsweep.store.store_check_kernels import ALL_FLAGS as STORE_FLAGS
from twins.contents import ages, count_of, need_equal, need_list, spread

if TYPE_CHECKING:
    from backsweep.graph.graph import Graph
    from backsweep.store.store import Store


def explain_graph(graph: Graph, store: Store) -> None:
    """Raise a ContentsError that says what is wrong with a graph, if anything is."""
    slots, age = store.live_slots(), ages(store)
    rows = store.rows[slots]
    source, target = _check_rows(graph, store, rows, slots)
    _check_vertices(graph, rows, age, source, target)
    _check_blocks(graph)
    _check_block_entries(graph, age)


def _check_rows(
    graph: Graph, store: Store, rows: NDArray[np.int32], slots: NDArray[np.int64]
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Check that every row is on the edge between the vertices of its observations; return those vertices."""
    vertices_high, edges_high = graph.vertices_high, int(graph.counters[EDGES_HIGH])
    edges = graph.edges[:edges_high]
    edge, flags = graph.graph_rows[slots, ROW_EDGE], graph.graph_rows[slots, ROW_FLAGS]
    need_within(edge, 0, edges_high, "edges of rows")
    need_equal(count_of(edge, edges_high), edges[:, E_COUNT], "the rows of edges")
    live = edges[:, E_COUNT] > 0
    need(np.count_nonzero(live) == graph.counters[EDGES_LIVE], "the number of live edges is wrong")
    need_list(int(graph.counters[EDGES_FREE]), edges[:, SOURCE], ~live, "the list of free edges")
    need_equal(flags & STORE_FLAGS, rows[:, FLAGS], "the flags of rows")
    need_equal(flags & ~STORE_FLAGS, np.where(rows[:, NEXT] >= 0, CONTINUED, 0), "the flags of rows")

    vertex = graph.observation_vertex[: store.observations_high]
    source, target = (vertex[rows[:, column]] - 1 for column in (OBSERVATION, NEXT_OBSERVATION))
    need_within(source, 0, vertices_high, "vertices of observations")
    need_within(target, 0, vertices_high, "vertices of observations")
    need_equal(edges[edge, SOURCE], source, "the sources of edges")
    need_equal(edges[edge, TARGET], target, "the targets of edges")
    need_finite(graph.returns[slots], "returns")
    return source, target


def _check_vertices(
    graph: Graph, rows: NDArray[np.int32], age: NDArray[np.int64], source: NDArray[Any], target: NDArray[Any]
) -> None:
    high = graph.vertices_high
    vertices = graph.vertices[:high]
    arrivals = count_of(target, high)
    need_equal(vertices[:, USES], count_of(source, high) + arrivals, "the uses of vertices")
    live = vertices[:, USES] > 0
    need(np.count_nonzero(live) == graph.counters[VERTICES_LIVE], "the number of live vertices is wrong")
    need_list(int(graph.counters[VERTICES_FREE]), vertices[:, STAMP], ~live, "the list of free vertices")
    need_within(vertices[live, STAMP], 0, int(graph.counters[VERTICES_EVER]), "stamps of vertices")
    # A visit is counted where a row arrives, and where the first live row of an episode leaves from.
    follows = np.zeros(len(rows), np.bool_)
    follows[age[rows[rows[:, NEXT] >= 0, NEXT]]] = True
    need_equal(vertices[live, VISITS], (arrivals + count_of(source[~follows], high))[live], "the visits of vertices")
    need_finite(graph.reward_sums[:high], "sums of rewards")
    endings = count_of(target[(rows[:, FLAGS] & TERMINATED) != 0], high)
    need_equal(vertices[live, ENDINGS], endings[live], "the endings of vertices")
    terminals = graph.terminals[: graph.counters[TERMINALS]]
    need_within(terminals, 0, high, "terminal vertices")
    need(len(terminals) == np.count_nonzero(endings) and (endings[terminals] > 0).all(), "terminal vertices are wrong")
    need_equal(vertices[terminals, TERMINAL], np.arange(len(terminals)), "the places of terminal vertices")


def _check_blocks(graph: Graph) -> None:
    """Check that all blocks are in the used part of the pool and do not overlap."""
    used = int(graph.counters[POOL_USED])
    vertices, edges = graph.vertices[: graph.vertices_high], graph.edges[: graph.counters[EDGES_HIGH]]
    edges = edges[edges[:, E_COUNT] > 0]
    vertices = vertices[vertices[:, USES] > 0]
    need((vertices[:, COUNT] >= 0).all() and (vertices[:, HEAD] == 0).all(), "a vertex's block has a wrong head")
    need(((edges[:, E_HEAD] >= 0) & (edges[:, E_HEAD] < edges[:, E_SIZE])).all(), "an edge's block has a wrong head")
    start = np.concatenate([vertices[:, START], edges[:, E_START].astype(np.int64)])
    size = np.concatenate([vertices[:, SIZE], edges[:, E_SIZE].astype(np.int64)])
    count = np.concatenate([vertices[:, COUNT], edges[:, E_COUNT].astype(np.int64)])
    need(((count <= size) & (size <= used)).all(), "a block is too small for its entries")
    start, size = start[size > 0], size[size > 0]
    need(((size & (size - 1)) == 0).all(), "the size of a block is no power of two")
    need(((start >= 0) & (start <= used - size)).all(), "a block reaches beyond the pool")
    depth = np.cumsum(count_of(start, used + 1) - count_of(start + size, used + 1))
    need(not depth.size or depth.max() <= 1, "two blocks overlap")


def _check_block_entries(graph: Graph, age: NDArray[np.int64]) -> None:
    """Check that a vertex's block holds the edges that lead there, and an edge's block its rows, oldest first."""
    edges = graph.edges[: graph.counters[EDGES_HIGH]]
    live = np.flatnonzero(edges[:, E_COUNT] > 0)
    vertices = graph.vertices[: graph.vertices_high]
    in_use = np.flatnonzero(vertices[:, USES] > 0)
    need_equal(vertices[in_use, COUNT], count_of(edges[live, TARGET], len(vertices))[in_use], "the edges of vertices")
    block, place = spread(in_use, vertices[in_use, COUNT])
    vertex = in_use[block]
    into = graph.pool[vertices[vertex, START] + place]
    need_within(into, 0, len(edges), "edges in blocks")
    need_equal(edges[into, TARGET], vertex, "the edges into vertices")
    need_equal(edges[into, PLACE], place, "the places of edges")
    need((edges[into, E_COUNT] > 0).all(), "a block holds an edge that is free")

    block, place = spread(live, edges[live, E_COUNT])
    edge = live[block]
    slot = graph.pool[edges[edge, E_START] + ((edges[edge, E_HEAD] + place) & (edges[edge, E_SIZE] - 1))]
    need_within(slot, 0, len(age), "rows in blocks")
    need((age[slot] >= 0).all(), "an edge has a row that is not live")
    need_equal(graph.graph_rows[slot, ROW_EDGE], edge, "the rows on edges")
    need((np.diff(age[slot])[np.diff(edge) == 0] > 0).all(), "the rows of an edge are out of order")
