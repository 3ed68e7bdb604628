"""The reverse breadth-first sweep, resumable after every row.

    queue      vertices waiting to be expanded, a ring; each with its STAMP, because a vertex may leave the graph while
               it waits, and with the row it was reached by (used only without stitching)
    visited    visited[vertex] = sweep << 32 | low half of STAMP, for vertices that entered the queue in this sweep
    pending    rows of an expansion that did not fit into the batch, a ring
    roots      roots[0] are the vertices where the sweep starts, roots[1] their STAMPs
    settings   see below; kappa is the temperature of pseudo-terminal roots

A vertex is marked when it enters the queue. Algorithm 1 of the paper marks it when it is expanded and skips
marked ones; both expand the same vertices in the same order, but here the queue never holds a vertex twice.
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
    VERTICES_HIGH,
    VISITS,
    GraphArrays,
)
from backsweep.jit.array_table import Float64Vector, Int64Matrix, Int64Vector, Row, WordVector, unpack
from backsweep.jit.compilation import inlined, kernel
from backsweep.jit.prefetching import prefetch
from backsweep.jit.random_streams_kernels import draw_below, draw_unit
from backsweep.store.store_kernels import EPISODE, FIRST, LIVE, PREVIOUS, TOTAL, Ring

# Columns of queue.
Q_VERTEX = 0
Q_STAMP = 1
Q_ROW = 2
QUEUE_COLUMNS = 3
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
SWEEP_COUNTERS = 9
# Settings of a sweep.
NUM_ROOTS = 0
PREDECESSORS = 1  # at most how many are followed
PSEUDO = 2  # whether roots are drawn by accumulated reward
SEPARATE = 3  # whether every root has its own tree
BY_VISITS = 4  # whether predecessors are drawn in proportion to their transitions
STITCH = 5  # whether the search may pass from one episode to another
SWEEP_SETTINGS = 6

ALL_PREDECESSORS = 0
LOOK_AHEAD_EDGES = 8

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
def draw_distinct(
    state: NDArray[np.uint64], bound: int, count: int, chosen: NDArray[np.int64], swapped: NDArray[np.int64]
) -> None:
    """Fill `chosen` with `count` distinct numbers from 0..bound-1 in random order: the start of a shuffle.

    The shuffle would swap place i with a random later place. Nothing is moved here; the content of a place
    is found from `swapped`, the list of swaps so far.
    """
    for i in range(count):
        place = i + draw_below(state, bound - i)
        swapped[i] = place
        value = place
        # The content of `place` after the swaps: undo them, last first.
        for j in range(i - 1, -1, -1):
            if value == j:
                value = swapped[j]
            elif value == swapped[j]:
                value = j
        chosen[i] = value


@kernel
def draw_by_visits(
    state: NDArray[np.uint64],
    start: int,
    bound: int,
    edges: NDArray[np.int32],
    pool: NDArray[np.int32],
    wanted: int,
    chosen: NDArray[np.int64],
) -> None:
    """Fill `chosen` with `wanted` distinct places 0..bound-1, drawn in proportion to the transitions on their edges."""
    left = np.int64(0)
    for i in range(bound):
        left += edges[pool[start + i], E_COUNT]
    for k in range(wanted):
        ticket = draw_below(state, left)
        for i in range(bound):
            taken = False
            for j in range(k):
                if chosen[j] == i:
                    taken = True
                    break
            if taken:
                continue
            count = edges[pool[start + i], E_COUNT]
            if ticket < count:
                chosen[k] = i
                left -= count
                break
            ticket -= count


@inlined
def emit(row: int, sweep: SweepArrays) -> None:
    """Append a row to the pending ones."""
    pending, counters = sweep.pending, sweep.counters
    pending[wrap(counters[PENDING_HEAD] + counters[PENDING_COUNT], pending.shape[0])] = row
    counters[PENDING_COUNT] += 1


@inlined
def follow_edge(edge: int, live: LiveRows, graph: GraphArrays, sweep: SweepArrays) -> None:
    """Draw one transition of an edge and put the edge's source in the queue."""
    edges = graph.edges
    count = edges[edge, E_COUNT]
    ahead = edges[edge, E_HEAD] + draw_below(sweep.random, count)
    slot = graph.pool[edges[edge, E_START] + (ahead & (edges[edge, E_SIZE] - 1))]
    row = serial_of(slot, live)
    emit(row, sweep)
    enqueue(edges[edge, SOURCE], row, graph.vertices, sweep)


