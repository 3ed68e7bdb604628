"""Checks that a loaded model is that of the loaded rows, before any kernel follows its indices.

The kernels in `planner_check_kernels.py` decide. If they refuse, the plain numpy checks here find out why.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

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
    ENOUGH_TRIED,
    FALLEN,
    FIRST_ACTION,
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
    RENEWALS,
    ROW_ARC,
    ROW_PAIR,
    ROWS,
    SEEN,
    SUCCESSOR,
    SYNCED,
    TRIED,
    VERTEX,
)
from backsweep.planning.planner_check_kernels import model_fits
from backsweep.snapshot.contents import (
    ContentsError,
    count_of,
    need,
    need_equal,
    need_finite,
    need_lengths,
    need_list,
    need_within,
)

if TYPE_CHECKING:
    from backsweep.graph.graph import Graph
    from backsweep.planning.planner import Planner
    from backsweep.store.store import Store


def check_planner(planner: Planner, store: Store, graph: Graph, loaded: Mapping[str, NDArray[Any]]) -> None:
    """Raise a ContentsError if a loaded model does not match a store and a graph that were checked before."""
    _check_counters(planner, store, loaded)
    need_lengths(loaded, planner.all_arrays())
    if not model_fits(planner.model, graph.vertices_high, planner.num_actions, store.observations_high):
        explain_planner(planner, store, graph)
        raise ContentsError("its pairs, arcs and rows do not fit together")
    need_finite(planner.bounds, "bounds")


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

    need_within(vertices[:, MARK], 0, (CHANGED | FALLEN) + 1, "marks of vertices")
    need_within(vertices[:, SEEN], 0, max(store.observations_high, 1), "observations of vertices")
    changed = model.changed[: counters[CHANGED_COUNT]]
    need_within(changed, 0, high, "changed vertices")
    need_equal(count_of(changed, high), (vertices[:, MARK] & CHANGED) // CHANGED, "the changed vertices")
    need_finite(model.row_numbers[: len(rows)], "numbers of rows")


def _check_counters(planner: Planner, store: Store, loaded: Mapping[str, NDArray[Any]]) -> None:
    model, counters = planner.model, planner.model.counters
    need(0 <= counters[SYNCED] <= store.total, "the number of rows taken in is out of range")
    for live, high, most in ((PAIRS_LIVE, PAIRS_HIGH, len(model.pairs)), (ARCS_LIVE, ARCS_HIGH, len(model.arcs))):
        need(0 <= counters[live] <= counters[high] <= most, "the numbers of pairs and arcs are out of range")
    need(0 <= counters[CHANGED_COUNT] <= len(model.changed), "the number of changed vertices is out of range")
    need(counters[RENEWALS] >= 0, "the number of renewals is out of range")
    need(counters[FIRST_ACTION] == planner.first_action, "the first action is not the space's")
    need(counters[ENOUGH_TRIED] == planner.enough_tried, "the number of actions that are enough is wrong")


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
