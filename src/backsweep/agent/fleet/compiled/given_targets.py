"""Targets that are known before an update, for all runs of a group: EBU's, and graph values.

EBU's are those that `agent.learner.backward_targets` computes for one run. Graph values are renewed together with the
device's networks, and read for every batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backsweep.agent.fleet.compiled import given_targets_kernels
from backsweep.agent.fleet.compiled.given_targets_kernels import DISCOUNT, FLOOR, GAP, PLANS, SETTINGS
from backsweep.agent.fleet.compiled.runs import CompiledRuns
from backsweep.agent.learner.backward_targets import new_walk, rule_settings
from backsweep.agent.learner.executor import Executor
from backsweep.agent.learner.rules import TargetRule
from backsweep.agent.learner.value_programs import CHUNK
from backsweep.jit.array_table import addresses_of
from backsweep.jit.compilation import threads_in_use
from backsweep.planning.planner import Planner


class BackwardWalks:
    """The walks of all runs."""

    def __init__(
        self,
        runs: CompiledRuns,
        walking: NDArray[np.bool_],
        rule: TargetRule,
        longest: int,
        known: NDArray[Any],
        alone: bool,
    ) -> None:
        """Prepare for episodes of at most `longest` steps; targets go to `known`, NaN for runs not `walking`.

        With `alone`, every episode is evaluated separately, so that rounding is that of a single run on a CPU.
        """
        count, batch = runs.row.shape
        self._runs, self._walking, self._rule, self._known, self._alone = runs, walking, rule, known, alone
        # A batch can start as many episodes as it has rows.
        empty = [new_walk(batch, longest, batch * longest) for _ in range(count)]
        self._walked = np.zeros((count, batch), np.bool_)
        self.walks = [
            walk._replace(batch=row, walked=walked)
            for walk, row, walked in zip(empty, runs.row, self._walked, strict=True)
        ]
        self._table = np.stack([addresses_of(walk) for walk in self.walks])
        self._next_places = np.zeros((count, batch * longest), np.int64)
        self._found = np.zeros(count, np.int64)
        self._starts = np.zeros(count, np.int64)  # where a run's steps begin among the values

    def begin(self, networks: Executor) -> bool:
        """Find the states that the last batches need evaluated; return whether a device is evaluating them.

        If it is, wait for it before `finish`.
        """
        runs = self._runs
        self._walked[:] = (runs.sources() == 0) & self._walking[:, None]
        given_targets_kernels.find_episodes(runs.table, self._table, self._found, self._next_places)
        beginning = np.flatnonzero(self._found)
        if self._alone or not len(beginning):
            return False
        asked, rows = self._in_chunks(beginning)
        networks.ask_both(asked, rows)
        return True

    def finish(self, networks: Executor) -> None:
        """Fill `known` for the batches that were drawn last."""
        runs, rule = self._runs, rule_settings(self._rule)
        values = self._values(networks)
        given_targets_kernels.walk_through(
            runs.table, self._table, rule, self._starts, *values, self._known, runs.buffers.weight
        )

    def _in_chunks(self, beginning: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the steps of the runs' new episodes cut into chunks: their runs (n,) and device rows (n, CHUNK)."""
        totals = self._totals(beginning)
        chunks = -(-totals // CHUNK)
        ends = chunks.cumsum()
        self._starts[beginning] = CHUNK * (ends - chunks)
        rows = np.full(CHUNK * int(ends[-1]), self._next_places[beginning[0], 0])  # what fills up a chunk is not read
        for run, total in zip(beginning.tolist(), totals.tolist(), strict=True):
            start = self._starts[run]
            rows[start : start + total] = self._next_places[run, :total]
        return np.repeat(beginning, chunks), rows.reshape(-1, CHUNK)

    def _values(self, networks: Executor) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
        """Return the values (steps, actions) of the new episodes' next states by both networks."""
        beginning = np.flatnonzero(self._found)
        if not len(beginning):
            nothing = np.zeros((0, 1), self._known.dtype)
            return nothing, nothing
        if self._alone:
            self._starts[beginning] = np.cumsum([0, *self._totals(beginning[:-1])])
            target = self._one_by_one(networks, beginning, True)
            return target, self._one_by_one(networks, beginning, False) if self._rule.double else target
        target, online = networks.answers()
        return target.reshape(-1, target.shape[-1]), online.reshape(-1, online.shape[-1])

    def _one_by_one(self, networks: Executor, beginning: NDArray[np.int64], target: bool) -> NDArray[np.floating]:
        parts = []
        for run in beginning.tolist():
            start = 0
            for length in self.walks[run].lengths[: self._found[run]].tolist():
                wanted = self._next_places[run : run + 1, start : start + length].copy()
                parts.append(networks.values(np.array([run]), wanted, target=target)[0])
                start += length
        return np.concatenate(parts)

    def _totals(self, beginning: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return how many steps the new episodes of runs have."""
        return np.array([self.walks[run].lengths.sum() for run in beginning], np.int64)


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
        given_targets_kernels.read_all_targets(
            self._runs.row, self._settings, self._runs.table, self._targets, self._tried_values
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
