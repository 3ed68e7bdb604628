"""The reverse breadth-first sweep, resumable after every row.

    queue      vertices waiting to be expanded, a ring; each with its STAMP, because a vertex may leave the graph while
               it waits, and with the row it was reached by (used only without stitching)
    visited    visited[vertex] = sweep << 32 | low half of STAMP, for vertices that entered the queue in this sweep
    pending    rows of an expansion that did not fit into the batch, a ring
    roots      roots[0] are the vertices where the sweep starts, roots[1] their STAMPs
    settings   see below; kappa is the temperature of pseudo-terminal roots

A vertex is marked when it enters the queue. Algorithm 1 of the paper marks it when it is expanded and skips
marked ones; both expand the same vertices in the same order, but here the queue never holds a vertex twice.

The work of one call is bounded, however many predecessors a vertex has:

- A vertex with more than EDGES_AT_ONCE predecessors to follow is expanded in parts, as the batches need rows (HUB).
  Edges added in the meantime are followed too. When an edge is removed, the last edge moves to its place; if that
  place has been passed, the moved edge is not followed in this sweep.
- Weighted draws use tallies and trees that the graph maintains; see `graph/weights_kernels.py`.
- While LONG_QUEUE vertices or more wait, a vertex without predecessors is not enqueued: one call might have to skip
  a long run of them.
- An empty queue starts at its first place again. Otherwise it would move through all of its memory, and the call that
  first touches one of its pages of 2 MiB waits up to 5 ms for the operating system to provide it.
"""

# In compiled code Python's numbers and numpy's are one and the same.
# mypy: disable-error-code="no-any-return,arg-type,assignment,return-value"

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from backsweep.graph.graph_kernels import (
    COUNT,
    E_COUNT,
    E_HEAD,
    E_SIZE,
    E_START,
    ROW_EDGE,
    SOURCE,
    STAMP,
    START,
    TERMINALS,
    USES,
    GraphArrays,
)
from backsweep.graph.weights_kernels import draw_from_tally, draw_from_tree
from backsweep.jit.array_table import Addresses, Float64Vector, Int64Matrix, Int64Vector, WordVector, unpack
from backsweep.jit.compilation import inlined, kernel
from backsweep.jit.prefetching import prefetch
from backsweep.jit.random_streams_kernels import draw_below
from backsweep.store.ring_kernels import EPISODE, FIRST, LIVE, PREVIOUS, TOTAL, Ring
from backsweep.sweep.choice_kernels import draw_better_terminals, draw_by_visits, draw_distinct, draw_pseudo_terminals
from backsweep.sweep.edge_prefetch_kernels import prefetch_guessed, prefetch_source

# Columns of queue.
Q_VERTEX, Q_STAMP, Q_ROW, QUEUE_COLUMNS = range(4)
# Counters of a sweep.
QUEUE_HEAD = 0
QUEUE_COUNT = 1
PENDING_HEAD = 2
PENDING_COUNT = 3
SWEEP = 4  # the number of the current visited set
ROOTS_NEXT = 5
ROOTS_COUNT = 6
RESTARTS = 7
EXPANSIONS = 8
HUB = 9  # one more than the vertex that is being expanded in parts, 0 if there is none
HUB_STAMP = 10
HUB_NEXT = 11  # the place of its next edge
SWEEP_COUNTERS = 12
# Settings of a sweep.
NUM_ROOTS = 0
PREDECESSORS = 1  # at most how many are followed
PSEUDO = 2  # whether roots are drawn by accumulated reward
SEPARATE = 3  # whether every root has its own tree
BY_VISITS = 4  # whether predecessors are drawn in proportion to their transitions
STITCH = 5  # whether the search may pass from one episode to another
TREE = 6  # which of the graph's trees roots are drawn from, -1 if none
EDGES_AT_ONCE = 7  # more predecessors than this are followed in parts
LONG_QUEUE = 8  # while so many vertices wait, those without predecessors are not enqueued
CANDIDATES = 9  # the number of terminal vertices that a root is chosen from

ALL_PREDECESSORS = 0
LOOK_AHEAD_EDGES = 8
# How many expansions ahead each step of a chain of look-ups is prefetched. Usually a vertex for each of 8 roots waits.
VERTEX_AHEAD = 7
LIST_AHEAD = 6
EDGES_AHEAD = 4
SOURCE_AHEAD = 2
MOST_EMPTY_SWEEPS = 64  # in a row; then there may be no root with predecessors
FEW_WAITING = 6  # while fewer vertices wait, what comes next is guessed
DEFAULT_EDGES_AT_ONCE = 256
DEFAULT_LONG_QUEUE = 8192

HIGH_HALF = np.int64(32)
LOW_HALF = np.int64(0xFFFFFFFF)


