"""What a consistent model is, in plain numpy: the twin of `planner_check_kernels`; it says what is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

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
)
from backsweep.snapshot.contents import need, need_finite, need_within
from twins.contents import count_of, need_equal, need_list

if TYPE_CHECKING:
    from backsweep.graph.graph import Graph
    from backsweep.planning.planner import Planner
    from backsweep.store.store import Store


def explain_planner(planner: Planner, store: Store, graph: Graph) -> None:
    """Raise a ContentsError that says what is wrong with a model, if anything is."""
    model, counters = planner.model, planner.model.counters
    high, pairs_high, arcs_high = graph.vertices_high, int(counters[PAIRS_HIGH]), int(counters[ARCS_HIGH])
    vertices, pairs, arcs = model.vertices[:high], model.pairs[:pairs_high], model.arcs[:arcs_high]
    rows = model.rows[: min(int(counters[SYNCED]), store.capacity)]

    held = rows[:, ROW_PAIR] > 0
    need_within(rows[:, ROW_PAIR], 0, pairs_high + 1, "pairs of rows")
    need_within(rows[held, ROW_ARC], 0, arcs_high + 1, "arcs of rows")
    live_pairs = count_of(rows[held, ROW_PAIR], pairs_high + 1)[1:]
    arced = held & (rows[:, ROW_ARC] > 0)
    live_arcs = count_of(rows[arced, ROW_ARC], arcs_high + 1)[1:]
    of_pairs, of_arcs = np.flatnonzero(live_pairs), np.flatnonzero(live_arcs)
    need_equal(pairs[of_pairs, COUNT], live_pairs[of_pairs], "the rows of pairs")
    need_equal(arcs[of_arcs, ROWS], live_arcs[of_arcs], "the rows of arcs")
    need(len(of_pairs) == counters[PAIRS_LIVE] and len(of_arcs) == counters[ARCS_LIVE], "live pairs or arcs are wrong")
    need_list(int(counters[PAIRS_FREE]), pairs[:, VERTEX], live_pairs == 0, "the list of free pairs")
    need_list(int(counters[ARCS_FREE]), arcs[:, PAIR], live_arcs == 0, "the list of free arcs")
    need_equal(arcs[rows[arced, ROW_ARC] - 1, PAIR], rows[arced, ROW_PAIR] - 1, "the pairs of arcs")

    need_within(pairs[of_pairs, VERTEX], 0, high, "vertices of pairs")
    need_within(pairs[of_pairs, ACTION], 0, planner.num_actions, "actions of pairs")
    need_within(arcs[of_arcs, SUCCESSOR], 0, high, "successors of arcs")
    need_equal(vertices[:, TRIED], count_of(pairs[of_pairs, VERTEX], high), "the tried actions of vertices")
    _check_masks(model.tried[:high], pairs[of_pairs])
    _check_lists(vertices[:, FIRST_PAIR], pairs, of_pairs, VERTEX, NEXT_PAIR, PREVIOUS_PAIR, "pairs")
    _check_lists(pairs[:, FIRST_ARC], arcs, of_arcs, PAIR, NEXT_OF_PAIR, PREVIOUS_OF_PAIR, "arcs of pairs", of_pairs)
    _check_lists(vertices[:, FIRST_INTO], arcs, of_arcs, SUCCESSOR, NEXT_INTO, PREVIOUS_INTO, "arcs into vertices")

    need(np.isin(vertices[:, MARK], (0, CHANGED, CHANGED | UNSETTLED)).all(), "marks of vertices are wrong")
    need_within(vertices[:, SEEN], 0, max(store.observations_high, 1), "observations of vertices")
    changed = model.changed[: counters[CHANGED_COUNT]]
    need_within(changed, 0, high, "changed vertices")
    need_equal(count_of(changed, high), (vertices[:, MARK] & CHANGED) // CHANGED, "the changed vertices")
    need_finite(model.row_numbers[: len(rows)], "numbers of rows")


def _check_masks(tried: NDArray[np.uint64], pairs: NDArray[np.int32]) -> None:
    low = pairs[pairs[:, ACTION] < MASKED_ACTIONS]
    expected = np.zeros(len(tried), np.uint64)
    np.bitwise_or.at(expected, low[:, VERTEX], np.uint64(1) << low[:, ACTION].astype(np.uint64))
    need_equal(tried, expected, "the masks of tried actions")


def _check_lists(
    heads: NDArray[np.int32],
    members: NDArray[np.int32],
    live: NDArray[np.int64],
    owner: int,
    following: int,
    previous: int,
    what: str,
    owners: NDArray[np.int64] | None = None,
) -> None:
    """Check doubly linked lists by their neighbours.

    Each link has its back link, and a head has no predecessor, so a walk from a head cannot enter a cycle.
    """
    count = len(members)
    links, back = members[live, following], members[live, previous]
    need_within(links, 0, count + 1, f"links of {what}")
    need_within(back, 0, count + 1, f"links of {what}")
    need_equal(members[links[links > 0] - 1, previous], live[links > 0] + 1, f"the links of {what}")
    need_equal(members[back[back > 0] - 1, following], live[back > 0] + 1, f"the links of {what}")
    need_equal(members[links[links > 0] - 1, owner], members[live[links > 0], owner], f"the owners of {what}")
    is_live = np.zeros(count, np.bool_)
    is_live[live] = True
    need(is_live[links[links > 0] - 1].all() and is_live[back[back > 0] - 1].all(), f"a list of {what} has a free one")
    first = live[back == 0]
    expected = np.zeros(len(heads), np.int64)
    expected[members[first, owner]] = first + 1
    chosen = slice(None) if owners is None else owners
    need_equal(heads[chosen], expected[chosen], f"the heads of {what}")
    need(np.count_nonzero(expected) == len(first), f"two lists of {what} have one owner")
