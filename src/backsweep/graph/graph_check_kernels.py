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
from backsweep.jit.array_table import Addresses, borrow, unpack
from backsweep.jit.compilation import inlined, kernel
from backsweep.jit.prefetching import prefetch
from backsweep.snapshot.contents_kernels import LIVE, free_list_fits, take_block, taken_bits
from backsweep.store.ring_kernels import (
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
from backsweep.store.ring_kernels import LIVE as LIVE_ROWS
from backsweep.store.store_check_kernels import ALL_FLAGS

# Columns of what is noted for each vertex: its block, and what the edges say.
BLOCK_START, BLOCK_COUNT, ROWS_AT, VISITS_AT, NOTE_COLUMNS = range(5)
# Columns of what is noted for each edge. Its next row is at BASE + REACHED in the pool: REACHED is the size of its
# block, a power of two, plus a place in it, so that behind the last place it is the next power of two.
FROM, TO, BASE, REACHED, EDGE_NOTES = range(5)

AHEAD = 24
"""How many steps ahead the second look-up of a chain is prefetched; the first is prefetched twice as far ahead."""


@inlined
def ask_for_edge(edge: int, graph: GraphArrays, noted: NDArray[np.int32]) -> None:
    """Prefetch what the check of a later edge will look up."""
    edges, high = graph.edges, graph.counters[VERTICES_HIGH]
    if edge + 2 * AHEAD >= graph.counters[EDGES_HIGH]:
        return
    far, near = edge + 2 * AHEAD, edges[edge + AHEAD, TARGET]
    if 0 <= edges[far, TARGET] < high:
        prefetch(noted, edges[far, TARGET])
    prefetch(noted, edges[far, SOURCE])
    if 0 <= near < high:
        prefetch(graph.pool, np.int64(noted[near, BLOCK_START]) + edges[edge + AHEAD, PLACE])


@kernel
def vertex_blocks_fit(graph: GraphArrays, taken: NDArray[np.uint64], noted: NDArray[np.int32]) -> bool:
    """Check and note the blocks of live vertices, which hold as many entries as there are live edges."""
    vertices, entries, used = graph.vertices, 0, graph.counters[POOL_USED]
    for vertex in range(graph.counters[VERTICES_HIGH]):
        if vertices[vertex, USES] <= 0:
            continue
        count, size = vertices[vertex, COUNT], vertices[vertex, SIZE]
        if count < 0 or count > size or vertices[vertex, HEAD] != 0:
            return False
        if size > 0:
            if not take_block(taken, used, vertices[vertex, START], size):
                return False
            noted[vertex, BLOCK_START] = vertices[vertex, START]
        noted[vertex, BLOCK_COUNT] = count
        entries += count
    return entries == graph.counters[EDGES_LIVE]


@kernel
def edges_in_place(
    graph: GraphArrays, taken: NDArray[np.uint64], noted: NDArray[np.int32], notes: NDArray[np.int32]
) -> bool:
    """Check that each live edge is in its place in its target's block, and its own block; count the vertices' uses.

    There are as many entries as edges, and each edge has its own place, so the blocks hold nothing else. That an edge
    has as many rows as it says is checked later, with the rows. An edge that is not live is noted as one to nowhere.
    """
    edges, counters = graph.edges, graph.counters
    high = counters[VERTICES_HIGH]
    live = 0
    state = np.zeros(counters[EDGES_HIGH], np.uint8)
    for edge in range(counters[EDGES_HIGH]):
        ask_for_edge(edge, graph, noted)
        if edges[edge, E_COUNT] < 0:
            return False
        if edges[edge, E_COUNT] == 0:
            notes[edge, FROM] = -1
            continue
        state[edge] = LIVE
        live += 1
        source, target, count = edges[edge, SOURCE], edges[edge, TARGET], edges[edge, E_COUNT]
        place, size, start = np.int64(edges[edge, PLACE]), np.int64(edges[edge, E_SIZE]), np.int64(edges[edge, E_START])
        if count > size or edges[edge, E_HEAD] < 0 or edges[edge, E_HEAD] >= size:
            return False
        if not take_block(taken, counters[POOL_USED], start, size):
            return False
        if source < 0 or source >= high or target < 0 or target >= high:
            return False
        if place < 0 or place >= noted[target, BLOCK_COUNT] or graph.pool[noted[target, BLOCK_START] + place] != edge:
            return False
        noted[source, ROWS_AT] += count
        noted[target, ROWS_AT] += count
        noted[target, VISITS_AT] += count
        notes[edge, FROM], notes[edge, TO] = source, target
        notes[edge, BASE], notes[edge, REACHED] = start - size, size + edges[edge, E_HEAD]
    return live == counters[EDGES_LIVE] and free_list_fits(
        counters[EDGES_FREE], edges[: counters[EDGES_HIGH], SOURCE], state
    )


@kernel
def edges_fit(graph_at: Addresses, noted: NDArray[np.int32], notes: NDArray[np.int32]) -> bool:
    """Check the edges and all blocks of a loaded graph; take notes of vertices and edges for `rows_fit_graph`."""
    graph = unpack(GraphArrays, graph_at)
    taken = taken_bits(graph.counters[POOL_USED])
    return vertex_blocks_fit(graph, taken, borrow(noted)) and edges_in_place(graph, taken, borrow(noted), borrow(notes))


@inlined
def ask_for_row(slot: int, graph: GraphArrays, notes: NDArray[np.int32]) -> None:
    """Prefetch what the check of a later row will look up."""
    if slot + 2 * AHEAD >= graph.rows.shape[0]:
        return
    prefetch(notes, graph.rows[slot + 2 * AHEAD, ROW_EDGE])
    near = graph.rows[slot + AHEAD, ROW_EDGE]
    if 0 <= near < notes.shape[0]:
        prefetch(graph.pool, np.int64(notes[near, BASE]) + notes[near, REACHED])


@kernel
def rows_on_edges_fit(ring: Ring, graph: GraphArrays, notes: NDArray[np.int32], endings: NDArray[np.int32]) -> bool:
    """Check that each row is the next one on the edge between its vertices; count where rows terminate.

    Rows are taken oldest first, so an edge's block must have them in this order.
    """
    rows, edges = ring.rows, graph.edges
    capacity, live = rows.shape[0], ring.counters[LIVE_ROWS]
    oldest_slot = (ring.counters[TOTAL] - live) % capacity
    for age in range(live):
        slot = oldest_slot + age
        slot = slot if slot < capacity else slot - capacity
        ask_for_row(slot, graph, notes)
        edge, flags, own = graph.rows[slot, ROW_EDGE], graph.rows[slot, ROW_FLAGS], rows[slot, FLAGS]
        if edge < 0 or edge >= notes.shape[0]:
            return False
        if flags & ALL_FLAGS != own or flags & ~ALL_FLAGS != (CONTINUED if rows[slot, NEXT] >= 0 else 0):
            return False
        source = graph.observation_vertex[rows[slot, OBSERVATION]] - 1
        target = graph.observation_vertex[rows[slot, NEXT_OBSERVATION]] - 1
        reached = np.int64(notes[edge, REACHED])
        if source < 0 or notes[edge, FROM] != source or notes[edge, TO] != target:
            return False
        if graph.pool[notes[edge, BASE] + reached] != slot:
            return False
        is_last = (reached + 1) & reached == 0
        notes[edge, REACHED] = (reached + 1) >> is_last
        if own & TERMINATED != 0:
            endings[target] += 1
    # No place holds two rows, so an edge has at most as many as its block has places. With as many rows as there are
    # on all edges, each edge has those that it says if its next row would be behind the last of them.
    held = 0
    for edge in range(notes.shape[0]):
        count, size = edges[edge, E_COUNT], edges[edge, E_SIZE]
        held += count
        if count > 0 and notes[edge, REACHED] != size + ((edges[edge, E_HEAD] + count) & (size - 1)):
            return False
    return held == live


@kernel
def count_first_visits(ring: Ring, graph: GraphArrays, noted: NDArray[np.int32]) -> None:
    """Count the visits that no live row arrives at: where the first live row of each episode leaves from."""
    for place in range(ring.counters[EPISODES_LIVE]):
        first = ring.episodes[ring.live_episodes[place], FIRST]
        noted[graph.observation_vertex[ring.rows[first, OBSERVATION]] - 1, VISITS_AT] += 1


@kernel
def vertices_fit(graph: GraphArrays, noted: NDArray[np.int32], ends: NDArray[np.int32]) -> bool:
    """Check vertices against what the rows say, and the lists of terminal and of free ones."""
    vertices, counters = graph.vertices, graph.counters
    high = counters[VERTICES_HIGH]
    state = np.zeros(high, np.uint8)
    live, terminals = 0, 0
    for vertex in range(high):
        if vertices[vertex, USES] != noted[vertex, ROWS_AT] or not np.isfinite(graph.reward_sums[vertex]):
            return False
        if vertices[vertex, USES] == 0:
            continue
        state[vertex] = LIVE
        live += 1
        if vertices[vertex, VISITS] != noted[vertex, VISITS_AT] or vertices[vertex, ENDINGS] != ends[vertex]:
            return False
        if vertices[vertex, STAMP] < 0 or vertices[vertex, STAMP] >= counters[VERTICES_EVER]:
            return False
        terminals += ends[vertex] > 0
    if live != counters[VERTICES_LIVE] or terminals != counters[TERMINALS]:
        return False
    for place in range(terminals):
        vertex = graph.terminals[place]
        if vertex < 0 or vertex >= high or ends[vertex] == 0 or vertices[vertex, TERMINAL] != place:
            return False
    return free_list_fits(counters[VERTICES_FREE], vertices[:high, STAMP], state)


@kernel
def rows_fit_graph(ring_at: Addresses, graph_at: Addresses, noted: NDArray[np.int32], notes: NDArray[np.int32]) -> bool:
    """Say whether a loaded graph, whose edges fit, is that of the loaded rows."""
    ring, graph = unpack(Ring, ring_at), unpack(GraphArrays, graph_at)
    endings = np.zeros(graph.counters[VERTICES_HIGH], np.int32)
    if not rows_on_edges_fit(ring, graph, borrow(notes), endings):  # arrays of the caller alone may be borrowed
        return False
    count_first_visits(ring, graph, borrow(noted))
    return vertices_fit(graph, borrow(noted), endings)
