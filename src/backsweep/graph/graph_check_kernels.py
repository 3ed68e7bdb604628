"""The check of a loaded graph, one pass over each array; `tests/twins/graph_check.py` is its twin.

The store's own rows have been checked before, and so have the counters and lengths of the graph.
"""

# In compiled code Python's numbers and numpy's are one and the same.
# mypy: disable-error-code="no-any-return,arg-type,assignment,return-value"

from __future__ import annotations

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
    VERTICES_HIGH,
    VERTICES_LIVE,
    VISITS,
    GraphArrays,
)
from backsweep.jit.array_table import Addresses, unpack
from backsweep.jit.compilation import inlined, kernel
from backsweep.jit.prefetching import prefetch
from backsweep.snapshot.contents_kernels import LIVE, blocks_apart, free_list_fits, mark_block
from backsweep.store.store_check_kernels import ALL_FLAGS
from backsweep.store.store_kernels import (
    EPISODES_LIVE,
    FIRST,
    FLAGS,
    NEXT,
    NEXT_OBSERVATION,
    OBSERVATION,
    TERMINATED,
    TOTAL,
    Ring,
)
from backsweep.store.store_kernels import LIVE as LIVE_ROWS

# Columns of what is counted for each vertex.
ROWS_AT = 0
VISITS_AT = 1
ENDINGS_AT = 2

AHEAD = 8
"""How many steps ahead the second look-up of a chain is prefetched; the first is prefetched twice as far ahead."""


@inlined
def ask_for_row(slot: int, graph: GraphArrays, reached: NDArray[np.int32]) -> None:
    """Prefetch what the check of a later row will look up."""
    capacity, edges, high = graph.rows.shape[0], graph.edges, graph.counters[EDGES_HIGH]
    if slot + 2 * AHEAD >= capacity:
        return
    far, near = graph.rows[slot + 2 * AHEAD, ROW_EDGE], graph.rows[slot + AHEAD, ROW_EDGE]
    if 0 <= far < high:
        prefetch(edges, far)
        prefetch(reached, far)
    if 0 <= near < high:
        prefetch(graph.pool, np.int64(edges[near, E_START]) + edges[near, E_HEAD] + reached[near])


@inlined
def ask_for_edge(edge: int, graph: GraphArrays) -> None:
    """Prefetch what the check of a later edge will look up."""
    edges, high = graph.edges, graph.counters[VERTICES_HIGH]
    if edge + 2 * AHEAD >= graph.counters[EDGES_HIGH]:
        return
    far, near = edges[edge + 2 * AHEAD, TARGET], edges[edge + AHEAD, TARGET]
    if 0 <= far < high:
        prefetch(graph.vertices, far)
    if 0 <= near < high:
        prefetch(graph.pool, graph.vertices[near, START] + edges[edge + AHEAD, PLACE])


@kernel
def vertex_blocks_fit(graph: GraphArrays, blocks: NDArray[np.int8]) -> bool:
    """Check the blocks of live vertices, which hold as many entries as there are live edges."""
    vertices, entries = graph.vertices, 0
    for vertex in range(graph.counters[VERTICES_HIGH]):
        if vertices[vertex, USES] <= 0:
            continue
        count, size = vertices[vertex, COUNT], vertices[vertex, SIZE]
        if count < 0 or count > size or vertices[vertex, HEAD] != 0:
            return False
        if size > 0 and not mark_block(blocks, vertices[vertex, START], size):
            return False
        entries += count
    return entries == graph.counters[EDGES_LIVE]


@kernel
def edges_fit(graph: GraphArrays, blocks: NDArray[np.int8], counts: NDArray[np.int32]) -> bool:
    """Check that each live edge is in its place in its target's block, and its own block; count the vertices' uses.

    There are as many entries as edges, and each edge has its own place, so the blocks hold nothing else. That an edge
    has as many rows as it says is checked later, with the rows.
    """
    vertices, edges, counters = graph.vertices, graph.edges, graph.counters
    high = counters[VERTICES_HIGH]
    live = 0
    state = np.zeros(counters[EDGES_HIGH], np.uint8)
    for edge in range(counters[EDGES_HIGH]):
        ask_for_edge(edge, graph)
        if edges[edge, E_COUNT] < 0:
            return False
        if edges[edge, E_COUNT] == 0:
            continue
        state[edge] = LIVE
        live += 1
        source, target, count = edges[edge, SOURCE], edges[edge, TARGET], edges[edge, E_COUNT]
        place, size = np.int64(edges[edge, PLACE]), np.int64(edges[edge, E_SIZE])
        if count > size or edges[edge, E_HEAD] < 0 or edges[edge, E_HEAD] >= size:
            return False
        if not mark_block(blocks, np.int64(edges[edge, E_START]), size):
            return False
        if source < 0 or source >= high or target < 0 or target >= high or vertices[target, USES] <= 0:
            return False
        counts[source, ROWS_AT] += count
        counts[target, ROWS_AT] += count
        counts[target, VISITS_AT] += count
        if place < 0 or place >= vertices[target, COUNT] or graph.pool[vertices[target, START] + place] != edge:
            return False
    return live == counters[EDGES_LIVE] and free_list_fits(
        counters[EDGES_FREE], edges[: counters[EDGES_HIGH], SOURCE], state
    )


