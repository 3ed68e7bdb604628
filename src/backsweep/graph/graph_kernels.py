"""The predecessor graph in flat arrays: exactly the live rows, at every moment.

    vertex_table[hash of key]            -> vertex        see `jit/hash_table_kernels.py`
    edge_table[hash of both vertices]    -> edge, for vertices into which several edges lead; the only edge into a
                                            vertex is found in the vertex's block

    vertices[vertex]  USES       rows that start or end here; at 0 the vertex is released
                      STAMP      how many vertices were made before it: differs from that of a later one in its place
                      START COUNT SIZE HEAD    its block in the pool: the edges that lead here
                      VISITS     stored visits that the average accumulated reward is taken over
                      ENDINGS    live rows that terminate here; above 0 the vertex is terminal
                      TERMINAL   its place in `terminals`
                      KEY ...    the words of its key
    edges[edge]       SOURCE TARGET            from which vertex to which
                      PLACE                    its place in the target's block
                      E_START E_COUNT E_SIZE E_HEAD    its block in the pool: the slots of its rows, oldest first
    rows[slot]        ROW_EDGE ROW_FLAGS       what must be undone when the row is overwritten
    returns[slot]     BEFORE AFTER             the episode's reward before and after the row
    reward_sums[vertex]                        sum of the accumulated rewards of its visits

A visit is a state at a time. It is stored as long as the row that arrives there or the row that leaves from there is
live. The arriving row is the older one, so it adds the visit; the last of the two to be overwritten removes it.

A block is a ring of places in the one `pool`:

    pool:   ... [ . . x x x . . . ] ...        START, SIZE (a power of two), HEAD = 2, COUNT = 3

A full block moves to the end of the used part of the pool and doubles. When the pool's end is reached, all blocks are
packed again with space to grow, so a step costs O(1) on average and any row of an edge can be drawn in O(1).

For samplers that ask for it, two more things are kept up to date (`draw_kernels.py`): a tally of the rows on the edges
into each vertex, laid out like the blocks in the pool, and softmax trees over the vertices' average rewards.
"""

# In compiled code Python's numbers and numpy's are one and the same.
# mypy: disable-error-code="no-any-return,arg-type,assignment,return-value"

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from backsweep.graph.draw_kernels import sum_tally
from backsweep.jit.array_table import (
    Addresses,
    Float64Matrix,
    Float64Vector,
    Int32Matrix,
    Int32Vector,
    Int64Matrix,
    Int64Vector,
    WordVector,
    unpack,
)
from backsweep.jit.compilation import inlined, kernel
from backsweep.jit.hash_table_kernels import (
    EMPTY,
    after,
    home,
    insert,
    may_be,
    most_passed,
    number_in,
    prefetch_home,
    remove,
)
from backsweep.jit.prefetching import prefetch
from backsweep.jit.random_streams_kernels import GOLDEN, mix

# Columns of vertices.
USES, STAMP, START, COUNT, SIZE, HEAD, VISITS, ENDINGS, TERMINAL, KEY = range(10)
# Columns of edges. The block's four columns have the same order as a vertex's.
SOURCE, TARGET, PLACE, E_START, E_COUNT, E_SIZE, E_HEAD = range(7)
EDGE_COLUMNS = 8  # the last is padding: an edge never straddles two cache lines
# The four columns of a block, counted from its first.
B_START, B_COUNT, B_SIZE, B_HEAD = range(4)
# Columns of rows.
ROW_EDGE, ROW_FLAGS, GRAPH_ROW_COLUMNS = range(3)
# A bit of ROW_FLAGS, in addition to the store's: a later row of the same episode starts where this one ends.
CONTINUED = 8
# Columns of returns.
BEFORE = 0
AFTER = 1
# Counters.
VERTICES_HIGH, VERTICES_FREE, VERTICES_LIVE, VERTICES_EVER, EDGES_HIGH, EDGES_FREE, EDGES_LIVE = range(7)
TERMINALS, POOL_USED, COLLISIONS, GRAPH_COUNTERS = range(7, 11)

ONE = np.uint64(1)
AHEAD = 16
"""How many items ahead a table's places are prefetched while it is filled."""

Block: TypeAlias = NDArray[np.signedinteger[Any]]


