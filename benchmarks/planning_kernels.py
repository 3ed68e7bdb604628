"""Plain value iteration on the stored model, first in first out, as the baseline of the solver's order."""

# mypy: disable-error-code="no-any-return,arg-type,assignment,return-value"
from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from backsweep.jit.compilation import kernel
from backsweep.planning.model_kernels import (
    CHANGED_COUNT,
    FIRST_INTO,
    NEXT_INTO,
    PAIR,
    PROPAGATED,
    SMALLEST_STEP,
    VALUE,
    VERTEX,
    Model,
    in_use,
)
from backsweep.planning.solve_kernels import Span, backup, lowest_start


@kernel
def solve_first_in_first_out(
    discount: float, tolerance: float, span: Span, model: Model, ring: NDArray[np.int32], waits: NDArray[np.bool_]
) -> int:
    """Back up the changed states, then the predecessors of states that changed by more than the tolerance, in turn.

    `ring` and `waits` have a place for each vertex. Returns how many state updates it took.
    """
    vertices, numbers = model.vertices, model.numbers
    pairs, pair_numbers, arcs = model.pairs, model.pair_numbers, model.arcs
    start = lowest_start(discount, span.bounds[0], model.extremes[SMALLEST_STEP])
    size, head, tail, updates = ring.shape[0], 0, 0, 0
    for i in range(model.counters[CHANGED_COUNT]):
        vertex = np.int64(model.changed[i])
        if in_use(vertex, vertices):
            if np.isnan(numbers[vertex, VALUE]):
                numbers[vertex, VALUE] = start
                numbers[vertex, PROPAGATED] = -np.inf
            ring[tail % size] = vertex
            waits[vertex] = True
            tail += 1
    while head < tail:
        vertex = np.int64(ring[head % size])
        head += 1
        waits[vertex] = False
        updates += 1
        value = backup(vertex, discount, vertices, numbers, pairs, pair_numbers, arcs, span.limits)
        numbers[vertex, VALUE] = value
        if abs(value - numbers[vertex, PROPAGATED]) > tolerance:
            numbers[vertex, PROPAGATED] = value
            link = vertices[vertex, FIRST_INTO]
            while link:
                before = np.int64(pairs[arcs[link - 1, PAIR], VERTEX])
                if not waits[before]:
                    ring[tail % size] = before
                    waits[before] = True
                    tail += 1
                link = arcs[link - 1, NEXT_INTO]
    return updates