class SweepArrays(NamedTuple):
    """A sweep in progress."""

    settings: Int64Vector
    kappa: Float64Vector
    random: WordVector
    queue: Int64Matrix
    visited: Int64Vector
    pending: Int64Vector
    roots: Int64Matrix
    counters: Int64Vector


class LiveRows(NamedTuple):
    """Which rows are live: the slot of the oldest, and the ring's size."""

    oldest: int
    oldest_slot: int
    capacity: int


@inlined
def wrap(place: int, size: int) -> int:
    """Return `place` modulo the ring's size; it is below twice that, and a division would be slow."""
    return place - size if place >= size else place


@inlined
def serial_of(slot: int, live: LiveRows) -> int:
    """Return the serial number of the live row in `slot`."""
    ahead = slot - live.oldest_slot
    return live.oldest + (ahead if ahead >= 0 else ahead + live.capacity)


@kernel
def drop_departed(vertices: NDArray[np.int64], queue: NDArray[np.int64], counters: NDArray[np.int64]) -> None:
    """Remove queued vertices that have left the graph. The queue has space for all live ones."""
    kept = 0
    size, head = queue.shape[0], counters[QUEUE_HEAD]
    for i in range(counters[QUEUE_COUNT]):
        place = wrap(head + i, size)
        vertex = queue[place, Q_VERTEX]
        if vertices[vertex, USES] > 0 and vertices[vertex, STAMP] == queue[place, Q_STAMP]:
            target = wrap(head + kept, size)
            for column in range(QUEUE_COLUMNS):
                queue[target, column] = queue[place, column]
            kept += 1
    counters[QUEUE_COUNT] = kept


@inlined
def enqueue(vertex: int, row: int, vertices: NDArray[np.int64], sweep: SweepArrays) -> None:
    """Put a vertex in the queue unless it was there before in this sweep."""
    queue, visited, counters = sweep.queue, sweep.visited, sweep.counters
    mark = (counters[SWEEP] << HIGH_HALF) | (vertices[vertex, STAMP] & LOW_HALF)
    if visited[vertex] == mark:
        return
    visited[vertex] = mark
    if counters[QUEUE_COUNT] == queue.shape[0]:
        drop_departed(vertices, queue, counters)
    place = wrap(counters[QUEUE_HEAD] + counters[QUEUE_COUNT], queue.shape[0])
    queue[place, Q_VERTEX] = vertex
    queue[place, Q_STAMP] = vertices[vertex, STAMP]
    queue[place, Q_ROW] = row
    counters[QUEUE_COUNT] += 1


@inlined
def emit(row: int, sweep: SweepArrays) -> None:
    """Append a row to the pending ones."""
    pending, counters = sweep.pending, sweep.counters
    pending[wrap(counters[PENDING_HEAD] + counters[PENDING_COUNT], pending.shape[0])] = row
    counters[PENDING_COUNT] += 1


@inlined
def leads_on(vertex: int, row: int, live: LiveRows, ring: Ring, graph: GraphArrays, sweep: SweepArrays) -> bool:
    """Return whether the expansion of a vertex that was reached by a row would return any row now."""
    if sweep.settings[STITCH] != 0:
        return graph.vertices[vertex, COUNT] > 0
    slot = row % live.capacity
    return ring.episodes[ring.rows[slot, EPISODE], FIRST] != slot


@inlined
def reach(vertex: int, row: int, live: LiveRows, ring: Ring, graph: GraphArrays, sweep: SweepArrays) -> None:
    """Return a row, and enqueue its source."""
    emit(row, sweep)
    waiting = sweep.counters[QUEUE_COUNT]
    if waiting < sweep.settings[LONG_QUEUE] or leads_on(vertex, row, live, ring, graph, sweep):
        enqueue(vertex, row, graph.vertices, sweep)


@inlined
def follow_edge(edge: int, live: LiveRows, ring: Ring, graph: GraphArrays, sweep: SweepArrays) -> None:
    """Draw one transition of an edge and put the edge's source in the queue."""
    edges = graph.edges
    count = edges[edge, E_COUNT]
    ahead = edges[edge, E_HEAD] + draw_below(sweep.random, count)
    slot = graph.pool[edges[edge, E_START] + (ahead & (edges[edge, E_SIZE] - 1))]
    if sweep.counters[QUEUE_COUNT] < FEW_WAITING:
        prefetch_guessed(edge, slot, ring.rows, graph, sweep.visited)
    prefetch(ring.rows, slot)  # the row will be read for the batch
    prefetch(ring.values, slot)
    prefetch(ring.actions, slot)
    reach(edges[edge, SOURCE], serial_of(slot, live), live, ring, graph, sweep)


