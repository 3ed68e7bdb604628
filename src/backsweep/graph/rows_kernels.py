"""Rows of the graph: added when the store adds them, removed when it overwrites them."""

# In compiled code Python's numbers and numpy's are one and the same.
# mypy: disable-error-code="no-any-return,arg-type,assignment,return-value"

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from backsweep.graph.graph_kernels import (
    AFTER,
    BEFORE,
    COLLISIONS,
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
    KEY,
    PLACE,
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
    find_edge_into,
    has_key,
    hash_edge,
    hash_key,
    push,
    remove_edge_entry,
    tally_block,
)
from backsweep.graph.weights_kernels import count_row, move_count, renew_score
from backsweep.jit.array_table import Addresses, borrow, unpack
from backsweep.jit.compilation import inlined, kernel
from backsweep.jit.hash_table_kernels import (
    EMPTY,
    after,
    entry,
    home,
    insert,
    likely_item,
    may_be,
    number_in,
    prefetch_home,
    remove,
)
from backsweep.jit.prefetching import prefetch
from backsweep.store.ring_kernels import (
    FLAGS,
    NEXT_OBSERVATION,
    OBSERVATION,
    PREVIOUS,
    RETURN,
    REWARD,
    STARTS_EPISODE,
    TERMINATED,
    Ring,
    later_slot,
)
from backsweep.store.store_kernels import LOOK_AHEAD


@inlined
def find_or_make_vertex(key: NDArray[np.int64], code: np.uint64, graph: GraphArrays) -> int:
    """Return the vertex of a new observation's key with this hash. A known key is counted as a collision."""
    vertices, table, counters = graph.vertices, graph.vertex_table, graph.counters
    place = home(code, table)
    while table[place] != EMPTY:
        vertex = number_in(table[place])
        if may_be(table[place], code) and has_key(vertex, key, vertices):
            counters[COLLISIONS] += 1
            return vertex
        place = after(place, table)
    if counters[VERTICES_FREE] != 0:
        vertex = counters[VERTICES_FREE] - 1
        counters[VERTICES_FREE] = vertices[vertex, STAMP]
    else:
        vertex = counters[VERTICES_HIGH]
        counters[VERTICES_HIGH] += 1
    for column in range(KEY):
        vertices[vertex, column] = 0
    vertices[vertex, STAMP] = counters[VERTICES_EVER]
    for i in range(key.shape[0]):
        vertices[vertex, KEY + i] = key[i]
    graph.reward_sums[vertex] = 0.0
    counters[VERTICES_EVER] += 1
    counters[VERTICES_LIVE] += 1
    table[place] = entry(code, vertex)
    return vertex


@inlined
def leave_vertex(vertex: int, graph: GraphArrays) -> None:
    """Remove one use of a vertex and release it after the last."""
    vertices, counters = graph.vertices, graph.counters
    vertices[vertex, USES] -= 1
    if vertices[vertex, USES] == 0:
        remove(hash_key(vertices[vertex, KEY:]), vertex, graph.vertex_table)
        vertices[vertex, STAMP] = counters[VERTICES_FREE]
        vertices[vertex, COUNT] = 0
        vertices[vertex, SIZE] = 0
        counters[VERTICES_FREE] = vertex + 1
        counters[VERTICES_LIVE] -= 1


@inlined
def remove_row(slot: int, graph: GraphArrays) -> None:
    """Remove the oldest row, which is in `slot`, from the graph."""
    vertices, edges, pool, counters = graph.vertices, graph.edges, graph.pool, graph.counters
    edge = graph.rows[slot, ROW_EDGE]
    flags = graph.rows[slot, ROW_FLAGS]
    source, target = edges[edge, SOURCE], edges[edge, TARGET]
    # The oldest row of all is the oldest of its edge.
    edges[edge, E_HEAD] = (edges[edge, E_HEAD] + 1) & (edges[edge, E_SIZE] - 1)
    edges[edge, E_COUNT] -= 1
    count_row(edge, -1, graph)
    if edges[edge, E_COUNT] == 0:
        start, place, before = vertices[target, START], edges[edge, PLACE], vertices[target, COUNT]
        vertices[target, COUNT] -= 1
        if place != before - 1:
            moved = pool[start + before - 1]
            pool[start + place] = moved
            move_count(moved, place, graph)
            edges[moved, PLACE] = place
        if before > 1:
            remove_edge_entry(edge, edges, graph.edge_table)
        if before == 2:
            remove_edge_entry(pool[start], edges, graph.edge_table)
        edges[edge, E_SIZE] = 0
        edges[edge, SOURCE] = counters[EDGES_FREE]
        counters[EDGES_FREE] = edge + 1
        counters[EDGES_LIVE] -= 1
    if flags & TERMINATED:
        vertices[target, ENDINGS] -= 1
        if vertices[target, ENDINGS] == 0:
            counters[TERMINALS] -= 1
            last = graph.terminals[counters[TERMINALS]]
            graph.terminals[vertices[target, TERMINAL]] = last
            vertices[last, TERMINAL] = vertices[target, TERMINAL]
    vertices[source, VISITS] -= 1
    graph.reward_sums[source] -= graph.returns[slot, BEFORE]
    if not flags & CONTINUED:
        vertices[target, VISITS] -= 1
        graph.reward_sums[target] -= graph.returns[slot, AFTER]
    leave_vertex(source, graph)
    leave_vertex(target, graph)
    renew_score(source, graph)
    renew_score(target, graph)


