"""The empirical model of the live rows in flat arrays: what followed each action in each state, and how often.

    vertices[vertex]      FIRST_PAIR  TRIED       the pairs (vertex, action) that have rows, and how many there are
                          FIRST_INTO              the arcs that lead here
                          MARK                    CHANGED, FALLEN; see solve_kernels
                          SEEN                    the number of an observation of it
    tried[vertex]         a bit for each of the first 64 actions that has rows
    numbers[vertex]       VALUE                   V; NaN for a vertex that is newer than the last renewal
                          TOLD                    V as its predecessors know it
                          UNTRIED                 the best value of an untried action; -inf if there is none
    stamps[vertex]        the graph's stamp of the vertex + 1: tells a vertex from a later one in its place
    pairs[pair]           VERTEX  ACTION  COUNT   a state, an action, and how many rows they have
                          FIRST_ARC  NEXT_PAIR  PREVIOUS_PAIR
    pair_numbers[pair]    REWARDS                 the sum of the rewards
                          CANDIDATE               the vertex's value if this action is taken for good
                          LOOP                    discount * share of the rows that lead back to the vertex itself
    arcs[arc]             PAIR  SUCCESSOR  ROWS   rows of the pair that went on in that vertex
                          NEXT_OF_PAIR  PREVIOUS_OF_PAIR  NEXT_INTO  PREVIOUS_INTO
    rows[slot]            ROW_PAIR  ROW_ARC       what must be undone when the row is overwritten
    row_numbers[slot]     ROW_REWARD, BEST_STRETCH, WORST_STRETCH

Links and entries are one more than the number they stand for, so that 0 means none. A row that terminated has no arc.
`follow` is called before each use and takes in all rows since the last call, so adding to a replay costs nothing more.

    changed               vertices whose own rows or network values changed since they were last solved
    extremes              the smallest and the largest reward, and what the best and worst stretch of an episode paid
"""

# mypy: disable-error-code="no-any-return,arg-type,assignment,return-value"
from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from backsweep.graph.graph_kernels import ONE, STAMP, find_edge, hash_edge, insert_entry, remove_edge_entry
from backsweep.jit.compilation import inlined, kernel
from backsweep.store.store_kernels import (
    FLAGS,
    NEXT_OBSERVATION,
    OBSERVATION,
    PREVIOUS,
    REWARD,
    STARTS_EPISODE,
    TERMINATED,
)

# Columns of vertices.
FIRST_PAIR = 0
TRIED = 1
FIRST_INTO = 2
MARK = 3
SEEN = 4
VERTEX_COLUMNS = 5
# Bits of MARK.
CHANGED = 1
FALLEN = 2
# Columns of numbers.
VALUE = 0
TOLD = 1
UNTRIED = 2
NUMBER_COLUMNS = 3
# Columns of pairs.
VERTEX = 0
ACTION = 1
COUNT = 2
FIRST_ARC = 3
NEXT_PAIR = 4
PREVIOUS_PAIR = 5
PAIR_COLUMNS = 6
# Columns of pair_numbers.
REWARDS = 0
CANDIDATE = 1
LOOP = 2
PAIR_NUMBER_COLUMNS = 3
# Columns of arcs; the first two stand where the graph's edges have source and target, so that its table serves here.
PAIR = 0
SUCCESSOR = 1
ROWS = 2
NEXT_OF_PAIR = 3
PREVIOUS_OF_PAIR = 4
NEXT_INTO = 5
PREVIOUS_INTO = 6
ARC_COLUMNS = 8  # the last is padding: an arc never straddles two cache lines
# Columns of rows.
ROW_PAIR = 0
ROW_ARC = 1
MODEL_ROW_COLUMNS = 2
# Columns of row_numbers.
ROW_REWARD = 0
BEST_STRETCH = 1
WORST_STRETCH = 2
ROW_NUMBER_COLUMNS = 3
# Places of extremes.
SMALLEST_REWARD = 0
LARGEST_REWARD = 1
SMALLEST_STEP = 2  # the smallest reward of a row that did not terminate
BEST = 3
WORST = 4
EXTREMES = 5
# Counters.
SYNCED = 0  # rows ever added when `follow` was last called
PAIRS_HIGH = 1
PAIRS_FREE = 2
PAIRS_LIVE = 3
ARCS_HIGH = 4
ARCS_FREE = 5
ARCS_LIVE = 6
CHANGED_COUNT = 7
RENEWALS = 8
FIRST_ACTION = 9  # actions are counted from here
ENOUGH_TRIED = 10  # with so many tried actions a vertex needs nothing from the network
MODEL_COUNTERS = 11

