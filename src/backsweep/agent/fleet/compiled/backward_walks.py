"""EBU's targets for all runs of a group, as `agent.learner.backward_targets` computes them for one run."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from backsweep.agent.fleet.compiled import backward_walks_kernels
from backsweep.agent.fleet.compiled.runs import CompiledRuns
from backsweep.agent.learner.backward_targets import new_walk, rule_settings
from backsweep.agent.learner.executor import Executor
from backsweep.agent.learner.rules import TargetRule
from backsweep.agent.learner.value_programs import CHUNK
from backsweep.jit.array_table import addresses_of


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
        self._walked[:] = (runs.sources() == self._rule.backward_source) & self._walking[:, None]
        backward_walks_kernels.find_episodes(runs.table, self._table, self._found, self._next_places)
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
        backward_walks_kernels.walk_through(
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