@inlined
def look_ahead(graph: GraphArrays, sweep: SweepArrays) -> None:
    """Prefetch what the next expansions will read; nothing changes.

    The vertex is read three expansions ahead, its list of edges two ahead, the edges one ahead.
    """
    vertices, pool, queue, counters = graph.vertices, graph.pool, sweep.queue, sweep.counters
    head, waiting, size = counters[QUEUE_HEAD], counters[QUEUE_COUNT], queue.shape[0]
    if waiting > 3:
        prefetch(vertices, queue[wrap(head + 3, size), Q_VERTEX])
    if waiting > 2:
        prefetch(pool, vertices[queue[wrap(head + 2, size), Q_VERTEX], START])
    if waiting > 1:
        vertex = queue[wrap(head + 1, size), Q_VERTEX]
        start = vertices[vertex, START]
        for i in range(min(vertices[vertex, COUNT], LOOK_AHEAD_EDGES)):
            prefetch(graph.edges, pool[start + i])


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
        for i in range(count):
            follow_edge(pool[start + i], live, graph, sweep)
        return
    if sweep.settings[BY_VISITS] != 0:
        draw_by_visits(state, start, count, edges, pool, predecessors, chosen)
    else:
        draw_distinct(state, count, predecessors, chosen, swapped)
    for i in range(predecessors):
        source = edges[pool[start + chosen[i]], SOURCE]
        prefetch(vertices, source)
        prefetch(sweep.visited, source)
        prefetch(pool, edges[pool[start + chosen[i]], E_START])
    for i in range(predecessors):
        follow_edge(pool[start + chosen[i]], live, graph, sweep)


@inlined
def follow_episode(row: int, live: LiveRows, ring: Ring, graph: GraphArrays, sweep: SweepArrays) -> None:
    """Append the row before `row` in its episode, if it is live, and put its source in the queue."""
    if row < live.oldest:
        return
    slot = row % live.capacity
    if ring.episodes[ring.rows[slot, EPISODE], FIRST] == slot:
        return
    before = np.int64(ring.rows[slot, PREVIOUS])
    serial = serial_of(before, live)
    emit(serial, sweep)
    enqueue(graph.edges[graph.rows[before, ROW_EDGE], SOURCE], serial, graph.vertices, sweep)


@kernel
def draw_pseudo_terminals(state: NDArray[np.uint64], kappa: float, graph: GraphArrays, roots: NDArray[np.int64]) -> int:
    """Draw roots from softmax(U / kappa) over all live vertices, with replacement; return how many.

    U is a vertex's average accumulated reward. The largest U is subtracted first, so that the largest weight is 1.
    """
    vertices, reward_sums = graph.vertices, graph.reward_sums
    high = graph.counters[VERTICES_HIGH]
    largest = -np.inf
    for vertex in range(high):
        if vertices[vertex, USES] > 0:
            largest = max(largest, reward_sums[vertex] / vertices[vertex, VISITS])
    if largest == -np.inf:
        return 0
    total = 0.0
    for vertex in range(high):
        if vertices[vertex, USES] > 0:
            total += np.exp((reward_sums[vertex] / vertices[vertex, VISITS] - largest) / kappa)
    for i in range(roots.shape[0]):
        ticket = draw_unit(state) * total
        chosen = -1
        for vertex in range(high):
            if vertices[vertex, USES] > 0:
                weight = np.exp((reward_sums[vertex] / vertices[vertex, VISITS] - largest) / kappa)
                if weight > 0.0:
                    chosen = vertex
                    if ticket < weight:
                        break
                    ticket -= weight
        roots[i] = chosen
    return roots.shape[0]


@kernel
def draw_roots(graph: GraphArrays, sweep: SweepArrays, swapped: NDArray[np.int64]) -> int:
    """Fill `roots` with the roots of the next sweep; return their number."""
    state, roots = sweep.random, sweep.roots[0]
    if sweep.settings[PSEUDO] != 0:
        return draw_pseudo_terminals(state, sweep.kappa[0], graph, roots)
    available = graph.counters[TERMINALS]
    count = min(sweep.settings[NUM_ROOTS], available)
    draw_distinct(state, available, count, roots, swapped)
    for i in range(count):
        roots[i] = graph.terminals[roots[i]]
    return count


@kernel
def sweep_rows(ring_row: Row, graph_row: Row, sweep_row: Row, out: NDArray[np.int64]) -> int:
    """Fill `out` with the next rows of the sweep; return how many there were (fewer only if a whole sweep has none).

    The random state carries over from call to call, so the rows do not depend on batch sizes.
    """
    ring, graph, sweep = unpack(Ring, ring_row), unpack(GraphArrays, graph_row), unpack(SweepArrays, sweep_row)
    vertices, pending, roots, counters = graph.vertices, sweep.pending, sweep.roots, sweep.counters
    oldest, capacity = ring.counters[TOTAL] - ring.counters[LIVE], ring.rows.shape[0]
    live = LiveRows(oldest, oldest % capacity, capacity)
    predecessors = sweep.settings[PREDECESSORS]
    chosen = np.empty(max(predecessors, 1), np.int64)
    swapped = np.empty(max(predecessors, sweep.settings[NUM_ROOTS]), np.int64)
    filled = 0
    since_restart = 1
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
        if counters[QUEUE_COUNT] == 0 and counters[ROOTS_NEXT] == counters[ROOTS_COUNT]:
            if since_restart == 0:
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
