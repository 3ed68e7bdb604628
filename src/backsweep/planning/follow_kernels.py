"""Updates the model with the live rows.

Each renewal, and each choice of an exploring action, calls `follow`, which adds all rows since the last call, so
`Replay.add` costs nothing extra.

Kernels take whole bundles of arrays; what they call for every row takes single arrays, because numba counts references
to all arrays of a bundle whenever it is passed on.
"""

# mypy: disable-error-code="no-any-return,arg-type,assignment,return-value"
from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from backsweep.graph.graph_kernels import ONE, STAMP, find_edge, hash_edge, remove_edge_entry
from backsweep.jit.array_table import Addresses, borrow, unpack
from backsweep.jit.compilation import inlined, kernel
from backsweep.jit.hash_table_kernels import insert
from backsweep.planning.model_kernels import (
    ACTION,
    ANSWER,
    ARCS_FREE,
    ARCS_HIGH,
    ARCS_LIVE,
    BEST,
    BEST_STRETCH,
    CANDIDATE,
    COUNT,
    ENOUGH_TRIED,
    FIRST_ACTION,
    FIRST_ARC,
    FIRST_INTO,
    FIRST_PAIR,
    LARGEST_REWARD,
    LOOP,
    MASKED_ACTIONS,
    NEXT_INTO,
    NEXT_OF_PAIR,
    NEXT_PAIR,
    PAIR,
    PAIRS_FREE,
    PAIRS_HIGH,
    PAIRS_LIVE,
    PLANNED,
    PREVIOUS_INTO,
    PREVIOUS_OF_PAIR,
    PREVIOUS_PAIR,
    PROPAGATED,
    REWARDS,
    ROW_ARC,
    ROW_PAIR,
    ROW_REWARD,
    ROWS,
    SEEN,
    SMALLEST_REWARD,
    SMALLEST_STEP,
    SUCCESSOR,
    SYNCED,
    TRIED,
    UNTRIED,
    VALUE,
    VERTEX,
    WORST,
    WORST_STRETCH,
    Experience,
    Model,
    mark_changed,
)
from backsweep.store.ring_kernels import FLAGS, NEXT_OBSERVATION, OBSERVATION, REWARD, TERMINATED
from backsweep.store.stretches_kernels import note_stretch

# -- removing rows ----------------------------------------------------------------------------------------------------


@inlined
def drop_arc(
    arc: int,
    vertices: NDArray[np.int32],
    pairs: NDArray[np.int32],
    arcs: NDArray[np.int32],
    arc_table: NDArray[np.uint64],
    counters: NDArray[np.int64],
) -> None:
    """Remove an arc without rows from its two lists and the table."""
    following, previous = arcs[arc, NEXT_OF_PAIR], arcs[arc, PREVIOUS_OF_PAIR]
    if following:
        arcs[following - 1, PREVIOUS_OF_PAIR] = previous
    if previous:
        arcs[previous - 1, NEXT_OF_PAIR] = following
    else:
        pairs[arcs[arc, PAIR], FIRST_ARC] = following
    following, previous = arcs[arc, NEXT_INTO], arcs[arc, PREVIOUS_INTO]
    if following:
        arcs[following - 1, PREVIOUS_INTO] = previous
    if previous:
        arcs[previous - 1, NEXT_INTO] = following
    else:
        vertices[arcs[arc, SUCCESSOR], FIRST_INTO] = following
    remove_edge_entry(arc, arcs, arc_table)
    arcs[arc, PAIR] = counters[ARCS_FREE]
    counters[ARCS_FREE] = arc + 1
    counters[ARCS_LIVE] -= 1


@inlined
def drop_pair(
    pair: int,
    vertices: NDArray[np.int32],
    tried: NDArray[np.uint64],
    numbers: NDArray[np.float64],
    pairs: NDArray[np.int32],
    counters: NDArray[np.int64],
) -> None:
    """Remove a pair without rows from its vertex's list."""
    vertex = pairs[pair, VERTEX]
    following, previous = pairs[pair, NEXT_PAIR], pairs[pair, PREVIOUS_PAIR]
    if following:
        pairs[following - 1, PREVIOUS_PAIR] = previous
    if previous:
        pairs[previous - 1, NEXT_PAIR] = following
    else:
        vertices[vertex, FIRST_PAIR] = following
    vertices[vertex, TRIED] -= 1
    numbers[vertex, UNTRIED] = np.nan
    numbers[vertex, ANSWER] = np.nan  # it did not count this action
    if pairs[pair, ACTION] < MASKED_ACTIONS:
        tried[vertex] &= ~(ONE << np.uint64(pairs[pair, ACTION]))
    pairs[pair, VERTEX] = counters[PAIRS_FREE]
    counters[PAIRS_FREE] = pair + 1
    counters[PAIRS_LIVE] -= 1