@inlined
def look_ahead(graph: GraphArrays, sweep: SweepArrays) -> None:
    """Prefetch what the next expansions will read; nothing changes.

    Each is found by the one before: a vertex, its list of edges, the edges, and what following one of them reads.
    """
    vertices, pool, queue, counters = graph.vertices, graph.pool, sweep.queue, sweep.counters
    head, waiting, size = counters[QUEUE_HEAD], counters[QUEUE_COUNT], queue.shape[0]
    if waiting > VERTEX_AHEAD:
        prefetch(vertices, queue[wrap(head + VERTEX_AHEAD, size), Q_VERTEX])
    if waiting > LIST_AHEAD:
        prefetch(pool, vertices[queue[wrap(head + LIST_AHEAD, size), Q_VERTEX], START])
    if waiting > EDGES_AHEAD:
        vertex = queue[wrap(head + EDGES_AHEAD, size), Q_VERTEX]
        start = vertices[vertex, START]
        for i in range(min(vertices[vertex, COUNT], LOOK_AHEAD_EDGES)):
            prefetch(graph.edges, pool[start + i])
    if waiting > SOURCE_AHEAD:
        vertex = queue[wrap(head + SOURCE_AHEAD, size), Q_VERTEX]
        if vertices[vertex, COUNT] > 0:
            prefetch_source(pool[vertices[vertex, START]], graph, sweep.visited)


@inlined
def expand(
    live: LiveRows,
    ring: Ring,
    graph: GraphArrays,
    sweep: SweepArrays,
    chosen: NDArray[np.int64],
    swapped: NDArray[np.int64],
) -> None:
    """Take the next vertex from the queue and follow some of the edges that lead to it."""
    vertices, edges, pool = graph.vertices, graph.edges, graph.pool
    queue, counters, state = sweep.queue, sweep.counters, sweep.random
    predecessors = sweep.settings[PREDECESSORS]
    look_ahead(graph, sweep)
    head = counters[QUEUE_HEAD]
    vertex, stamp, row = queue[head, Q_VERTEX], queue[head, Q_STAMP], queue[head, Q_ROW]
    counters[QUEUE_HEAD] = wrap(head + 1, queue.shape[0])
    counters[QUEUE_COUNT] -= 1
    if vertices[vertex, USES] == 0 or vertices[vertex, STAMP] != stamp:
        return  # it left the graph while it was queued
    counters[EXPANSIONS] += 1
    if sweep.settings[STITCH] == 0 and row >= 0:
        follow_episode(row, live, ring, graph, sweep)
        return
    start, count = vertices[vertex, START], vertices[vertex, COUNT]
    if predecessors == ALL_PREDECESSORS or predecessors >= count:
        if count > sweep.settings[EDGES_AT_ONCE]:
            counters[HUB] = vertex + 1
            counters[HUB_STAMP] = stamp
            counters[HUB_NEXT] = 0
            return
        for i in range(count):
            follow_edge(pool[start + i], live, ring, graph, sweep)
        return
    if sweep.settings[BY_VISITS] != 0 and graph.tallies.shape[0]:
        draw_from_tally(state, vertex, graph, predecessors, chosen)
    elif sweep.settings[BY_VISITS] != 0:
        draw_by_visits(state, start, count, edges, pool, predecessors, chosen)
    else:
        draw_distinct(state, count, predecessors, chosen, swapped)
    for i in range(predecessors):
        prefetch_source(pool[start + chosen[i]], graph, sweep.visited)
    for i in range(predecessors):
        follow_edge(pool[start + chosen[i]], live, ring, graph, sweep)


@inlined
def follow_hub(live: LiveRows, ring: Ring, graph: GraphArrays, sweep: SweepArrays) -> None:
    """Follow the next edges that lead to the vertex that is being expanded in parts."""
    vertices, pool, counters = graph.vertices, graph.pool, sweep.counters
    vertex = counters[HUB] - 1
    if vertices[vertex, USES] == 0 or vertices[vertex, STAMP] != counters[HUB_STAMP]:
        counters[HUB] = 0  # it left the graph
        return
    start, count = vertices[vertex, START], vertices[vertex, COUNT]
    last = min(counters[HUB_NEXT] + sweep.settings[EDGES_AT_ONCE], count)
    for i in range(counters[HUB_NEXT], last):
        prefetch(graph.edges, pool[start + min(i + LOOK_AHEAD_EDGES, count - 1)])
        follow_edge(pool[start + i], live, ring, graph, sweep)
    counters[HUB_NEXT] = last
    if last == count:
        counters[HUB] = 0


