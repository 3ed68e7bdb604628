"""Graph values for the runs of a group: renewed together with the device's networks, read for every batch."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backsweep.agent.fleet.compiled import graph_targets_kernels
from backsweep.agent.fleet.compiled.graph_targets_kernels import DISCOUNT, FLOOR, GAP, PLANS, SETTINGS
from backsweep.agent.fleet.compiled.runs import CompiledRuns
from backsweep.agent.learner.executor import Executor
from backsweep.jit.array_table import address_tables
from backsweep.jit.compilation import threads_in_use
from backsweep.planning.planner import Planner

PIECE = 1024
"""Observations of a run that the networks evaluate at once."""

Bounds = tuple[float, float] | None


class GraphTargets:
    """The planners of some runs."""

    def __init__(
        self, runs: CompiledRuns, bounds: Sequence[Bounds], known: NDArray[Any], tried: NDArray[Any] | None = None
    ) -> None:
        """Targets are written to `known` (runs, batch); entries of runs without planning are not changed.

        `tried` (runs, batch, actions) gets the values of the states' tried actions.
        """
        self._runs, self._bounds, self._known, self._tried = runs, bounds, known, tried
        self._planners: list[Planner | None] = [member.replay.machinery.planner for member in runs.members]
        self._settings = np.zeros((len(self._planners), SETTINGS))
        self._arrays = address_tables(
            [(None, None) if planner is None else (planner.model, planner.experience) for planner in self._planners]
        )
        self._targets = np.full(known.shape, np.nan, np.float32)
        self._tried_values = np.full((len(known), 0, 0) if tried is None else tried.shape, np.nan, np.float32)
        self._read_settings()

    def _read_settings(self) -> None:
        for run, planner in enumerate(self._planners):
            if planner is not None:
                settings = self._settings[run]
                settings[PLANS], settings[GAP], settings[FLOOR] = 1.0, planner.config.gap, planner.floor
                settings[DISCOUNT] = planner.discount

    def read(self) -> None:
        """Write the targets of the last batches."""
        graph_targets_kernels.read_all_targets(
            self._runs.row, self._settings, self._arrays, self._targets, self._tried_values
        )
        planning = self._settings[:, PLANS] != 0.0
        self._known[planning] = self._targets[planning]
        if self._tried is not None:
            self._tried[:] = self._tried_values

    def renew(self, runs: Sequence[int], networks: Executor) -> None:
        """Renew the values of some runs, on as many threads as step runs: kernels hold no interpreter lock."""
        planners = {run: planner for run in runs if (planner := self._planners[run]) is not None}
        if not planners:
            return
        first_rows = {run: self._runs.members[run].first_row for run in planners}
        with ThreadPoolExecutor(max(1, min(threads_in_use(), len(planners)))) as threads:
            asked = dict(zip(planners, threads.map(Planner.begin_renewal, planners.values()), strict=True))
            places = {run: first_rows[run] + numbers.astype(np.int64) for run, (_, numbers) in asked.items()}
            values = _values_of(places, networks)
            done = threads.map(
                lambda run: planners[run].finish_renewal(asked[run][0], values[run], self._bounds[run]), planners
            )
            list(done)
        self._read_settings()


def _values_of(places: dict[int, NDArray[np.int64]], networks: Executor) -> dict[int, NDArray[np.floating]]:
    """Return the target networks' values (n, actions) of each run's device rows (n,), evaluated in equal chunks."""
    found: dict[int, list[NDArray[np.floating]]] = {run: [] for run in places}
    for start in range(0, max(len(rows) for rows in places.values()), PIECE):
        runs = [run for run, rows in places.items() if len(rows) > start]
        rows = np.stack([_filled_up(places[run][start : start + PIECE]) for run in runs])
        values = networks.values(np.array(runs), rows, target=True)
        for run, of_run in zip(runs, values, strict=True):
            found[run].append(of_run[: len(places[run]) - start])
    return {run: np.concatenate(pieces) if pieces else np.empty((0, 1)) for run, pieces in found.items()}


def _filled_up(rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return rows padded with the first one to a full chunk, so that the device sees only one shape."""
    return rows if len(rows) == PIECE else np.concatenate([rows, np.full(PIECE - len(rows), rows[0])])