@kernel
def remove_rows(first: int, total: int, model: Model) -> None:
    """Remove the model's rows from the slots of the rows `first` to `total` - 1."""
    vertices, tried, pairs, pair_numbers = model.vertices, model.tried, model.pairs, model.pair_numbers
    arcs, arc_table, rows, row_numbers = model.arcs, model.arc_table, model.rows, model.row_numbers
    changed, counters = model.changed, model.counters
    capacity = rows.shape[0]
    for serial in range(first, total):
        slot = serial % capacity
        pair = np.int64(rows[slot, ROW_PAIR] - 1)
        if pair < 0:
            continue
        mark_changed(np.int64(pairs[pair, VERTEX]), vertices, changed, counters)
        pairs[pair, COUNT] -= 1
        pair_numbers[pair, REWARDS] -= row_numbers[slot, ROW_REWARD]
        arc = np.int64(rows[slot, ROW_ARC] - 1)
        if arc >= 0:
            arcs[arc, ROWS] -= 1
            if arcs[arc, ROWS] == 0:
                drop_arc(arc, vertices, pairs, arcs, arc_table, counters)
        if pairs[pair, COUNT] == 0:
            drop_pair(pair, vertices, tried, model.numbers, pairs, counters)
        rows[slot, ROW_PAIR] = 0


# -- adding rows ------------------------------------------------------------------------------------------------------


@inlined
def note_vertex(
    vertex: int,
    observation: int,
    graph_vertices: NDArray[np.int64],
    vertices: NDArray[np.int32],
    numbers: NDArray[np.float64],
    stamps: NDArray[np.int64],
) -> None:
    """Store an observation of a vertex, and reset a vertex whose place belonged to another one before."""
    vertices[vertex, SEEN] = observation
    stamp = graph_vertices[vertex, STAMP] + 1
    if stamps[vertex] != stamp:
        stamps[vertex] = stamp
        numbers[vertex, VALUE] = np.nan
        numbers[vertex, PROPAGATED] = np.nan
        numbers[vertex, UNTRIED] = np.nan
        numbers[vertex, ANSWER] = np.nan


@inlined
def find_or_make_pair(
    vertex: int,
    action: int,
    vertices: NDArray[np.int32],
    tried: NDArray[np.uint64],
    numbers: NDArray[np.float64],
    pairs: NDArray[np.int32],
    pair_numbers: NDArray[np.float64],
    counters: NDArray[np.int64],
) -> int:
    """Return the pair of a vertex and an action."""
    link = vertices[vertex, FIRST_PAIR]
    while link:
        if pairs[link - 1, ACTION] == action:
            return np.int64(link - 1)
        link = pairs[link - 1, NEXT_PAIR]
    if counters[PAIRS_FREE]:
        pair = counters[PAIRS_FREE] - 1
        counters[PAIRS_FREE] = pairs[pair, VERTEX]
    else:
        pair = counters[PAIRS_HIGH]
        counters[PAIRS_HIGH] += 1
    first = vertices[vertex, FIRST_PAIR]
    if first:
        pairs[first - 1, PREVIOUS_PAIR] = pair + 1
    pairs[pair, VERTEX] = vertex
    pairs[pair, ACTION] = action
    pairs[pair, COUNT] = 0
    pairs[pair, FIRST_ARC] = 0
    pairs[pair, NEXT_PAIR] = first
    pairs[pair, PREVIOUS_PAIR] = 0
    pair_numbers[pair, REWARDS] = 0.0
    pair_numbers[pair, CANDIDATE] = -np.inf
    pair_numbers[pair, LOOP] = 0.0
    vertices[vertex, FIRST_PAIR] = pair + 1
    vertices[vertex, TRIED] += 1
    if action < MASKED_ACTIONS:
        tried[vertex] |= ONE << np.uint64(action)
    # Fewer actions are untried now, so the network must evaluate the vertex again, unless none are left.
    numbers[vertex, UNTRIED] = -np.inf if vertices[vertex, TRIED] >= counters[ENOUGH_TRIED] else np.nan
    counters[PAIRS_LIVE] += 1
    return pair