MASKED_ACTIONS = 64


class Model(NamedTuple):
    """The arrays of the model."""

    vertices: NDArray[np.int32]
    tried: NDArray[np.uint64]
    numbers: NDArray[np.float64]
    stamps: NDArray[np.int64]
    pairs: NDArray[np.int32]
    pair_numbers: NDArray[np.float64]
    arcs: NDArray[np.int32]
    arc_table: NDArray[np.int32]
    rows: NDArray[np.int32]
    row_numbers: NDArray[np.float64]
    changed: NDArray[np.int32]
    extremes: NDArray[np.float64]
    counters: NDArray[np.int64]


class Experience(NamedTuple):
    """The arrays of store and graph that the model reads."""

    rows: NDArray[np.int32]
    values: NDArray[np.float64]
    actions: NDArray[np.int64]
    vertices: NDArray[np.int64]
    observation_vertex: NDArray[np.int32]


@inlined
def in_use(vertex: int, vertices: NDArray[np.int32]) -> bool:
    """Say whether a vertex has tried actions or is the successor of one."""
    return vertices[vertex, FIRST_PAIR] != 0 or vertices[vertex, FIRST_INTO] != 0


@inlined
def mark_changed(
    vertex: int, vertices: NDArray[np.int32], changed: NDArray[np.int32], counters: NDArray[np.int64]
) -> None:
    """Note that a vertex has to be solved again."""
    if not vertices[vertex, MARK] & CHANGED:
        vertices[vertex, MARK] |= CHANGED
        changed[counters[CHANGED_COUNT]] = vertex
        counters[CHANGED_COUNT] += 1


# -- taking rows out --------------------------------------------------------------------------------------------------


@inlined
def drop_arc(arc: int, model: Model) -> None:
    """Take an arc without rows out of its two lists and the table."""
    arcs = model.arcs
    following, previous = arcs[arc, NEXT_OF_PAIR], arcs[arc, PREVIOUS_OF_PAIR]
    if following:
        arcs[following - 1, PREVIOUS_OF_PAIR] = previous
    if previous:
        arcs[previous - 1, NEXT_OF_PAIR] = following
    else:
        model.pairs[arcs[arc, PAIR], FIRST_ARC] = following
    following, previous = arcs[arc, NEXT_INTO], arcs[arc, PREVIOUS_INTO]
    if following:
        arcs[following - 1, PREVIOUS_INTO] = previous
    if previous:
        arcs[previous - 1, NEXT_INTO] = following
    else:
        model.vertices[arcs[arc, SUCCESSOR], FIRST_INTO] = following
    remove_edge_entry(arc, arcs, model.arc_table)
    arcs[arc, PAIR] = model.counters[ARCS_FREE]
    model.counters[ARCS_FREE] = arc + 1
    model.counters[ARCS_LIVE] -= 1


@inlined
def drop_pair(pair: int, model: Model) -> None:
    """Take a pair without rows out of its vertex's list."""
    pairs = model.pairs
    vertex = pairs[pair, VERTEX]
    following, previous = pairs[pair, NEXT_PAIR], pairs[pair, PREVIOUS_PAIR]
    if following:
        pairs[following - 1, PREVIOUS_PAIR] = previous
    if previous:
        pairs[previous - 1, NEXT_PAIR] = following
    else:
        model.vertices[vertex, FIRST_PAIR] = following
    model.vertices[vertex, TRIED] -= 1
    if pairs[pair, ACTION] < MASKED_ACTIONS:
        model.tried[vertex] &= ~(ONE << np.uint64(pairs[pair, ACTION]))
    pairs[pair, VERTEX] = model.counters[PAIRS_FREE]
    model.counters[PAIRS_FREE] = pair + 1
    model.counters[PAIRS_LIVE] -= 1