class GraphArrays(NamedTuple):
    """The graph."""

    vertices: Int64Matrix
    reward_sums: Float64Vector
    vertex_table: WordVector
    edges: Int32Matrix
    edge_table: WordVector
    pool: Int32Vector
    rows: Int32Matrix
    returns: Float64Matrix
    terminals: Int32Vector
    observation_vertex: Int32Vector
    """The vertex + 1 of each stored observation, or -1 - the index of its key among the keys of an add."""
    counters: Int64Vector
    tallies: Int32Vector
    """Laid out like the pool; empty unless a sampler draws by visits."""
    trees: Float64Matrix
    """One softmax tree after another, one for each temperature."""
    temperatures: Float64Vector
    codes: WordVector
    """Scratch: the hashes of the first keys of an add."""


@inlined
def hash_key(key: NDArray[np.int64]) -> np.uint64:
    """Hash the words of a key: a polynomial of the words, mixed once."""
    code = np.uint64(0)
    for i in range(key.shape[0]):
        code = (code + np.uint64(key[i])) * GOLDEN
    return mix(code)


@inlined
def hash_edge(source: int, target: int) -> np.uint64:
    """Hash two vertex numbers."""
    return mix((np.uint64(source) << np.uint64(32)) ^ np.uint64(target))


@inlined
def has_key(vertex: int, key: NDArray[np.int64], vertices: NDArray[np.int64]) -> bool:
    """Return whether a vertex has this key."""
    for i in range(key.shape[0]):
        if vertices[vertex, KEY + i] != key[i]:
            return False
    return True


@inlined
def find_vertex(key: NDArray[np.int64], vertices: NDArray[np.int64], vertex_table: NDArray[np.uint64]) -> int:
    """Return the vertex with this key, or -1."""
    code = hash_key(key)
    place = home(code, vertex_table)
    while vertex_table[place] != EMPTY:
        vertex = number_in(vertex_table[place])
        if may_be(vertex_table[place], code) and has_key(vertex, key, vertices):
            return vertex
        place = after(place, vertex_table)
    return -1


@inlined
def find_edge(source: int, target: int, edges: NDArray[np.int32], edge_table: NDArray[np.uint64]) -> int:
    """Return the edge between two vertices, or -1."""
    code = hash_edge(source, target)
    place = home(code, edge_table)
    while edge_table[place] != EMPTY:
        edge = number_in(edge_table[place])
        if may_be(edge_table[place], code) and edges[edge, SOURCE] == source and edges[edge, TARGET] == target:
            return edge
        place = after(place, edge_table)
    return -1


@inlined
def find_edge_into(source: int, target: int, graph: GraphArrays) -> int:
    """Return the edge between two vertices of the graph, or -1."""
    if graph.vertices[target, COUNT] > 1:
        return find_edge(source, target, graph.edges, graph.edge_table)
    if graph.vertices[target, COUNT] == 1:
        edge = np.int64(graph.pool[graph.vertices[target, START]])
        if graph.edges[edge, SOURCE] == source:
            return edge
    return -1


@kernel
def remove_edge_entry(edge: int, edges: NDArray[np.int32], table: NDArray[np.uint64]) -> None:
    """Take an edge out of its table."""
    remove(hash_edge(edges[edge, SOURCE], edges[edge, TARGET]), edge, table)


@kernel
def rebuild_tables(addresses: Addresses) -> bool:
    """Fill empty tables from the arrays, needed after loading; False if too many keys or edges have one hash.

    Only sizes have been checked before, so an edge that leads to no vertex ends it too.
    """
    graph = unpack(GraphArrays, addresses)
    vertices, edges, counters = graph.vertices, graph.edges, graph.counters
    vertices_high, edges_high = counters[VERTICES_HIGH], counters[EDGES_HIGH]
    left = most_passed(vertices_high + edges_high)
    for vertex in range(vertices_high):
        if vertex + AHEAD < vertices_high:
            prefetch_home(hash_key(vertices[vertex + AHEAD, KEY:]), graph.vertex_table)
        if vertices[vertex, USES] > 0:
            left -= insert(hash_key(vertices[vertex, KEY:]), vertex, graph.vertex_table)
            if left < 0:
                return False
    for edge in range(edges_high):
        if edge + AHEAD < edges_high:
            later = edges[edge + AHEAD]
            prefetch_home(hash_edge(later[SOURCE], later[TARGET]), graph.edge_table)
            prefetch(vertices, later[TARGET])
        source, target = edges[edge, SOURCE], edges[edge, TARGET]
        if edges[edge, E_COUNT] > 0 and (target < 0 or target >= vertices_high):
            return False
        if edges[edge, E_COUNT] > 0 and vertices[target, COUNT] > 1:
            left -= insert(hash_edge(source, target), edge, graph.edge_table)
            if left < 0:
                return False
    return True