@inlined
def prefetch_overwritten(slot: int, graph: GraphArrays) -> None:
    """Prefetch what will be looked up when the rows some slots after `slot` are removed, step by step."""
    edges, vertices, rows, capacity = graph.edges, graph.vertices, graph.rows, graph.rows.shape[0]
    edge = rows[later_slot(slot, LOOK_AHEAD, capacity), ROW_EDGE]
    source, target = edges[edge, SOURCE], edges[edge, TARGET]
    if edges[edge, E_COUNT] == 1 and vertices[target, COUNT] > 1:
        prefetch_home(hash_edge(source, target), graph.edge_table)
    if vertices[source, USES] == 1:
        prefetch_home(hash_key(vertices[source, KEY:]), graph.vertex_table)
    edge = rows[later_slot(slot, 2 * LOOK_AHEAD, capacity), ROW_EDGE]
    prefetch_vertex(edges[edge, SOURCE], graph)
    prefetch(vertices, edges[edge, SOURCE], KEY)
    prefetch_vertex(edges[edge, TARGET], graph)
    prefetch(edges, rows[later_slot(slot, 3 * LOOK_AHEAD, capacity), ROW_EDGE])
    prefetch(graph.returns, later_slot(slot, LOOK_AHEAD, capacity))
    prefetch(rows, later_slot(slot, 6 * LOOK_AHEAD, capacity))


@inlined
def prefetch_vertex(vertex: int, graph: GraphArrays) -> None:
    """Prefetch what a row changes of a vertex."""
    prefetch(graph.vertices, vertex)
    prefetch(graph.reward_sums, vertex)


@inlined
def prefetch_added(first: int, last: int, rows: NDArray[np.int32], graph: GraphArrays) -> None:
    """Prefetch the vertices of the rows with serial numbers first..last-1, as far as they are known, and their edges.

    A vertex is found by its observation and an edge by its vertices: one step at a time, for all rows.
    """
    known, edges, table, capacity = graph.observation_vertex, graph.edges, graph.edge_table, rows.shape[0]
    start, both_known = first % capacity, False
    slot = start
    for _ in range(first, last):
        prefetch(known, rows[slot, OBSERVATION])
        prefetch(known, rows[slot, NEXT_OBSERVATION])
        slot = later_slot(slot, 1, capacity)
    slot = start
    for _ in range(first, last):
        source, target = known[rows[slot, OBSERVATION]] - 1, known[rows[slot, NEXT_OBSERVATION]] - 1
        if source >= 0 and target >= 0:
            both_known = True
            prefetch_vertex(source, graph)
            prefetch_vertex(target, graph)
            prefetch_home(hash_edge(source, target), table)
        slot = later_slot(slot, 1, capacity)
    if not both_known or last - first == 1:  # of one row, what comes next would be waited for here as well as later
        return
    slot = start
    for _ in range(first, last):
        source, target = known[rows[slot, OBSERVATION]] - 1, known[rows[slot, NEXT_OBSERVATION]] - 1
        if source >= 0 and target >= 0:
            if graph.vertices[target, COUNT] > 1:
                prefetch(edges, max(likely_item(hash_edge(source, target), table), 0))
            else:
                prefetch(graph.pool, graph.vertices[target, START])
        slot = later_slot(slot, 1, capacity)
    slot = start
    for _ in range(first, last):
        source, target = known[rows[slot, OBSERVATION]] - 1, known[rows[slot, NEXT_OBSERVATION]] - 1
        if source >= 0 and target >= 0:
            if graph.vertices[target, COUNT] > 1:
                edge = max(likely_item(hash_edge(source, target), table), 0)
                place = (edges[edge, E_HEAD] + edges[edge, E_COUNT]) & (edges[edge, E_SIZE] - 1)
                prefetch(graph.pool, edges[edge, E_START] + place)
            else:
                prefetch(edges, graph.pool[graph.vertices[target, START]])
        slot = later_slot(slot, 1, capacity)


