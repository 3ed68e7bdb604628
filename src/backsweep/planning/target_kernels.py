"""Values from the network, and targets for batches."""

# mypy: disable-error-code="no-any-return,arg-type,assignment,return-value"
from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from backsweep.graph.graph_kernels import ONE, STAMP
from backsweep.jit.array_table import Addresses, Table, borrow, unpack
from backsweep.jit.compilation import inlined, kernel
from backsweep.jit.prefetching import prefetch
from backsweep.planning.model_kernels import (
    ACTION,
    ANSWER,
    CANDIDATE,
    ENOUGH_TRIED,
    FIRST_PAIR,
    LOOP,
    MASKED_ACTIONS,
    NEXT_PAIR,
    PLANNED,
    RENEWALS,
    ROW_PAIR,
    SEEN,
    TRIED,
    TURNS,
    UNTRIED,
    VALUE,
    VERTEX,
    Experience,
    Model,
    has_values,
    in_use,
    mark_changed,
)
from backsweep.store.distinct_kernels import Records
from backsweep.store.reading_kernels import Gathered, copy_pairs, find_slots, gather_rows
from backsweep.store.ring_kernels import (
    FLAGS,
    FRAMES,
    NEXT_OBSERVATION,
    OBSERVATION,
    REWARD,
    RING,
    STACKS,
    STORE_BUNDLES,
    TERMINATED,
    Ring,
)

# Bundles that follow the store's in the table of a planner.
MODEL = STORE_BUNDLES
EXPERIENCE = STORE_BUNDLES + 1


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
    """List the vertices that the network evaluates, each with an observation of it; return their number."""
    states, numbers, observation_vertex = model.vertices, model.numbers, experience.observation_vertex
    enough, turns, renewal = model.counters[ENOUGH_TRIED], model.counters[TURNS], model.counters[RENEWALS]
    count, stale = 0, False
    for vertex in range(high):
        if (
            in_use(vertex, states)
            and states[vertex, TRIED] < enough
            and ((vertex + renewal) % turns == 0 or np.isnan(numbers[vertex, UNTRIED]))
        ):
            seen = states[vertex, SEEN]
            stale |= observation_uses[seen] == 0 or observation_vertex[seen] != vertex + 1
            vertices[count] = vertex
            count += 1
    if stale:
        # The stored observation has left the replay, but another one with the same key is live.
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
    cautious: bool,
    model: Model,
) -> None:
    """Update the values of untried actions, and mark the vertices whose values may change.

    `cautious` takes the lower of a vertex's last two answers.
    """
    states, tried, numbers, pairs = model.vertices, model.tried, model.numbers, model.pairs
    changed, counters = model.changed, model.counters
    for i in range(vertices.shape[0]):
        vertex = np.int64(vertices[i])
        best = -np.inf
        for action in range(q_values.shape[1]):
            if not is_tried(vertex, action, tried, states, pairs):
                best = max(best, min(max(q_values[i, action], bounds[0]), bounds[1]))
        if cautious:
            last, numbers[vertex, ANSWER] = numbers[vertex, ANSWER], best
            best = last if last < best else best  # not if `last` is NaN
        before, value = numbers[vertex, UNTRIED], numbers[vertex, VALUE]
        numbers[vertex, UNTRIED] = best
        if not best <= value or (before >= value - 2.0 * tolerance and best < before):
            mark_changed(vertex, states, changed, counters)


@inlined
def pair_value(pair: int, value: float, pair_numbers: NDArray[np.float64]) -> float:
    """Return Q of a pair, given the value of its vertex."""
    loop = pair_numbers[pair, LOOP]
    return pair_numbers[pair, CANDIDATE] * (1.0 - loop) + loop * value


@inlined
def widened(q_value: float, value: float, gap: float, floor: float) -> float:
    """Return the target of an action that is worth `q_value` where the best one is worth `value`, NaN if not known."""
    return value + max(gap * (q_value - value), -floor) if q_value < value else q_value


@inlined
def find_pair(row: int, slot: int, planned: int, model: Model) -> int:
    """Return the pair of a live row and prefetch its numbers; -1 if the row is newer than the last renewal."""
    pair = np.int64(model.rows[slot, ROW_PAIR] - 1) if row < planned else -1
    if pair >= 0:
        prefetch(model.pair_numbers, pair)
    return pair


@inlined
def solved_target(pair: int, vertex: int, gap: float, floor: float, model: Model) -> float:
    """Return the target of a pair and its vertex, NaN if it is not solved or there is no pair."""
    if pair < 0 or not model.pair_numbers[pair, CANDIDATE] > -np.inf:
        return np.nan
    value = model.numbers[vertex, VALUE]
    return widened(pair_value(pair, value, model.pair_numbers), value, gap, floor)


@inlined
def known_value(
    vertex: int, graph_vertices: NDArray[np.int64], stamps: NDArray[np.int64], numbers: NDArray[np.float64]
) -> float:
    """Return the value of a vertex, NaN if it is newer than the last renewal."""
    return numbers[vertex, VALUE] if stamps[vertex] == graph_vertices[vertex, STAMP] + 1 else np.nan


