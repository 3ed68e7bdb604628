"""What the model takes from the network, and what it gives to batches."""

# mypy: disable-error-code="no-any-return,arg-type,assignment,return-value"
from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from backsweep.graph.graph_kernels import ONE, STAMP
from backsweep.jit.compilation import inlined, kernel
from backsweep.planning.model_kernels import (
    ACTION,
    CANDIDATE,
    ENOUGH_TRIED,
    FIRST_PAIR,
    LOOP,
    MASKED_ACTIONS,
    NEXT_PAIR,
    RENEWALS,
    ROW_PAIR,
    SEEN,
    SYNCED,
    TRIED,
    UNTRIED,
    VALUE,
    Experience,
    Model,
    in_use,
    mark_changed,
)
from backsweep.store.store_kernels import FLAGS, NEXT_OBSERVATION, OBSERVATION, REWARD, TERMINATED


@kernel
def list_vertices_to_ask(
    high: int,
    observations_high: int,
    observation_uses: NDArray[np.int32],
    experience: Experience,
    model: Model,
    vertices: NDArray[np.int32],
    observations: NDArray[np.int32],
) -> int:
    """List the vertices whose value needs the network, each with an observation of it; return how many there are."""
    states, observation_vertex, enough = model.vertices, experience.observation_vertex, model.counters[ENOUGH_TRIED]
    count, stale = 0, False
    for vertex in range(high):
        if in_use(vertex, states) and states[vertex, TRIED] < enough:
            seen = states[vertex, SEEN]
            stale |= observation_uses[seen] == 0 or observation_vertex[seen] != vertex + 1
            vertices[count] = vertex
            count += 1
    if stale:
        # The observation that was noted has left, while another one with the same key is still there.
        for number in range(observations_high):
            if observation_uses[number] > 0:
                states[observation_vertex[number] - 1, SEEN] = number
    for i in range(count):
        observations[i] = states[vertices[i], SEEN]
    return count


@inlined
def is_tried(
    vertex: int, action: int, tried: NDArray[np.uint64], vertices: NDArray[np.int32], pairs: NDArray[np.int32]
) -> bool:
    """Say whether a vertex has rows with an action."""
    if action < MASKED_ACTIONS:
        return (tried[vertex] >> np.uint64(action)) & ONE != 0
    link = vertices[vertex, FIRST_PAIR]
    while link:
        if pairs[link - 1, ACTION] == action:
            return True
        link = pairs[link - 1, NEXT_PAIR]
    return False


@kernel
def take_network_values(
    vertices: NDArray[np.int32],
    q_values: NDArray[np.floating],
    bounds: NDArray[np.float64],
    tolerance: float,
    model: Model,
) -> None:
    """Renew what untried actions are worth, and mark the vertices for which that matters."""
    states, tried, numbers, pairs = model.vertices, model.tried, model.numbers, model.pairs
    changed, counters = model.changed, model.counters
    for i in range(vertices.shape[0]):
        vertex = np.int64(vertices[i])
        best = -np.inf
        for action in range(q_values.shape[1]):
            if not is_tried(vertex, action, tried, states, pairs):
                best = max(best, min(max(q_values[i, action], bounds[0]), bounds[1]))
        before, value = numbers[vertex, UNTRIED], numbers[vertex, VALUE]
        numbers[vertex, UNTRIED] = best
        if not best <= value or (before >= value - 2.0 * tolerance and best < before):
            mark_changed(vertex, states, changed, counters)


@inlined
def known_value(vertex: int, experience: Experience, model: Model) -> float:
    """Return the value of a vertex, NaN if it is newer than the last renewal."""
    if model.stamps[vertex] != experience.vertices[vertex, STAMP] + 1:
        return np.nan
    return model.numbers[vertex, VALUE]


@inlined
def pair_value(pair: int, value: float, model: Model) -> float:
    """Return Q of a pair, given the value of its vertex."""
    loop = model.pair_numbers[pair, LOOP]
    return model.pair_numbers[pair, CANDIDATE] * (1.0 - loop) + loop * value


@kernel
def read_targets(
    row: NDArray[np.int64],
    gap: float,
    floor: float,
    discount: float,
    experience: Experience,
    model: Model,
    target: NDArray[np.float32],
) -> None:
    """Write the finished target of each live row, NaN where the graph has no value yet.

    A row that is newer than the last renewal has the value of its own outcome, if its successor's value is known.
    """
    capacity = experience.rows.shape[0]
    for i in range(row.shape[0]):
        target[i] = np.nan
        if model.counters[RENEWALS] == 0:
            continue
        slot = row[i] % capacity
        entry = experience.rows[slot]
        value = known_value(np.int64(experience.observation_vertex[entry[OBSERVATION]] - 1), experience, model)
        if row[i] < model.counters[SYNCED]:
            q_value = pair_value(np.int64(model.rows[slot, ROW_PAIR] - 1), value, model)
        else:
            q_value = experience.values[slot, REWARD]
            if not entry[FLAGS] & TERMINATED:
                successor = np.int64(experience.observation_vertex[entry[NEXT_OBSERVATION]] - 1)
                q_value += discount * known_value(successor, experience, model)
        if q_value < value:
            q_value = value + max(gap * (q_value - value), -floor)
        target[i] = q_value


@kernel
def read_action_values(vertex: int, model: Model, out: NDArray[np.float64]) -> None:
    """Write Q of each tried action of a vertex; the others keep what is there."""
    link = model.vertices[vertex, FIRST_PAIR]
    while link:
        value = model.numbers[vertex, VALUE]
        out[model.pairs[link - 1, ACTION]] = pair_value(np.int64(link - 1), value, model)
        link = model.pairs[link - 1, NEXT_PAIR]
