"""Values of a limited look ahead: backups of a fixed depth along the graph, with the network's values at the end."""

# mypy: disable-error-code="no-any-return,arg-type,assignment,return-value"
from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from backsweep.jit.compilation import kernel
from backsweep.planning.model_kernels import (
    CANDIDATE,
    CHANGED,
    CHANGED_COUNT,
    COUNT,
    FIRST_ARC,
    FIRST_PAIR,
    LOOP,
    MARK,
    NEXT_OF_PAIR,
    NEXT_PAIR,
    PROPAGATED,
    REWARDS,
    ROWS,
    SUCCESSOR,
    UNTRIED,
    VALUE,
    Model,
)


@kernel
def start_from_network(
    vertices: NDArray[np.int32], q_values: NDArray[np.floating], bounds: NDArray[np.float64], model: Model
) -> None:
    """Start every state at the network's best value."""
    for i in range(vertices.shape[0]):
        best = -np.inf
        for action in range(q_values.shape[1]):
            best = max(best, min(max(q_values[i, action], bounds[0]), bounds[1]))
        model.numbers[vertices[i], PROPAGATED] = best


@kernel
def look_ahead(depth: int, discount: float, vertices: NDArray[np.int32], model: Model) -> int:
    """Back values up `depth` times; return the number of state updates."""
    numbers, pairs, pair_numbers, arcs = model.numbers, model.pairs, model.pair_numbers, model.arcs
    following = np.empty(vertices.shape[0])
    for _ in range(depth):
        for i in range(vertices.shape[0]):
            best = numbers[vertices[i], UNTRIED]
            pair = model.vertices[vertices[i], FIRST_PAIR]
            while pair:
                total = pair_numbers[pair - 1, REWARDS]
                arc = pairs[pair - 1, FIRST_ARC]
                while arc:
                    total += discount * arcs[arc - 1, ROWS] * numbers[arcs[arc - 1, SUCCESSOR], PROPAGATED]
                    arc = arcs[arc - 1, NEXT_OF_PAIR]
                pair_numbers[pair - 1, CANDIDATE] = total / pairs[pair - 1, COUNT]
                pair_numbers[pair - 1, LOOP] = 0.0
                best = max(best, pair_numbers[pair - 1, CANDIDATE])
                pair = pairs[pair - 1, NEXT_PAIR]
            following[i] = best
        for i in range(vertices.shape[0]):
            numbers[vertices[i], PROPAGATED] = following[i]
    for i in range(vertices.shape[0]):
        numbers[vertices[i], VALUE] = numbers[vertices[i], PROPAGATED]
    for i in range(model.counters[CHANGED_COUNT]):
        model.vertices[model.changed[i], MARK] &= ~CHANGED
    model.counters[CHANGED_COUNT] = 0
    return depth * vertices.shape[0]
