"""The empirical model of the live rows in flat arrays: the outcomes of each action in each state, with counts.

    vertices[vertex]      FIRST_PAIR  TRIED       the pairs (vertex, action) that have rows, and how many there are
                          FIRST_INTO              the arcs that lead here
                          MARK                    CHANGED, FALLEN, UNSETTLED; see solve_kernels
                          SEEN                    the number of an observation of it
    tried[vertex]         a bit for each of the first 64 actions that has rows
    numbers[vertex]       VALUE                   V; NaN for a vertex that is newer than the last renewal
                          PROPAGATED              V as its predecessors know it
                          UNTRIED                 the best value of an untried action; -inf if there is none
                          ANSWER                  the same by the network's last answer alone; NaN if there was none
    stamps[vertex]        the graph's stamp of the vertex + 1: differs from that of a later one in its place
    pairs[pair]           VERTEX  ACTION  COUNT   a state, an action, and how many rows they have
                          FIRST_ARC  NEXT_PAIR  PREVIOUS_PAIR
    pair_numbers[pair]    REWARDS                 the sum of the rewards
                          CANDIDATE               the vertex's value if this action is always taken; -inf if unknown
                          LOOP                    discount * share of the rows that lead back to the vertex itself
    arcs[arc]             PAIR  SUCCESSOR  ROWS   rows of the pair that led to that vertex
                          NEXT_OF_PAIR  PREVIOUS_OF_PAIR  NEXT_INTO  PREVIOUS_INTO
    rows[slot]            ROW_PAIR  ROW_ARC       what must be undone when the row is overwritten
    row_numbers[slot]     ROW_REWARD, BEST_STRETCH, WORST_STRETCH

Links and entries are stored plus one, so that 0 means none. A row that terminated has no arc. `follow_kernels` updates
the model with the live rows.

    changed               vertices whose own rows or network values changed since they were last solved
    extremes              the extremes of rewards, and of reward sums over parts of episodes
    bounds                the lowest and the highest value, as of the last renewal
"""

# mypy: disable-error-code="no-any-return,arg-type,assignment,return-value"
from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from backsweep.graph.graph_kernels import hash_edge
from backsweep.jit.array_table import (
    Float64Matrix,
    Float64Vector,
    Int32Matrix,
    Int32Vector,
    Int64Matrix,
    Int64Vector,
    WordVector,
)
from backsweep.jit.compilation import inlined, kernel
from backsweep.jit.hash_table_kernels import home, insert, most_passed
from backsweep.jit.prefetching import prefetch

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
UNSETTLED = 4
# Columns of numbers.
VALUE = 0
PROPAGATED = 1
UNTRIED = 2
ANSWER = 3
NUMBER_COLUMNS = 4
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
# Columns of arcs; the first two are where the graph's edges have source and target, so that its table works here.
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
ENOUGH_TRIED = 10  # a vertex with this many tried actions needs no value from the network
TURNS = 11  # the network evaluates each vertex again once in this many renewals
NOISY = 12  # 1 if the last renewal found too much noise to plan
PLANNED = 13  # as SYNCED, but for a renewal that is not complete: rows from here on have the value of their own outcome
KNOWN = 14  # vertices ever made when the last complete renewal began
DIFFERING = 15  # the chance that an action led elsewhere when it was tried again, in parts of `CERTAIN`
MODEL_COUNTERS = 16
CERTAIN = 1 << 30

MASKED_ACTIONS = 64
AHEAD = 16
"""How many arcs ahead the place of an arc in its table is prefetched."""


class Model(NamedTuple):
    """The arrays of the model."""

    vertices: Int32Matrix
    tried: WordVector
    numbers: Float64Matrix
    stamps: Int64Vector
    pairs: Int32Matrix
    pair_numbers: Float64Matrix
    arcs: Int32Matrix
    arc_table: WordVector
    rows: Int32Matrix
    row_numbers: Float64Matrix
    changed: Int32Vector
    extremes: Float64Vector
    bounds: Float64Vector
    counters: Int64Vector


class Experience(NamedTuple):
    """The arrays of store and graph that the model reads."""

    rows: Int32Matrix
    values: Float64Matrix
    actions: Int64Vector
    vertices: Int64Matrix
    observation_vertex: Int32Vector


@inlined
def in_use(vertex: int, vertices: NDArray[np.int32]) -> bool:
    """Say whether a vertex has tried actions or is the successor of one."""
    return vertices[vertex, FIRST_PAIR] != 0 or vertices[vertex, FIRST_INTO] != 0


@inlined
def mark_changed(
    vertex: int, vertices: NDArray[np.int32], changed: NDArray[np.int32], counters: NDArray[np.int64]
) -> None:
    """Mark a vertex to be solved again."""
    if not vertices[vertex, MARK] & CHANGED:
        vertices[vertex, MARK] |= CHANGED
        changed[counters[CHANGED_COUNT]] = vertex
        counters[CHANGED_COUNT] += 1


@inlined
def has_values(counters: NDArray[np.int64]) -> bool:
    """Say whether the last renewal gave values."""
    return counters[RENEWALS] > 0 and counters[NOISY] == 0


@kernel
def rebuild_arc_table(model: Model) -> bool:
    """Fill the empty table from the arcs, needed after loading; False if too many have one hash."""
    arcs, table, high = model.arcs, model.arc_table, model.counters[ARCS_HIGH]
    left = most_passed(high)
    for arc in range(high):
        if arc + AHEAD < high:
            prefetch(table, home(hash_edge(arcs[arc + AHEAD, PAIR], arcs[arc + AHEAD, SUCCESSOR]), table))
        if arcs[arc, ROWS] > 0:
            left -= insert(hash_edge(arcs[arc, PAIR], arcs[arc, SUCCESSOR]), arc, table)
            if left < 0:
                return False
    return True