@kernel
def rows_on_edges_fit(ring: Ring, graph: GraphArrays, counts: NDArray[np.int32]) -> bool:
    """Check that each row is the next one on the edge between its vertices; count where rows terminate.

    Rows are taken oldest first, so an edge's block must have them in this order.
    """
    rows, edges, counters = ring.rows, graph.edges, graph.counters
    capacity, live = rows.shape[0], ring.counters[LIVE_ROWS]
    oldest_slot = (ring.counters[TOTAL] - live) % capacity
    edges_high = counters[EDGES_HIGH]
    reached = np.zeros(edges_high, np.int32)
    for age in range(live):
        slot = oldest_slot + age
        slot = slot if slot < capacity else slot - capacity
        ask_for_row(slot, graph, reached)
        edge, flags, own = graph.rows[slot, ROW_EDGE], graph.rows[slot, ROW_FLAGS], rows[slot, FLAGS]
        if edge < 0 or edge >= edges_high or reached[edge] >= edges[edge, E_COUNT]:
            return False
        if flags & ALL_FLAGS != own or flags & ~ALL_FLAGS != (CONTINUED if rows[slot, NEXT] >= 0 else 0):
            return False
        place = (edges[edge, E_HEAD] + reached[edge]) & (edges[edge, E_SIZE] - 1)
        if graph.pool[np.int64(edges[edge, E_START]) + place] != slot:
            return False
        reached[edge] += 1
        source = graph.observation_vertex[rows[slot, OBSERVATION]] - 1
        target = graph.observation_vertex[rows[slot, NEXT_OBSERVATION]] - 1
        if edges[edge, SOURCE] != source or edges[edge, TARGET] != target:
            return False
        if own & TERMINATED != 0:
            counts[target, ENDINGS_AT] += 1
    held = 0
    for edge in range(edges_high):
        held += edges[edge, E_COUNT]
    return held == live


@kernel
def count_first_visits(ring: Ring, graph: GraphArrays, counts: NDArray[np.int32]) -> None:
    """Count the visits that no live row arrives at: where the first live row of each episode leaves from."""
    for place in range(ring.counters[EPISODES_LIVE]):
        first = ring.episodes[ring.live_episodes[place], FIRST]
        counts[graph.observation_vertex[ring.rows[first, OBSERVATION]] - 1, VISITS_AT] += 1


@kernel
def vertices_fit(graph: GraphArrays, counts: NDArray[np.int32]) -> bool:
    """Check vertices against what the rows say, and the lists of terminal and of free ones."""
    vertices, counters = graph.vertices, graph.counters
    high = counters[VERTICES_HIGH]
    state = np.zeros(high, np.uint8)
    live, terminals = 0, 0
    for vertex in range(high):
        if vertices[vertex, USES] != counts[vertex, ROWS_AT] or not np.isfinite(graph.reward_sums[vertex]):
            return False
        if vertices[vertex, USES] == 0:
            continue
        state[vertex] = LIVE
        live += 1
        visits, endings = counts[vertex, VISITS_AT], counts[vertex, ENDINGS_AT]
        if vertices[vertex, VISITS] != visits or vertices[vertex, ENDINGS] != endings:
            return False
        if vertices[vertex, STAMP] < 0 or vertices[vertex, STAMP] >= counters[VERTICES_EVER]:
            return False
        terminals += endings > 0
    if live != counters[VERTICES_LIVE] or terminals != counters[TERMINALS]:
        return False
    for place in range(terminals):
        vertex = graph.terminals[place]
        if vertex < 0 or vertex >= high or counts[vertex, ENDINGS_AT] == 0 or vertices[vertex, TERMINAL] != place:
            return False
    return free_list_fits(counters[VERTICES_FREE], vertices[:high, STAMP], state)


@kernel
def graph_fits(ring_at: Addresses, graph_at: Addresses) -> bool:
    """Say whether a loaded graph is that of the loaded rows."""
    ring, graph = unpack(Ring, ring_at), unpack(GraphArrays, graph_at)
    blocks = np.zeros(graph.counters[POOL_USED] + 1, np.int8)
    counts = np.zeros((graph.counters[VERTICES_HIGH], 3), np.int32)
    if not vertex_blocks_fit(graph, blocks) or not edges_fit(graph, blocks, counts) or not blocks_apart(blocks):
        return False
    if not rows_on_edges_fit(ring, graph, counts):
        return False
    count_first_visits(ring, graph, counts)
    return vertices_fit(graph, counts)
