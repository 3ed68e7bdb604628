"""The check of a loaded model, one pass over each array; `tests/twins/planner_check.py` is its twin.

The counters and lengths have been checked before.
"""

# In compiled code Python's numbers and numpy's are one and the same.
# mypy: disable-error-code="no-any-return,arg-type,assignment,return-value"

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from backsweep.jit.compilation import inlined, kernel
from backsweep.jit.prefetching import prefetch
from backsweep.planning.model_kernels import (
    ACTION,
    ARCS_FREE,
    ARCS_HIGH,
    ARCS_LIVE,
    CHANGED,
    CHANGED_COUNT,
    COUNT,
    FIRST_ARC,
    FIRST_INTO,
    FIRST_PAIR,
    MARK,
    MASKED_ACTIONS,
    NEXT_INTO,
    NEXT_OF_PAIR,
    NEXT_PAIR,
    PAIR,
    PAIRS_FREE,
    PAIRS_HIGH,
    PAIRS_LIVE,
    PREVIOUS_INTO,
    PREVIOUS_OF_PAIR,
    PREVIOUS_PAIR,
    ROW_ARC,
    ROW_PAIR,
    ROWS,
    SEEN,
    SUCCESSOR,
    SYNCED,
    TRIED,
    UNSETTLED,
    VERTEX,
    Model,
)
from backsweep.snapshot.contents_kernels import LIVE, free_list_fits

AHEAD = 16
"""How many steps ahead a look-up is prefetched."""


# Columns of what is noted for each arc: its pair, and how many rows it has.
OF_PAIR, ROWS_OF, ARC_NOTES = range(3)


@kernel
def count_rows(model: Model, of_pairs: NDArray[np.int32], arcs: NDArray[np.int32]) -> bool:
    """Count the rows of pairs and arcs; return whether all exist and each arc belongs to its pair.

    The rows of a pair are those of its arcs, which are counted arc by arc, and those without an arc.
    """
    rows, high = model.rows, arcs.shape[0]
    for arc in range(high):
        arcs[arc, OF_PAIR], arcs[arc, ROWS_OF] = model.arcs[arc, PAIR], 0
    for slot in range(min(model.counters[SYNCED], rows.shape[0])):
        if slot + AHEAD < rows.shape[0]:
            prefetch(arcs, rows[slot + AHEAD, ROW_ARC] - 1)
        pair, arc = rows[slot, ROW_PAIR], rows[slot, ROW_ARC]
        if pair < 0 or pair > of_pairs.shape[0]:
            return False
        if pair == 0:
            continue
        if arc == 0:
            of_pairs[pair - 1] += 1
            continue
        if arc < 0 or arc > high or arcs[arc - 1, OF_PAIR] != pair - 1:
            return False
        arcs[arc - 1, ROWS_OF] += 1
    for arc in range(high):
        if arc + AHEAD < high:
            prefetch(of_pairs, arcs[arc + AHEAD, OF_PAIR])
        if arcs[arc, ROWS_OF] > 0:
            of_pairs[arcs[arc, OF_PAIR]] += arcs[arc, ROWS_OF]
    return True


@inlined
def link_fits(member: int, members: NDArray[np.int32], columns: tuple[int, int, int, int]) -> bool:
    """Check one member of a doubly linked list: the next one is live, has the same owner and links back.

    `columns` are those of the owner, the number of rows, the next member and the previous one. If as many members have
    a next one as have a previous one, every link has its counterpart, and a walk from a head can enter no cycle.
    """
    owner, rows, following, previous = columns
    link = members[member, following]
    if link == 0:
        return True
    if link < 0 or link > members.shape[0]:
        return False
    other = link - 1
    if members[other, rows] <= 0 or members[other, previous] != member + 1:
        return False
    return members[other, owner] == members[member, owner]


@inlined
def ask_for_pair(pair: int, pairs: NDArray[np.int32], model: Model, tried: NDArray[np.int32]) -> None:
    """Prefetch what the check of a later pair will look up."""
    if pair + AHEAD < pairs.shape[0]:
        vertex = pairs[pair + AHEAD, VERTEX]
        prefetch(pairs, pairs[pair + AHEAD, NEXT_PAIR] - 1)
        prefetch(model.vertices, vertex)
        prefetch(tried, vertex)


@kernel
def pairs_fit(
    model: Model,
    actions: int,
    counts: NDArray[np.int32],
    tried: NDArray[np.int32],
    masks: NDArray[np.uint64],
) -> bool:
    """Check the pairs; count how many each vertex has, and note which of its first actions."""
    pairs, counters = model.pairs[: counts.shape[0]], model.counters
    state, heads, high = np.zeros(counts.shape[0], np.uint8), model.vertices[:, FIRST_PAIR], tried.shape[0]
    live, unpaired = 0, 0
    for pair in range(counts.shape[0]):
        ask_for_pair(pair, pairs, model, tried)
        if pairs[pair, COUNT] != counts[pair]:
            return False
        if counts[pair] == 0:
            continue
        state[pair] = LIVE
        live += 1
        vertex, action, previous = pairs[pair, VERTEX], pairs[pair, ACTION], pairs[pair, PREVIOUS_PAIR]
        if vertex < 0 or vertex >= high or action < 0 or action >= actions:
            return False
        if previous == 0 and heads[vertex] != pair + 1:
            return False
        if not link_fits(pair, pairs, (VERTEX, COUNT, NEXT_PAIR, PREVIOUS_PAIR)):
            return False
        unpaired += (pairs[pair, NEXT_PAIR] != 0) - np.int64(previous != 0)
        tried[vertex] += 1
        if action < MASKED_ACTIONS:
            masks[vertex] |= np.uint64(1) << np.uint64(action)
    if live != counters[PAIRS_LIVE] or unpaired != 0:
        return False
    return free_list_fits(counters[PAIRS_FREE], pairs[:, VERTEX], state)


