"""The check of a loaded model, one pass over each array; `tests/twins/planner_check.py` is its twin.

The counters and lengths have been checked before.
"""

# In compiled code Python's numbers and numpy's are one and the same.
# mypy: disable-error-code="no-any-return,arg-type,assignment,return-value"

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from backsweep.jit.compilation import inlined, kernel
from backsweep.planning.model_kernels import (
    ACTION,
    ARCS_FREE,
    ARCS_HIGH,
    ARCS_LIVE,
    CHANGED,
    CHANGED_COUNT,
    COUNT,
    FALLEN,
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
    VERTEX,
    Model,
)
from backsweep.snapshot.contents_kernels import LIVE, free_list_fits


@kernel
def count_rows(model: Model, of_pairs: NDArray[np.int32], of_arcs: NDArray[np.int32]) -> bool:
    """Count the rows of pairs and arcs; return whether all exist and each arc belongs to its pair."""
    rows = model.rows
    for slot in range(min(model.counters[SYNCED], rows.shape[0])):
        pair, arc = rows[slot, ROW_PAIR], rows[slot, ROW_ARC]
        if pair < 0 or pair > of_pairs.shape[0]:
            return False
        for column in range(model.row_numbers.shape[1]):
            if not np.isfinite(model.row_numbers[slot, column]):
                return False
        if pair == 0:
            continue
        of_pairs[pair - 1] += 1
        if arc < 0 or arc > of_arcs.shape[0]:
            return False
        if arc > 0:
            of_arcs[arc - 1] += 1
            if model.arcs[arc - 1, PAIR] != pair - 1:
                return False
    return True


@inlined
def links_fit(
    member: int,
    members: NDArray[np.int32],
    counts: NDArray[np.int32],
    columns: tuple[int, int, int],
    heads: NDArray[np.int32],
) -> bool:
    """Check one member of a doubly linked list: its neighbours link back, and the first is its owner's head.

    `columns` are those of the owner, of the next member and of the previous one. A walk from a head can then enter no
    circle.
    """
    owner, following, previous = members[member, columns[0]], members[member, columns[1]], members[member, columns[2]]
    if following < 0 or following > counts.shape[0] or previous < 0 or previous > counts.shape[0]:
        return False
    if following > 0:
        other = following - 1
        if counts[other] == 0 or members[other, columns[2]] != member + 1 or members[other, columns[0]] != owner:
            return False
    if previous > 0:
        return counts[previous - 1] > 0 and members[previous - 1, columns[1]] == member + 1
    return heads[owner] == member + 1


@kernel
def pairs_fit(
    model: Model,
    high: int,
    actions: int,
    counts: NDArray[np.int32],
    tried: NDArray[np.int32],
    masks: NDArray[np.uint64],
) -> bool:
    """Check the pairs; count how many each vertex has, and note which of its first actions."""
    pairs, counters = model.pairs, model.counters
    state, heads = np.zeros(counts.shape[0], np.uint8), model.vertices[:, FIRST_PAIR]
    live = 0
    for pair in range(counts.shape[0]):
        if counts[pair] == 0:
            continue
        state[pair] = LIVE
        live += 1
        vertex, action = pairs[pair, VERTEX], pairs[pair, ACTION]
        if pairs[pair, COUNT] != counts[pair] or vertex < 0 or vertex >= high or action < 0 or action >= actions:
            return False
        if not links_fit(pair, pairs, counts, (VERTEX, NEXT_PAIR, PREVIOUS_PAIR), heads):
            return False
        tried[vertex] += 1
        if action < MASKED_ACTIONS:
            masks[vertex] |= np.uint64(1) << np.uint64(action)
    return live == counters[PAIRS_LIVE] and free_list_fits(
        counters[PAIRS_FREE], pairs[: counts.shape[0], VERTEX], state
    )


@kernel
def arcs_fit(
    model: Model, high: int, pair_counts: NDArray[np.int32], counts: NDArray[np.int32], firsts: NDArray[np.int64]
) -> bool:
    """Check the arcs; count how many are the first of their pair, and how many the first into their vertex."""
    arcs, counters = model.arcs, model.counters
    state = np.zeros(counts.shape[0], np.uint8)
    of_pairs, into = model.pairs[:, FIRST_ARC], model.vertices[:, FIRST_INTO]
    live = 0
    for arc in range(counts.shape[0]):
        if counts[arc] == 0:
            continue
        state[arc] = LIVE
        live += 1
        pair, successor = arcs[arc, PAIR], arcs[arc, SUCCESSOR]
        if arcs[arc, ROWS] != counts[arc] or successor < 0 or successor >= high or pair_counts[pair] == 0:
            return False
        if not links_fit(arc, arcs, counts, (PAIR, NEXT_OF_PAIR, PREVIOUS_OF_PAIR), of_pairs):
            return False
        if not links_fit(arc, arcs, counts, (SUCCESSOR, NEXT_INTO, PREVIOUS_INTO), into):
            return False
        firsts[0] += arcs[arc, PREVIOUS_OF_PAIR] == 0
        firsts[1] += arcs[arc, PREVIOUS_INTO] == 0
    return live == counters[ARCS_LIVE] and free_list_fits(counters[ARCS_FREE], arcs[: counts.shape[0], PAIR], state)


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
        if mark < 0 or mark > CHANGED | FALLEN or ((mark & CHANGED) != 0) != listed[vertex]:
            return False
        if seen < 0 or seen >= max(observations, 1):
            return False
    return True


@kernel
def model_fits(model: Model, high: int, actions: int, observations: int) -> bool:
    """Say whether a loaded model of `high` vertices fits together."""
    counters = model.counters
    pair_counts, arc_counts = np.zeros(counters[PAIRS_HIGH], np.int32), np.zeros(counters[ARCS_HIGH], np.int32)
    if not count_rows(model, pair_counts, arc_counts):
        return False
    tried, masks, firsts = np.zeros(high, np.int32), np.zeros(high, np.uint64), np.zeros(2, np.int64)
    if not pairs_fit(model, high, actions, pair_counts, tried, masks):
        return False
    if not arcs_fit(model, high, pair_counts, arc_counts, firsts):
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