@kernel
def take_out(slot: int, model: Model) -> None:
    """Undo the row that the model has in a slot, if it has one there."""
    pair = model.rows[slot, ROW_PAIR] - 1
    if pair < 0:
        return
    mark_changed(model.pairs[pair, VERTEX], model.vertices, model.changed, model.counters)
    model.pairs[pair, COUNT] -= 1
    model.pair_numbers[pair, REWARDS] -= model.row_numbers[slot, ROW_REWARD]
    arc = model.rows[slot, ROW_ARC] - 1
    if arc >= 0:
        model.arcs[arc, ROWS] -= 1
        if model.arcs[arc, ROWS] == 0:
            drop_arc(arc, model)
    if model.pairs[pair, COUNT] == 0:
        drop_pair(pair, model)
    model.rows[slot, ROW_PAIR] = 0


# -- taking rows in ---------------------------------------------------------------------------------------------------


@inlined
def know_vertex(vertex: int, observation: int, experience: Experience, model: Model) -> None:
    """Note an observation of a vertex, and begin anew with one whose place belonged to another vertex before."""
    model.vertices[vertex, SEEN] = observation
    stamp = experience.vertices[vertex, STAMP] + 1
    if model.stamps[vertex] != stamp:
        model.stamps[vertex] = stamp
        model.numbers[vertex, VALUE] = np.nan
        model.numbers[vertex, TOLD] = np.nan
        model.numbers[vertex, UNTRIED] = np.nan


@inlined
def find_or_make_pair(vertex: int, action: int, model: Model) -> int:
    """Return the pair of a vertex and an action."""
    pairs, counters = model.pairs, model.counters
    link = model.vertices[vertex, FIRST_PAIR]
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
    first = model.vertices[vertex, FIRST_PAIR]
    if first:
        pairs[first - 1, PREVIOUS_PAIR] = pair + 1
    pairs[pair, VERTEX] = vertex
    pairs[pair, ACTION] = action
    pairs[pair, COUNT] = 0
    pairs[pair, FIRST_ARC] = 0
    pairs[pair, NEXT_PAIR] = first
    pairs[pair, PREVIOUS_PAIR] = 0
    model.pair_numbers[pair, REWARDS] = 0.0
    model.pair_numbers[pair, CANDIDATE] = -np.inf
    model.pair_numbers[pair, LOOP] = 0.0
    model.vertices[vertex, FIRST_PAIR] = pair + 1
    model.vertices[vertex, TRIED] += 1
    if action < MASKED_ACTIONS:
        model.tried[vertex] |= ONE << np.uint64(action)
    if model.vertices[vertex, TRIED] >= counters[ENOUGH_TRIED]:
        model.numbers[vertex, UNTRIED] = -np.inf
    counters[PAIRS_LIVE] += 1
    return pair


@inlined
def find_or_make_arc(pair: int, successor: int, model: Model) -> int:
    """Return the arc from a pair to a vertex."""
    arcs, counters = model.arcs, model.counters
    arc = np.int64(find_edge(pair, successor, arcs, model.arc_table))
    if arc >= 0:
        return arc
    if counters[ARCS_FREE]:
        arc = counters[ARCS_FREE] - 1
        counters[ARCS_FREE] = arcs[arc, PAIR]
    else:
        arc = counters[ARCS_HIGH]
        counters[ARCS_HIGH] += 1
    of_pair, into = model.pairs[pair, FIRST_ARC], model.vertices[successor, FIRST_INTO]
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
    model.pairs[pair, FIRST_ARC] = arc + 1
    model.vertices[successor, FIRST_INTO] = arc + 1
    insert_entry(hash_edge(pair, successor), arc, model.arc_table)
    counters[ARCS_LIVE] += 1
    return arc


