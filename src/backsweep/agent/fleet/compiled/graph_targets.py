"""Graph values for the lanes of a group: renewed together with the device's networks, read for every batch."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from backsweep.agent.fleet.compiled import graph_targets_kernels
from backsweep.agent.fleet.compiled.graph_targets_kernels import DISCOUNT, FLOOR, GAP, PLANS, SETTINGS
from backsweep.agent.fleet.compiled.lanes import LockstepLanes
from backsweep.jit.array_table import array_tables
from backsweep.jit.compilation import threads_in_use
from backsweep.planning.planner import Planner

PIECE = 1024
"""Observations of a lane that the networks evaluate at once."""

Bounds = tuple[float, float] | None


class Networks(Protocol):
    """Evaluates observations on the device with lanes' networks."""

    def values(self, lanes: NDArray[np.int64], rows: NDArray[np.int64], *, target: bool) -> NDArray[np.floating]:
        """Return the values (n, rows, actions) of device rows (n, rows) by the networks of lanes (n,)."""
        ...


class GraphTargets:
    """The planners of some lanes."""

    def __init__(self, lanes: LockstepLanes, bounds: Sequence[Bounds], known: NDArray[Any]) -> None:
        """Targets are written to `known` (lanes, batch); entries of lanes without planning are not changed."""
        self._lanes, self._bounds, self._known = lanes, bounds, known
        self._planners: list[Planner | None] = [member.replay.machinery.planner for member in lanes.members]
        self._settings = np.zeros((len(self._planners), SETTINGS))
        self._arrays = array_tables(
            [(None, None) if planner is None else (planner.model, planner.experience) for planner in self._planners]
        )
        self._targets = np.full(known.shape, np.nan, np.float32)
        self._read_settings()

    def _read_settings(self) -> None:
        for lane, planner in enumerate(self._planners):
            if planner is not None:
                settings = self._settings[lane]
                settings[PLANS], settings[GAP], settings[FLOOR] = 1.0, planner.config.gap, planner.floor
                settings[DISCOUNT] = planner.discount

    def read(self) -> None:
        """Write the targets of the last batches."""
        graph_targets_kernels.read_all_targets(self._lanes.row, self._settings, self._arrays, self._targets)
        planning = self._settings[:, PLANS] != 0.0
        self._known[planning] = self._targets[planning]

    def renew(self, lanes: Sequence[int], networks: Networks) -> None:
        """Renew the values of some lanes, on as many threads as step lanes: kernels hold no interpreter lock."""
        planners = {lane: planner for lane in lanes if (planner := self._planners[lane]) is not None}
        if not planners:
            return
        first_rows = {lane: self._lanes.members[lane].first_row for lane in planners}
        with ThreadPoolExecutor(max(1, min(threads_in_use(), len(planners)))) as threads:
            asked = dict(zip(planners, threads.map(Planner.begin_renewal, planners.values()), strict=True))
            places = {lane: first_rows[lane] + numbers.astype(np.int64) for lane, (_, numbers) in asked.items()}
            values = _values_of(places, networks)
            done = threads.map(
                lambda lane: planners[lane].finish_renewal(asked[lane][0], values[lane], self._bounds[lane]), planners
            )
            list(done)
        self._read_settings()


def _values_of(places: dict[int, NDArray[np.int64]], networks: Networks) -> dict[int, NDArray[np.floating]]:
    """Return the target networks' values (n, actions) of each lane's device rows (n,), evaluated in equal chunks."""
    found: dict[int, list[NDArray[np.floating]]] = {lane: [] for lane in places}
    for start in range(0, max(len(rows) for rows in places.values()), PIECE):
        lanes = [lane for lane, rows in places.items() if len(rows) > start]
        rows = np.stack([_filled_up(places[lane][start : start + PIECE]) for lane in lanes])
        values = networks.values(np.array(lanes), rows, target=True)
        for lane, of_lane in zip(lanes, values, strict=True):
            found[lane].append(of_lane[: len(places[lane]) - start])
    return {lane: np.concatenate(pieces) if pieces else np.empty((0, 1)) for lane, pieces in found.items()}


def _filled_up(rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return rows padded with the first one to a full chunk, so that the device sees only one shape."""
    return rows if len(rows) == PIECE else np.concatenate([rows, np.full(PIECE - len(rows), rows[0])])