# -- blocks in the pool -----------------------------------------------------------------------------------------------


@kernel
def block_size(count: int) -> int:
    """Return the packed size of a block with `count` entries: a power of two with space for half as many more."""
    size = 1
    while size < count + (count + 1) // 2:
        size *= 2
    return size


@kernel
def tally_block(vertex: int, graph: GraphArrays) -> None:
    """Recount the rows on the edges into a vertex after its block has moved."""
    start, count, size = graph.vertices[vertex, START], graph.vertices[vertex, COUNT], graph.vertices[vertex, SIZE]
    tally = graph.tallies[start : start + size]
    for i in range(size):
        tally[i] = graph.edges[graph.pool[start + i], E_COUNT] if i < count else 0
    sum_tally(tally)


@kernel
def pack_blocks(graph: GraphArrays) -> None:
    """Pack all blocks from the start of the pool, entries in order and heads at 0."""
    vertices, edges, pool, counters = graph.vertices, graph.edges, graph.pool, graph.counters
    old = np.empty(counters[POOL_USED], np.int32)
    for i in range(old.shape[0]):
        old[i] = pool[i]
    used = 0
    for vertex in range(counters[VERTICES_HIGH]):
        count = vertices[vertex, COUNT]
        if vertices[vertex, USES] == 0 or count == 0:
            vertices[vertex, SIZE] = 0
            vertices[vertex, HEAD] = 0
            continue
        start, size, head = vertices[vertex, START], vertices[vertex, SIZE], vertices[vertex, HEAD]
        for i in range(count):
            pool[used + i] = old[start + ((head + i) & (size - 1))]
        vertices[vertex, START] = used
        vertices[vertex, SIZE] = block_size(count)
        vertices[vertex, HEAD] = 0
        used += vertices[vertex, SIZE]
        if graph.tallies.shape[0]:
            tally_block(vertex, graph)
    for edge in range(counters[EDGES_HIGH]):
        count = edges[edge, E_COUNT]
        if count == 0:
            edges[edge, E_SIZE] = 0
            edges[edge, E_HEAD] = 0
            continue
        start, size, head = edges[edge, E_START], edges[edge, E_SIZE], edges[edge, E_HEAD]
        for i in range(count):
            pool[used + i] = old[start + ((head + i) & (size - 1))]
        edges[edge, E_START] = used
        edges[edge, E_SIZE] = block_size(count)
        edges[edge, E_HEAD] = 0
        used += edges[edge, E_SIZE]
    counters[POOL_USED] = used


@inlined
def grow_block(block: Block, pool: NDArray[np.int32], counters: NDArray[np.int64]) -> None:
    """Move a full block, given as its four columns, to the end of the used part of the pool and double it."""
    start, size, head = counters[POOL_USED], block[B_SIZE], block[B_HEAD]
    for i in range(size):
        pool[start + i] = pool[block[B_START] + ((head + i) & (size - 1))]
    block[B_START] = start
    block[B_SIZE] = max(2 * size, 1)
    block[B_HEAD] = 0
    counters[POOL_USED] += block[B_SIZE]


@inlined
def push(block: Block, value: int, graph: GraphArrays) -> None:
    """Append `value` to a block, which is a view of its four columns in `vertices` or `edges`."""
    pool, counters = graph.pool, graph.counters
    if block[B_COUNT] == block[B_SIZE] and counters[POOL_USED] + max(2 * block[B_SIZE], 1) > pool.shape[0]:
        pack_blocks(graph)
    if block[B_COUNT] == block[B_SIZE]:
        grow_block(block, pool, counters)
    pool[block[B_START] + ((block[B_HEAD] + block[B_COUNT]) & (block[B_SIZE] - 1))] = value
    block[B_COUNT] += 1
