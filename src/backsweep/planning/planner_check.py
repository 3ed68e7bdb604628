"""Checks that a loaded model is that of the loaded rows, before any kernel follows its indices.

The kernels in `planner_check_kernels.py` decide.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from backsweep.graph.graph_kernels import VERTICES_EVER
from backsweep.planning.model_kernels import (
    ARCS_HIGH,
    ARCS_LIVE,
    CERTAIN,
    CHANGED_COUNT,
    DIFFERING,
    ENOUGH_TRIED,
    FIRST_ACTION,
    KNOWN,
    NOISY,
    PAIRS_HIGH,
    PAIRS_LIVE,
    PLANNED,
    RENEWALS,
    SYNCED,
)
from backsweep.planning.planner_check_kernels import model_fits
from backsweep.snapshot.contents import ContentsError, need, need_finite, need_lengths
from backsweep.snapshot.contents_kernels import all_finite
from backsweep.snapshot.saved_component import CheckStep

if TYPE_CHECKING:
    from backsweep.graph.graph import Graph
    from backsweep.planning.planner import Planner
    from backsweep.store.store import Store


class PlannerCheck:
    """The check of a loaded model."""

    def __init__(self, planner: Planner, store: Store, graph: Graph) -> None:
        self._planner, self._store, self._graph = planner, store, graph

    def steps(self) -> tuple[CheckStep, ...]:
        """Return the steps: sizes, then whether pairs, arcs and rows fit together, then other numbers."""
        return (
            CheckStep(("counters",), self._check_sizes),
            CheckStep(("vertices", "tried", "pairs", "arcs", "rows", "changed"), self._check_links),
            CheckStep(("bounds", "row_numbers"), self._check_numbers),
        )

    def _check_sizes(self, loaded: Mapping[str, NDArray[Any]]) -> None:
        _check_counters(self._planner, self._store)
        known, counters = self._planner.all_arrays(), self._planner.model.counters
        saved = len(loaded.get("counters", counters))
        if saved in (PLANNED, KNOWN, DIFFERING):  # by a release that did not have the later ones
            known["counters"] = counters, saved
        most_known = {PLANNED: counters[SYNCED], KNOWN: self._graph.counters[VERTICES_EVER], DIFFERING: CERTAIN}
        for place, most in most_known.items():
            need(saved <= place or 0 <= counters[place] <= most, "what the last renewal knew is out of range")
        need_lengths(loaded, known)

    def _check_links(self, _: Mapping[str, NDArray[Any]]) -> None:
        planner, high, observations = self._planner, self._graph.vertices_high, self._store.observations_high
        if not model_fits(planner.model, high, planner.num_actions, observations):
            raise ContentsError("its pairs, arcs and rows do not fit together")

    def _check_numbers(self, loaded: Mapping[str, NDArray[Any]]) -> None:
        need_finite(loaded["bounds"], "bounds")
        need(all_finite(loaded["row_numbers"]), "numbers of rows hold NaN or infinity")


def _check_counters(planner: Planner, store: Store) -> None:
    model, counters = planner.model, planner.model.counters
    need(0 <= counters[SYNCED] <= store.total, "the number of rows taken in is out of range")
    for live, high, most in ((PAIRS_LIVE, PAIRS_HIGH, len(model.pairs)), (ARCS_LIVE, ARCS_HIGH, len(model.arcs))):
        need(0 <= counters[live] <= counters[high] <= most, "the numbers of pairs and arcs are out of range")
    need(0 <= counters[CHANGED_COUNT] <= len(model.changed), "the number of changed vertices is out of range")
    need(counters[RENEWALS] >= 0, "the number of renewals is out of range")
    need(counters[NOISY] in (0, 1), "the mark of noise is neither 0 nor 1")
    need(counters[FIRST_ACTION] == planner.first_action, "the first action is not the space's")
    need(counters[ENOUGH_TRIED] == planner.enough_tried, "the number of actions that are enough is wrong")
