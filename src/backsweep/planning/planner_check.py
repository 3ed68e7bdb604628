"""Checks that a loaded model is that of the loaded rows, before any kernel follows its indices.

The kernels in `planner_check_kernels.py` decide.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from backsweep.planning.model_kernels import (
    ARCS_HIGH,
    ARCS_LIVE,
    CHANGED_COUNT,
    ENOUGH_TRIED,
    FIRST_ACTION,
    PAIRS_HIGH,
    PAIRS_LIVE,
    RENEWALS,
    SYNCED,
)
from backsweep.planning.planner_check_kernels import model_fits
from backsweep.snapshot.contents import ContentsError, need, need_finite, need_lengths

if TYPE_CHECKING:
    from backsweep.graph.graph import Graph
    from backsweep.planning.planner import Planner
    from backsweep.store.store import Store


def check_planner(planner: Planner, store: Store, graph: Graph, loaded: Mapping[str, NDArray[Any]]) -> None:
    """Raise a ContentsError if a loaded model does not match a store and a graph that were checked before."""
    _check_counters(planner, store, loaded)
    need_lengths(loaded, planner.all_arrays())
    if not model_fits(planner.model, graph.vertices_high, planner.num_actions, store.observations_high):
        raise ContentsError("its pairs, arcs and rows do not fit together")
    need_finite(planner.bounds, "bounds")


def _check_counters(planner: Planner, store: Store, loaded: Mapping[str, NDArray[Any]]) -> None:
    model, counters = planner.model, planner.model.counters
    need(0 <= counters[SYNCED] <= store.total, "the number of rows taken in is out of range")
    for live, high, most in ((PAIRS_LIVE, PAIRS_HIGH, len(model.pairs)), (ARCS_LIVE, ARCS_HIGH, len(model.arcs))):
        need(0 <= counters[live] <= counters[high] <= most, "the numbers of pairs and arcs are out of range")
    need(0 <= counters[CHANGED_COUNT] <= len(model.changed), "the number of changed vertices is out of range")
    need(counters[RENEWALS] >= 0, "the number of renewals is out of range")
    need(counters[FIRST_ACTION] == planner.first_action, "the first action is not the space's")
    need(counters[ENOUGH_TRIED] == planner.enough_tried, "the number of actions that are enough is wrong")
