"""What weighted draws from the graph need, kept up to date row by row for the samplers that ask for it.

Without such a sampler there are no tallies and no trees, and all of this does nothing.
"""

# In compiled code Python's numbers and numpy's are one and the same.
# mypy: disable-error-code="no-any-return,arg-type,assignment,return-value"

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from backsweep.graph.draw_kernels import (
    LARGEST,
    SUM,
    change_tally,
    find_in_tally,
    find_pair,
    renew_node,
    renew_parent,
    renew_path,
)
from backsweep.graph.graph_kernels import (
    COUNT,
    E_COUNT,
    PLACE,
    SIZE,
    START,
    TARGET,
    USES,
    VERTICES_HIGH,
    VISITS,
    GraphArrays,
    tally_block,
)
from backsweep.jit.array_table import Addresses, unpack
from backsweep.jit.compilation import inlined, kernel
from backsweep.jit.random_streams_kernels import draw_below, draw_unit


@inlined
def tally_of(vertex: int, graph: GraphArrays) -> NDArray[np.int32]:
    """Return the tally of the edges into a vertex."""
    start = graph.vertices[vertex, START]
    return graph.tallies[start : start + graph.vertices[vertex, SIZE]]


@inlined
def count_row(edge: int, change: int, graph: GraphArrays) -> None:
    """Count a row more or less on an edge."""
    if graph.tallies.shape[0]:
        change_tally(tally_of(graph.edges[edge, TARGET], graph), graph.edges[edge, PLACE], change)


@inlined
def move_count(edge: int, place: int, graph: GraphArrays) -> None:
    """Move the rows of an edge to another place in its block, in the tally."""
    if graph.tallies.shape[0]:
        tally = tally_of(graph.edges[edge, TARGET], graph)
        change_tally(tally, graph.edges[edge, PLACE], -graph.edges[edge, E_COUNT])
        change_tally(tally, place, graph.edges[edge, E_COUNT])


@kernel
def draw_from_tally(
    state: NDArray[np.uint64], vertex: int, graph: GraphArrays, wanted: int, chosen: NDArray[np.int64]
) -> None:
    """Fill `chosen` with `wanted` distinct places of edges into a vertex, drawn in proportion to their rows.

    What has been chosen is taken out of the tally until the draw is over.
    """
    start, tally = graph.vertices[vertex, START], tally_of(vertex, graph)
    left = np.int64(tally[tally.shape[0] - 1])
    for k in range(wanted):
        place = find_in_tally(tally, draw_below(state, left))
        count = graph.edges[graph.pool[start + place], E_COUNT]
        chosen[k] = place
        left -= count
        change_tally(tally, place, -count)
    for k in range(wanted):
        change_tally(tally, chosen[k], graph.edges[graph.pool[start + chosen[k]], E_COUNT])


@inlined
def score_of(vertex: int, graph: GraphArrays) -> float:
    """Return a vertex's average accumulated reward, -inf if there is no such vertex."""
    if vertex >= graph.vertices.shape[0] or graph.vertices[vertex, USES] == 0:
        return -np.inf
    return graph.reward_sums[vertex] / graph.vertices[vertex, VISITS]


@inlined
def tree_of(which: int, graph: GraphArrays) -> NDArray[np.float64]:
    """Return the softmax tree of a temperature."""
    size = graph.trees.shape[0] // graph.temperatures.shape[0]
    return graph.trees[which * size : (which + 1) * size]


@inlined
def renew_score(vertex: int, graph: GraphArrays) -> None:
    """Update the trees after a vertex's average has changed, or the vertex was added or removed."""
    for which in range(graph.temperatures.shape[0]):
        first = vertex & ~1
        left, right = score_of(first, graph), score_of(first + 1, graph)
        renew_path(tree_of(which, graph), vertex, left, right, graph.temperatures[which])


@kernel
def draw_from_tree(state: NDArray[np.uint64], which: int, graph: GraphArrays, roots: NDArray[np.int64]) -> int:
    """Draw vertices from softmax(average accumulated reward / temperature), with replacement; return how many."""
    tree, temperature = tree_of(which, graph), graph.temperatures[which]
    if tree[1, SUM] == 0.0:
        return 0
    largest = tree[1, LARGEST]
    for i in range(roots.shape[0]):
        first, ticket = find_pair(tree, draw_unit(state) * tree[1, SUM], temperature)
        left, right = score_of(first, graph), score_of(first + 1, graph)
        second = left == -np.inf
        if left > -np.inf and right > -np.inf:
            weight = np.exp((left - largest) / temperature)
            second = ticket >= weight and np.exp((right - largest) / temperature) > 0.0
        roots[i] = first + 1 if second else first
    return roots.shape[0]


@kernel
def rebuild_weights(addresses: Addresses) -> None:
    """Compute all tallies and trees from the graph; needed after loading."""
    graph = unpack(GraphArrays, addresses)
    high = graph.counters[VERTICES_HIGH]
    if graph.tallies.shape[0]:
        for vertex in range(high):
            if graph.vertices[vertex, COUNT] > 0:
                tally_block(vertex, graph)
    for which in range(graph.temperatures.shape[0]):
        tree, temperature = tree_of(which, graph), graph.temperatures[which]
        first, count = tree.shape[0] // 2, (high + 1) // 2
        for i in range(count):
            renew_node(tree, first + i, score_of(2 * i, graph), score_of(2 * i + 1, graph), temperature)
        while first > 1:
            first, count = first // 2, (count + 1) // 2
            for i in range(count):
                renew_parent(tree, first + i, temperature)