@inlined
def ask_for_arc(arc: int, arcs: NDArray[np.int32], model: Model) -> None:
    """Prefetch what the check of a later arc will look up."""
    if arc + AHEAD < arcs.shape[0]:
        prefetch(arcs, arcs[arc + AHEAD, NEXT_OF_PAIR] - 1)
        prefetch(arcs, arcs[arc + AHEAD, NEXT_INTO] - 1)
        prefetch(model.pairs, arcs[arc + AHEAD, PAIR])
        prefetch(model.vertices, arcs[arc + AHEAD, SUCCESSOR])


@kernel
def arcs_fit(model: Model, high: int, notes: NDArray[np.int32], firsts: NDArray[np.int64]) -> bool:
    """Check the arcs; count how many are the first of their pair, and how many the first into their vertex.

    The pair of an arc with rows is that of its rows, so it exists and has rows too.
    """
    arcs, counters = model.arcs[: notes.shape[0]], model.counters
    state = np.zeros(notes.shape[0], np.uint8)
    of_pairs, into = model.pairs[:, FIRST_ARC], model.vertices[:, FIRST_INTO]
    live, unpaired_of_pair, unpaired_into = 0, 0, 0
    for arc in range(notes.shape[0]):
        ask_for_arc(arc, arcs, model)
        if arcs[arc, ROWS] != notes[arc, ROWS_OF]:
            return False
        if notes[arc, ROWS_OF] == 0:
            continue
        state[arc] = LIVE
        live += 1
        pair, successor = arcs[arc, PAIR], arcs[arc, SUCCESSOR]
        if successor < 0 or successor >= high:
            return False
        if not link_fits(arc, arcs, (PAIR, ROWS, NEXT_OF_PAIR, PREVIOUS_OF_PAIR)):
            return False
        if not link_fits(arc, arcs, (SUCCESSOR, ROWS, NEXT_INTO, PREVIOUS_INTO)):
            return False
        first_of_pair, first_into = arcs[arc, PREVIOUS_OF_PAIR] == 0, arcs[arc, PREVIOUS_INTO] == 0
        if (first_of_pair and of_pairs[pair] != arc + 1) or (first_into and into[successor] != arc + 1):
            return False
        unpaired_of_pair += (arcs[arc, NEXT_OF_PAIR] != 0) - np.int64(not first_of_pair)
        unpaired_into += (arcs[arc, NEXT_INTO] != 0) - np.int64(not first_into)
        firsts[0] += first_of_pair
        firsts[1] += first_into
    if live != counters[ARCS_LIVE] or unpaired_of_pair != 0 or unpaired_into != 0:
        return False
    return free_list_fits(counters[ARCS_FREE], arcs[:, PAIR], state)


@kernel
def marks_fit(model: Model, high: int, observations: int) -> bool:
    """Check the marks of vertices and the list of those that changed, and which observation each has."""
    listed = np.zeros(high, np.bool_)
    for place in range(model.counters[CHANGED_COUNT]):
        vertex = model.changed[place]
        if vertex < 0 or vertex >= high or listed[vertex]:
            return False
        listed[vertex] = True
    for vertex in range(high):
        mark, seen = model.vertices[vertex, MARK], model.vertices[vertex, SEEN]
        if mark != 0 and mark != CHANGED and mark != CHANGED | UNSETTLED:
            return False
        if (mark != 0) != listed[vertex]:
            return False
        if seen < 0 or seen >= max(observations, 1):
            return False
    return True


@kernel
def model_fits(model: Model, high: int, actions: int, observations: int) -> bool:
    """Say whether a loaded model of `high` vertices fits together."""
    counters = model.counters
    pair_counts = np.zeros(counters[PAIRS_HIGH], np.int32)
    arc_notes = np.empty((counters[ARCS_HIGH], ARC_NOTES), np.int32)
    if not count_rows(model, pair_counts, arc_notes):
        return False
    tried, masks, firsts = np.zeros(high, np.int32), np.zeros(high, np.uint64), np.zeros(2, np.int64)
    if not pairs_fit(model, actions, pair_counts, tried, masks) or not arcs_fit(model, high, arc_notes, firsts):
        return False
    # An owner without members has no head: there are as many heads as first members.
    for pair in range(pair_counts.shape[0]):
        firsts[0] -= pair_counts[pair] > 0 and model.pairs[pair, FIRST_ARC] != 0
    for vertex in range(high):
        own = model.vertices[vertex]
        if own[TRIED] != tried[vertex] or model.tried[vertex] != masks[vertex]:
            return False
        if (own[FIRST_PAIR] != 0) != (tried[vertex] > 0):
            return False
        firsts[1] -= own[FIRST_INTO] != 0
    return firsts[0] == 0 and firsts[1] == 0 and marks_fit(model, high, observations)