@inlined
def find_or_make_arc(
    pair: int,
    successor: int,
    vertices: NDArray[np.int32],
    pairs: NDArray[np.int32],
    arcs: NDArray[np.int32],
    arc_table: NDArray[np.uint64],
    counters: NDArray[np.int64],
) -> int:
    """Return the arc from a pair to a vertex."""
    arc = np.int64(find_edge(pair, successor, arcs, arc_table))
    if arc >= 0:
        return arc
    if counters[ARCS_FREE]:
        arc = counters[ARCS_FREE] - 1
        counters[ARCS_FREE] = arcs[arc, PAIR]
    else:
        arc = counters[ARCS_HIGH]
        counters[ARCS_HIGH] += 1
    of_pair, into = pairs[pair, FIRST_ARC], vertices[successor, FIRST_INTO]
    if of_pair:
        arcs[of_pair - 1, PREVIOUS_OF_PAIR] = arc + 1
    if into:
        arcs[into - 1, PREVIOUS_INTO] = arc + 1
    arcs[arc, PAIR] = pair
    arcs[arc, SUCCESSOR] = successor
    arcs[arc, ROWS] = 0
    arcs[arc, NEXT_OF_PAIR] = of_pair
    arcs[arc, PREVIOUS_OF_PAIR] = 0
    arcs[arc, NEXT_INTO] = into
    arcs[arc, PREVIOUS_INTO] = 0
    pairs[pair, FIRST_ARC] = arc + 1
    vertices[successor, FIRST_INTO] = arc + 1
    insert(hash_edge(pair, successor), arc, arc_table)
    counters[ARCS_LIVE] += 1
    return arc


@kernel
def note_extremes(first: int, total: int, oldest: int, experience: Experience, model: Model) -> None:
    """Update the extremes of rewards and of reward sums over parts of episodes."""
    rows, values, row_numbers, extremes = experience.rows, experience.values, model.row_numbers, model.extremes
    capacity = rows.shape[0]
    for serial in range(first, total):
        slot = serial % capacity
        reward = values[slot, REWARD]
        note_stretch(serial, oldest, rows, values, row_numbers, WORST_STRETCH, BEST_STRETCH)
        extremes[SMALLEST_REWARD] = min(extremes[SMALLEST_REWARD], reward)
        extremes[LARGEST_REWARD] = max(extremes[LARGEST_REWARD], reward)
        extremes[BEST] = max(extremes[BEST], row_numbers[slot, BEST_STRETCH])
        extremes[WORST] = min(extremes[WORST], row_numbers[slot, WORST_STRETCH])
        if not rows[slot, FLAGS] & TERMINATED:
            extremes[SMALLEST_STEP] = min(extremes[SMALLEST_STEP], reward)


@kernel
def add_rows(first: int, total: int, experience: Experience, model: Model) -> None:
    """Add the live rows from `first` to `total` - 1, which the model does not have yet."""
    store_rows, values, actions = experience.rows, experience.values, experience.actions
    graph_vertices, observation_vertex = experience.vertices, experience.observation_vertex
    vertices, tried, numbers, stamps = model.vertices, model.tried, model.numbers, model.stamps
    pairs, pair_numbers, arcs, arc_table = model.pairs, model.pair_numbers, model.arcs, model.arc_table
    rows, row_numbers, changed, counters = model.rows, model.row_numbers, model.changed, model.counters
    capacity = store_rows.shape[0]
    for serial in range(first, total):
        slot = serial % capacity
        observation, next_observation = store_rows[slot, OBSERVATION], store_rows[slot, NEXT_OBSERVATION]
        source = np.int64(observation_vertex[observation] - 1)
        successor = np.int64(observation_vertex[next_observation] - 1)
        note_vertex(source, observation, graph_vertices, vertices, numbers, stamps)
        note_vertex(successor, next_observation, graph_vertices, vertices, numbers, stamps)
        action = np.int64(actions[slot]) - counters[FIRST_ACTION]
        pair = find_or_make_pair(source, action, vertices, tried, numbers, pairs, pair_numbers, counters)
        reward = values[slot, REWARD]
        pairs[pair, COUNT] += 1
        pair_numbers[pair, REWARDS] += reward
        row_numbers[slot, ROW_REWARD] = reward
        rows[slot, ROW_PAIR] = pair + 1
        rows[slot, ROW_ARC] = 0
        if not store_rows[slot, FLAGS] & TERMINATED:
            arc = find_or_make_arc(pair, successor, vertices, pairs, arcs, arc_table, counters)
            arcs[arc, ROWS] += 1
            rows[slot, ROW_ARC] = arc + 1
            if np.isnan(numbers[successor, VALUE]):
                mark_changed(successor, vertices, changed, counters)
        mark_changed(source, vertices, changed, counters)


@kernel
def follow(oldest: int, total: int, experience: Experience, model: Model) -> None:
    """Update the model with the live rows, which have the serial numbers `oldest` to `total` - 1.

    Overwritten rows are removed first: a vertex may have been released and its place reused since. From then on the
    rows have the planned values of their actions, unless the caller takes that back.
    """
    first = max(model.counters[SYNCED], oldest)
    remove_rows(first, total, model)
    note_extremes(first, total, oldest, experience, model)
    add_rows(first, total, experience, model)
    model.counters[SYNCED] = model.counters[PLANNED] = total


@kernel
def follow_at(oldest: int, total: int, experience_at: Addresses, model_at: Addresses) -> None:
    """`follow`, given addresses: exploring calls it with these too, so that it is compiled once for both."""
    follow(oldest, total, unpack(Experience, borrow(experience_at)), unpack(Model, borrow(model_at)))