@inlined
def follow_episode(row: int, live: LiveRows, ring: Ring, graph: GraphArrays, sweep: SweepArrays) -> None:
    """Append the row before `row` in its episode, if it is live, and put its source in the queue."""
    if row < live.oldest:
        return
    slot = row % live.capacity
    if ring.episodes[ring.rows[slot, EPISODE], FIRST] == slot:
        return
    before = np.int64(ring.rows[slot, PREVIOUS])
    source = graph.edges[graph.rows[before, ROW_EDGE], SOURCE]
    reach(source, serial_of(before, live), live, ring, graph, sweep)


@kernel
def draw_roots(graph: GraphArrays, sweep: SweepArrays, swapped: NDArray[np.int64]) -> int:
    """Fill `roots` with the roots of the next sweep; return their number."""
    state, roots = sweep.random, sweep.roots[0]
    if sweep.settings[TREE] >= 0:
        return draw_from_tree(state, sweep.settings[TREE], graph, roots)
    if sweep.settings[PSEUDO] != 0:
        return draw_pseudo_terminals(state, sweep.kappa[0], graph, roots)
    if sweep.settings[CANDIDATES] > 1:
        return draw_better_terminals(state, sweep.settings[CANDIDATES], graph, roots)
    available = graph.counters[TERMINALS]
    count = min(sweep.settings[NUM_ROOTS], available)
    draw_distinct(state, available, count, roots, swapped)
    for i in range(count):
        roots[i] = graph.terminals[roots[i]]
    return count


@kernel
def sweep_rows(ring_at: Addresses, graph_at: Addresses, sweep_at: Addresses, out: NDArray[np.int64]) -> int:
    """Fill `out` with the next rows of the sweep; return how many: fewer only if there are no roots, or none leads on.

    Roots by accumulated reward may have no predecessors, and other roots are drawn then.
    The random state carries over from call to call, so the rows do not depend on batch sizes.
    """
    ring, graph, sweep = (
        unpack(Ring, ring_at),
        unpack(GraphArrays, graph_at),
        unpack(SweepArrays, sweep_at),
    )
    vertices, pending, roots, counters = graph.vertices, sweep.pending, sweep.roots, sweep.counters
    oldest, capacity = ring.counters[TOTAL] - ring.counters[LIVE], ring.rows.shape[0]
    live = LiveRows(oldest, oldest % capacity, capacity)
    predecessors = sweep.settings[PREDECESSORS]
    chosen = np.empty(max(predecessors, 1), np.int64)
    swapped = np.empty(max(predecessors, sweep.settings[NUM_ROOTS]), np.int64)
    filled = 0
    since_restart, empty = 1, 0
    while True:
        while counters[PENDING_COUNT] > 0 and filled < out.shape[0]:
            row = pending[counters[PENDING_HEAD]]
            counters[PENDING_HEAD] = wrap(counters[PENDING_HEAD] + 1, pending.shape[0])
            counters[PENDING_COUNT] -= 1
            if row >= oldest:
                out[filled] = row
                filled += 1
                since_restart += 1
        if filled == out.shape[0]:
            return filled
        if counters[HUB] != 0:
            follow_hub(live, ring, graph, sweep)
            continue
        if counters[QUEUE_COUNT] == 0:
            counters[QUEUE_HEAD] = 0
        if counters[QUEUE_COUNT] == 0 and counters[ROOTS_NEXT] == counters[ROOTS_COUNT]:
            empty = empty + 1 if since_restart == 0 else 0
            if empty == MOST_EMPTY_SWEEPS:
                return filled
            since_restart = 0
            counters[RESTARTS] += 1
            counters[ROOTS_NEXT] = 0
            counters[ROOTS_COUNT] = draw_roots(graph, sweep, swapped)
            for i in range(counters[ROOTS_COUNT]):
                roots[1, i] = vertices[roots[0, i], STAMP]
            if counters[ROOTS_COUNT] == 0:
                return filled
            if sweep.settings[SEPARATE] == 0:
                counters[SWEEP] += 1
                while counters[ROOTS_NEXT] < counters[ROOTS_COUNT]:
                    enqueue(roots[0, counters[ROOTS_NEXT]], -1, vertices, sweep)
                    counters[ROOTS_NEXT] += 1
        if counters[QUEUE_COUNT] == 0:
            # The next tree: a new visited set and one root, which may have left the graph since it was drawn.
            root, stamp = roots[0, counters[ROOTS_NEXT]], roots[1, counters[ROOTS_NEXT]]
            counters[ROOTS_NEXT] += 1
            counters[SWEEP] += 1
            if vertices[root, USES] > 0 and vertices[root, STAMP] == stamp:
                enqueue(root, -1, vertices, sweep)
            continue
        expand(live, ring, graph, sweep, chosen, swapped)
