"""Random actions that prefer what the stored graph knows little about."""

# mypy: disable-error-code="no-any-return,arg-type,assignment,return-value"
from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from backsweep.graph.graph_kernels import STAMP, VISITS
from backsweep.jit.array_table import Addresses, borrow, unpack
from backsweep.jit.compilation import inlined, kernel
from backsweep.planning.follow_kernels import follow
from backsweep.planning.model_kernels import (
    ACTION,
    CERTAIN,
    COUNT,
    DIFFERING,
    FIRST_ARC,
    FIRST_PAIR,
    NEXT_OF_PAIR,
    NEXT_PAIR,
    NOISY,
    ROWS,
    SUCCESSOR,
    Experience,
    Model,
)


@inlined
def vertex_in_model(number: int, experience: Experience, model: Model) -> int:
    """Return the vertex of a stored observation, -1 if the model does not have it."""
    vertex = np.int64(experience.observation_vertex[number] - 1)
    return vertex if model.stamps[vertex] == experience.vertices[vertex, STAMP] + 1 else -1


@kernel
def weigh_actions(vertex: int, experience: Experience, model: Model, weights: NDArray[np.float64]) -> None:
    """Write how much each action of a vertex is worth exploring.

    An untried action counts 1. For a tried one, each outcome counts 1 / (1 + visits of the successor) if it led to
    another state, and nothing if it changed nothing or ended the episode: what comes after is known. If no action
    counts, all count the same.

    Where the same action leads to different states, less is known. What another try may lead to counts as much as it
    is likely, and less with every try; and what seems to have changed nothing may have changed what cannot be seen, so
    it counts as other outcomes do.
    """
    pairs, arcs, graph_vertices = model.pairs, model.arcs, experience.vertices
    weights[:] = 1.0
    total = float(weights.shape[0])
    differing = model.counters[DIFFERING] / float(CERTAIN)
    link = model.vertices[vertex, FIRST_PAIR]
    while link:
        weight = 0.0
        arc = pairs[link - 1, FIRST_ARC]
        while arc:
            successor = arcs[arc - 1, SUCCESSOR]
            if successor != vertex or differing > 0.0:
                weight += arcs[arc - 1, ROWS] / (1.0 + graph_vertices[successor, VISITS])
            arc = arcs[arc - 1, NEXT_OF_PAIR]
        weight = (weight + differing) / pairs[link - 1, COUNT]
        weights[pairs[link - 1, ACTION]] = weight
        total += weight - 1.0
        link = pairs[link - 1, NEXT_PAIR]
    if total <= 0.0:
        weights[:] = 1.0


@inlined
def pick_by_weight(unit: float, weights: NDArray[np.float64]) -> int:
    """Return a place with probability proportional to its weight, by a number in [0, 1)."""
    total = 0.0
    for place in range(weights.shape[0]):
        total += weights[place]
    left, last = unit * total, 0
    for place in range(weights.shape[0]):
        if weights[place] > 0.0:
            if left < weights[place]:
                return place
            left -= weights[place]
            last = place
    return last


@kernel
def explore(unit: float, number: int, num_actions: int, experience: Experience, model: Model) -> int:
    """Return an action to explore where a stored observation was seen; -1 is an observation that is not stored.

    All actions are alike there, and everywhere if outcomes are too noisy.
    """
    known = number >= 0 and model.counters[NOISY] == 0
    vertex = vertex_in_model(number, experience, model) if known else -1
    if vertex < 0:
        return int(unit * num_actions)
    weights = np.empty(num_actions)
    weigh_actions(vertex, experience, model, weights)
    return pick_by_weight(unit, weights)


@kernel
def follow_and_explore(
    unit: float, number: int, num_actions: int, oldest: int, total: int, experience_at: Addresses, model_at: Addresses
) -> int:
    """Update the model with the live rows, then `explore`; takes addresses, which are faster to pass than tuples."""
    experience, model = unpack(Experience, borrow(experience_at)), unpack(Model, borrow(model_at))
    follow(oldest, total, experience, model)
    return explore(unit, number, num_actions, experience, model)
