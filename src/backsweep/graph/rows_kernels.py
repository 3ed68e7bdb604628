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
    find_edge,
    find_vertex,
    hash_edge,
    hash_key,
    push,
    remove_edge_entry,
    remove_vertex_entry,
    tally_block,
)
from backsweep.graph.weights_kernels import count_row, move_count, renew_score
from backsweep.jit.array_table import Row, borrow, unpack
from backsweep.jit.compilation import inlined, kernel
from backsweep.jit.hash_table_kernels import insert
from backsweep.store.store_kernels import (
    FLAGS,
    NEXT_OBSERVATION,
    OBSERVATION,
    PREVIOUS,
    RETURN,
    REWARD,
    STARTS_EPISODE,
    TERMINATED,
    Ring,
)


@kernel
def find_or_make_vertex(key: NDArray[np.int64], graph: GraphArrays) -> int:
    """Return the vertex of a new observation's key. A known key is counted as a collision."""
    vertices, counters = graph.vertices, graph.counters
    vertex = find_vertex(key, vertices, graph.vertex_table)
    if vertex >= 0:
        counters[COLLISIONS] += 1
        return vertex
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
    insert(hash_key(key), vertex, graph.vertex_table)
    return vertex


@inlined
def leave_vertex(vertex: int, graph: GraphArrays) -> None:
    """Remove one use of a vertex and release it after the last."""
    vertices, counters = graph.vertices, graph.counters
    vertices[vertex, USES] -= 1
    if vertices[vertex, USES] == 0:
        remove_vertex_entry(vertex, vertices, graph.vertex_table)
        vertices[vertex, STAMP] = counters[VERTICES_FREE]
        vertices[vertex, COUNT] = 0
        vertices[vertex, SIZE] = 0
        counters[VERTICES_FREE] = vertex + 1
        counters[VERTICES_LIVE] -= 1


@kernel
def remove_row(slot: int, graph_row: Row) -> None:
    """Remove the oldest row, which is in `slot`, from the graph."""
    graph = unpack(GraphArrays, graph_row)
    vertices, edges, pool, counters = graph.vertices, graph.edges, graph.pool, graph.counters
    edge = graph.rows[slot, ROW_EDGE]
    flags = graph.rows[slot, ROW_FLAGS]
    source, target = edges[edge, SOURCE], edges[edge, TARGET]
    # The oldest row of all is the oldest of its edge.
    edges[edge, E_HEAD] = (edges[edge, E_HEAD] + 1) & (edges[edge, E_SIZE] - 1)
    edges[edge, E_COUNT] -= 1
    count_row(edge, -1, graph)
    if edges[edge, E_COUNT] == 0:
        remove_edge_entry(edge, edges, graph.edge_table)
        start = vertices[target, START]
        place = edges[edge, PLACE]
        vertices[target, COUNT] -= 1
        moved = pool[start + vertices[target, COUNT]]
        pool[start + place] = moved
        move_count(moved, place, graph)
        edges[moved, PLACE] = place
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
def vertex_of(observation: int, keys: NDArray[np.int64], graph: GraphArrays) -> int:
    """Return the vertex of a stored observation and count one more use of it."""
    known = graph.observation_vertex[observation]
    if known > 0:
        vertex = np.int64(known - 1)
    else:
        vertex = np.int64(find_or_make_vertex(keys[-1 - known], graph))
        graph.observation_vertex[observation] = vertex + 1
    graph.vertices[vertex, USES] += 1
    return vertex


@inlined
def find_or_make_edge(source: int, target: int, graph: GraphArrays) -> int:
    """Return the edge between two vertices."""
    vertices, edges, counters = graph.vertices, graph.edges, graph.counters
    edge = find_edge(source, target, edges, graph.edge_table)
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
    insert(hash_edge(source, target), edge, graph.edge_table)
    size = vertices[target, SIZE]
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
    ring_row: Row,
    graph_row: Row,
) -> None:
    """Add the rows with serial numbers first..last-1 and remove those that they overwrote.

    Rows from serial number `oldest` on are in the graph. ``fresh[i]`` is an observation whose vertex is unknown
    and ``keys[i]`` its key; all other observations have their vertex in `observation_vertex`.
    """
    row = borrow(graph_row)
    ring, graph = unpack(Ring, ring_row), unpack(GraphArrays, row)
    rows, values = ring.rows, ring.values
    vertices, reward_sums, returns, counters = graph.vertices, graph.reward_sums, graph.returns, graph.counters
    capacity = rows.shape[0]
    for i in range(keys.shape[0]):
        graph.observation_vertex[fresh[i, 1]] = -1 - i
    for serial in range(first, last):
        slot = serial % capacity
        if serial - capacity >= oldest:
            remove_row(slot, row)
        source = vertex_of(rows[slot, OBSERVATION], keys, graph)
        target = vertex_of(rows[slot, NEXT_OBSERVATION], keys, graph)
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
        if flags & STARTS_EPISODE or serial - (slot - previous) % capacity < oldest:
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
