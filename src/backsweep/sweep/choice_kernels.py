"""Random choices of a sweep: some of many, some by weight.

The draws by weight go through all candidates. They are for samplers without `GraphDraws`, and draw the same as
`graph/weights_kernels.py`, which keeps sums up to date.
"""

# In compiled code Python's numbers and numpy's are one and the same.
# mypy: disable-error-code="no-any-return,arg-type,assignment,return-value"

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from backsweep.graph.graph_kernels import E_COUNT, TERMINALS, USES, VERTICES_HIGH, VISITS, GraphArrays
from backsweep.jit.compilation import inlined, kernel
from backsweep.jit.random_streams_kernels import draw_below, draw_unit


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
def draw_better_terminals(
    state: NDArray[np.uint64], candidates: int, graph: GraphArrays, roots: NDArray[np.int64]
) -> int:
    """Choose each root from `candidates` terminal vertices, drawn with replacement; return how many roots there are.

    A root is a random one of the candidates in the upper half of the range of their average accumulated rewards.
    """
    vertices, reward_sums, terminals = graph.vertices, graph.reward_sums, graph.terminals
    available = graph.counters[TERMINALS]
    if available == 0:
        return 0
    drawn = np.empty(candidates, np.int64)
    reward = np.empty(candidates, np.float64)
    for i in range(roots.shape[0]):
        low, high = np.inf, -np.inf
        for k in range(candidates):
            vertex = np.int64(terminals[draw_below(state, available)])
            drawn[k] = vertex
            reward[k] = reward_sums[vertex] / vertices[vertex, VISITS]
            low, high = min(low, reward[k]), max(high, reward[k])
        middle = 0.5 * low + 0.5 * high  # halved first: the sum of two large rewards might overflow
        better = 0
        for k in range(candidates):
            if reward[k] >= middle:
                drawn[better] = drawn[k]
                better += 1
        roots[i] = drawn[draw_below(state, better)]
    return roots.shape[0]