@kernel
def read_newer_targets(
    row: NDArray[np.int64],
    gap: float,
    floor: float,
    discount: float,
    experience: Experience,
    model: Model,
    target: NDArray[np.float32],
) -> None:
    """Write targets where they are NaN: the value of the row's own outcome, if its successor's value is known."""
    rows, values, observation_vertex = experience.rows, experience.values, experience.observation_vertex
    graph_vertices, stamps, numbers = experience.vertices, model.stamps, model.numbers
    capacity = rows.shape[0]
    for i in range(row.shape[0]):
        if not np.isnan(target[i]):
            continue
        slot = row[i] % capacity
        q_value = values[slot, REWARD]
        if not rows[slot, FLAGS] & TERMINATED:
            successor = np.int64(observation_vertex[rows[slot, NEXT_OBSERVATION]] - 1)
            q_value += discount * known_value(successor, graph_vertices, stamps, numbers)
        vertex = np.int64(observation_vertex[rows[slot, OBSERVATION]] - 1)
        value = known_value(vertex, graph_vertices, stamps, numbers)
        target[i] = widened(q_value, value, gap, floor)


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
    """Write the target of each live row, NaN where the graph has no value yet."""
    if not has_values(model.counters):
        target[:] = np.nan
        return
    # Three look-ups depend on each other. Each is prefetched for all rows before the next one starts.
    found, missing, planned = np.empty(row.shape[0], np.int64), False, model.counters[PLANNED]
    for i in range(row.shape[0]):
        found[i] = row[i] % model.rows.shape[0]
        prefetch(model.rows, found[i])
    for i in range(row.shape[0]):
        found[i] = find_pair(row[i], found[i], planned, model)
        prefetch(model.pairs, max(found[i], 0))
    for i in range(row.shape[0]):
        prefetch(model.numbers, model.pairs[max(found[i], 0), VERTEX])
    for i in range(row.shape[0]):
        target[i] = solved_target(found[i], model.pairs[max(found[i], 0), VERTEX], gap, floor, model)
        missing |= np.isnan(target[i])
    if missing:
        read_newer_targets(row, gap, floor, discount, experience, model, target)


@kernel
def read_rows_and_targets(
    row: NDArray[np.int64],
    gamma: float,
    gap: float,
    floor: float,
    discount: float,
    planned: Table,
    gathered_at: Addresses,
) -> None:
    """Gather live rows with their targets, as `read_rows` and `read_targets` do.

    What takes longest is waiting for memory, so each look-up is prefetched for all rows, and rows are copied meanwhile.
    """
    arrays, out = borrow(planned), unpack(Gathered, borrow(gathered_at))
    model, experience = unpack(Model, arrays[MODEL]), unpack(Experience, arrays[EXPERIENCE])
    ring = unpack(Ring, arrays[RING])
    frames, stacks = unpack(Records, arrays[FRAMES]).records, unpack(Records, arrays[STACKS]).records
    slots, pairs, known, missing = out.slots, out.spare, experience.observation_vertex, False
    find_slots(row, ring, out)
    planned = model.counters[PLANNED]
    for i in range(row.shape[0]):
        prefetch(model.rows, slots[i])
    for i in range(row.shape[0]):
        pairs[i] = find_pair(row[i], slots[i], planned, model)
        prefetch(known, ring.rows[slots[i], OBSERVATION])
    gather_rows(1, gamma, ring, frames, stacks.shape[1] > 0, out)
    for i in range(row.shape[0]):
        prefetch(model.numbers, known[out.first[i]] - 1)
    copy_pairs(out.first, out.second, frames, stacks, out.observation, out.next_observation)
    if not has_values(model.counters):
        out.target[:] = np.nan
        return
    for i in range(row.shape[0]):
        # The vertex of a row's pair is the vertex of its observation, which is found without reading the pair.
        out.target[i] = solved_target(pairs[i], known[out.first[i]] - 1, gap, floor, model)
        missing |= np.isnan(out.target[i])
    if missing:
        read_newer_targets(row, gap, floor, discount, experience, model, out.target)


@kernel
def read_action_values(vertex: int, model: Model, out: NDArray[np.float64]) -> None:
    """Write Q of each tried action of a vertex; the other entries are not changed."""
    pairs, pair_numbers, value = model.pairs, model.pair_numbers, model.numbers[vertex, VALUE]
    link = model.vertices[vertex, FIRST_PAIR]
    while link:
        if pair_numbers[link - 1, CANDIDATE] > -np.inf:
            out[pairs[link - 1, ACTION]] = pair_value(np.int64(link - 1), value, pair_numbers)
        link = pairs[link - 1, NEXT_PAIR]


@kernel
def read_tried_values(row: NDArray[np.int64], experience: Experience, model: Model, out: NDArray[np.float32]) -> None:
    """Write Q of the tried actions of each row's state, (rows, actions); NaN for others and for newer states."""
    rows, observation_vertex, stamps = experience.rows, experience.observation_vertex, model.stamps
    found = np.empty(out.shape[1])
    for i in range(row.shape[0]):
        found[:] = np.nan
        vertex = np.int64(observation_vertex[rows[row[i] % rows.shape[0], OBSERVATION]] - 1)
        if has_values(model.counters) and stamps[vertex] == experience.vertices[vertex, STAMP] + 1:
            read_action_values(vertex, model, found)
        out[i] = found