@inlined
def vertex_of(observation: int, keys: NDArray[np.int64], graph: GraphArrays) -> int:
    """Return the vertex of a stored observation and count one more use of it."""
    known = graph.observation_vertex[observation]
    if known > 0:
        vertex = np.int64(known - 1)
    else:
        new = np.int64(-1 - known)
        code = graph.codes[new] if new < graph.codes.shape[0] else hash_key(keys[new])
        vertex = np.int64(find_or_make_vertex(keys[new], code, graph))
        graph.observation_vertex[observation] = vertex + 1
    graph.vertices[vertex, USES] += 1
    return vertex


@inlined
def find_or_make_edge(source: int, target: int, graph: GraphArrays) -> int:
    """Return the edge between two vertices."""
    vertices, edges, table, counters = graph.vertices, graph.edges, graph.edge_table, graph.counters
    edge = np.int64(find_edge_into(source, target, graph))
    if edge >= 0:
        return edge
    if counters[EDGES_FREE] != 0:
        edge = counters[EDGES_FREE] - 1
        counters[EDGES_FREE] = edges[edge, SOURCE]
    else:
        edge = counters[EDGES_HIGH]
        counters[EDGES_HIGH] += 1
    edges[edge, SOURCE] = source
    edges[edge, TARGET] = target
    edges[edge, PLACE] = vertices[target, COUNT]
    edges[edge, E_SIZE] = 0
    edges[edge, E_HEAD] = 0
    edges[edge, E_COUNT] = 0
    count, size = vertices[target, COUNT], vertices[target, SIZE]
    if count == 1:
        only = graph.pool[vertices[target, START]]
        insert(hash_edge(edges[only, SOURCE], target), only, table)
    if count > 0:
        insert(hash_edge(source, target), edge, table)
    push(vertices[target, START : START + 4], edge, graph)
    if graph.tallies.shape[0] and vertices[target, SIZE] != size:
        tally_block(target, graph)
    counters[EDGES_LIVE] += 1
    return edge


@kernel
def add_rows(
    first: int,
    last: int,
    oldest: int,
    fresh: NDArray[np.int32],
    keys: NDArray[np.int64],
    ring_at: Addresses,
    graph_at: Addresses,
) -> None:
    """Add the rows with serial numbers first..last-1 and remove those that they overwrote.

    Rows from serial number `oldest` on are in the graph. ``fresh[i]`` is an observation whose vertex is unknown
    and ``keys[i]`` its key; all other observations have their vertex in `observation_vertex`.
    """
    ring, graph = unpack(Ring, ring_at), unpack(GraphArrays, graph_at)
    rows, values = ring.rows, ring.values
    vertices, reward_sums, returns, counters = graph.vertices, graph.reward_sums, graph.returns, graph.counters
    capacity, new_keys = rows.shape[0], borrow(keys)
    for i in range(keys.shape[0]):
        graph.observation_vertex[fresh[i, 1]] = -1 - i
        code = hash_key(new_keys[i])
        prefetch_home(code, graph.vertex_table)
        if i < graph.codes.shape[0]:
            graph.codes[i] = code
    if keys.shape[0] < last - first:  # else every row most likely leads to a new vertex
        prefetch_added(first, last, rows, graph)
    slot = first % capacity
    for serial in range(first, last):
        if serial - capacity >= oldest:
            prefetch_overwritten(slot, graph)
            remove_row(slot, graph)
        source = vertex_of(rows[slot, OBSERVATION], new_keys, graph)
        target = vertex_of(rows[slot, NEXT_OBSERVATION], new_keys, graph)
        edge = find_or_make_edge(source, target, graph)
        push(graph.edges[edge, E_START : E_START + 4], slot, graph)
        count_row(edge, 1, graph)
        flags = rows[slot, FLAGS]
        if flags & TERMINATED:
            if vertices[target, ENDINGS] == 0:
                vertices[target, TERMINAL] = counters[TERMINALS]
                graph.terminals[counters[TERMINALS]] = target
                counters[TERMINALS] += 1
            vertices[target, ENDINGS] += 1
        previous = rows[slot, PREVIOUS]
        ago = slot - previous if slot >= previous else slot - previous + capacity
        if flags & STARTS_EPISODE or serial - ago < oldest:
            returns[slot, BEFORE] = values[slot, RETURN] - values[slot, REWARD]
            vertices[source, VISITS] += 1
            reward_sums[source] += returns[slot, BEFORE]
        else:
            graph.rows[previous, ROW_FLAGS] |= CONTINUED
            returns[slot, BEFORE] = returns[previous, AFTER]
        vertices[target, VISITS] += 1
        reward_sums[target] += values[slot, RETURN]
        returns[slot, AFTER] = values[slot, RETURN]
        graph.rows[slot, ROW_EDGE] = edge
        graph.rows[slot, ROW_FLAGS] = flags
        renew_score(source, graph)
        renew_score(target, graph)
        slot = later_slot(slot, 1, capacity)