@inlined
def note_extremes(serial: int, oldest: int, experience: Experience, model: Model) -> None:
    """Keep the bounds of what rewards and stretches of episodes have paid.

    The best stretch that ends with a row is the row alone, or the best one that ends with the row before and this row.
    """
    capacity = experience.rows.shape[0]
    slot = serial % capacity
    reward, extremes = experience.values[slot, REWARD], model.extremes
    best, worst = reward, reward
    previous = experience.rows[slot, PREVIOUS]
    if not experience.rows[slot, FLAGS] & STARTS_EPISODE and serial - (slot - previous) % capacity >= oldest:
        best += max(model.row_numbers[previous, BEST_STRETCH], 0.0)
        worst += min(model.row_numbers[previous, WORST_STRETCH], 0.0)
    model.row_numbers[slot, BEST_STRETCH] = best
    model.row_numbers[slot, WORST_STRETCH] = worst
    extremes[SMALLEST_REWARD] = min(extremes[SMALLEST_REWARD], reward)
    extremes[LARGEST_REWARD] = max(extremes[LARGEST_REWARD], reward)
    extremes[BEST] = max(extremes[BEST], best)
    extremes[WORST] = min(extremes[WORST], worst)
    if not experience.rows[slot, FLAGS] & TERMINATED:
        extremes[SMALLEST_STEP] = min(extremes[SMALLEST_STEP], reward)


@kernel
def take_in(slot: int, experience: Experience, model: Model) -> None:
    """Add a live row that the model does not have yet."""
    row = experience.rows[slot]
    source = np.int64(experience.observation_vertex[row[OBSERVATION]] - 1)
    successor = np.int64(experience.observation_vertex[row[NEXT_OBSERVATION]] - 1)
    know_vertex(source, row[OBSERVATION], experience, model)
    know_vertex(successor, row[NEXT_OBSERVATION], experience, model)
    pair = find_or_make_pair(source, experience.actions[slot] - model.counters[FIRST_ACTION], model)
    reward = experience.values[slot, REWARD]
    model.pairs[pair, COUNT] += 1
    model.pair_numbers[pair, REWARDS] += reward
    model.row_numbers[slot, ROW_REWARD] = reward
    model.rows[slot, ROW_PAIR] = pair + 1
    model.rows[slot, ROW_ARC] = 0
    if not row[FLAGS] & TERMINATED:
        arc = find_or_make_arc(pair, successor, model)
        model.arcs[arc, ROWS] += 1
        model.rows[slot, ROW_ARC] = arc + 1
        if np.isnan(model.numbers[successor, VALUE]):
            mark_changed(successor, model.vertices, model.changed, model.counters)
    mark_changed(source, model.vertices, model.changed, model.counters)


@kernel
def follow(oldest: int, total: int, experience: Experience, model: Model) -> None:
    """Bring the model up to date with the live rows, which are those from serial number `oldest` to `total` - 1.

    All rows that were overwritten go first: a vertex may have been released and its place taken by another one since.
    """
    capacity = experience.rows.shape[0]
    first = max(model.counters[SYNCED], oldest)
    for serial in range(first, total):
        take_out(serial % capacity, model)
    for serial in range(first, total):
        note_extremes(serial, oldest, experience, model)
        take_in(serial % capacity, experience, model)
    model.counters[SYNCED] = total


@kernel
def rebuild_arc_table(high: int, model: Model) -> None:
    """Fill the empty table from the arcs; needed after loading."""
    for vertex in range(high):
        link = model.vertices[vertex, FIRST_INTO]
        while link:
            insert_entry(hash_edge(model.arcs[link - 1, PAIR], vertex), link - 1, model.arc_table)
            link = model.arcs[link - 1, NEXT_INTO]
