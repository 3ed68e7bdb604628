"""EBU's targets for lanes in lock-step: what `learner.episodic.BackwardTargets` does for one lane, for all."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from backsweep.learner.rules import TargetRule
from backsweep.lockstep.backward import kernels
from backsweep.lockstep.backward.kernels import COUNT, PLACE, WALK_COLUMNS
from backsweep.lockstep.lanes import LockstepLanes


class Networks(Protocol):
    """Gives values (n, steps, actions) of bank rows (n, steps) by the networks of lanes (n,)."""

    def values(self, lanes: NDArray[np.int64], rows: NDArray[np.int64], *, target: bool) -> NDArray[np.floating]:
        """Return the values of the target or the online networks."""
        ...

    def both_values(
        self, lanes: NDArray[np.int64], rows: NDArray[np.int64]
    ) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
        """Return the values of the target and the online networks."""
        ...


class BackwardWalks:
    """The walks of all lanes."""

    def __init__(
        self,
        lanes: LockstepLanes,
        walking: NDArray[np.bool_],
        rule: TargetRule,
        longest: int,
        known: NDArray[Any],
        alone: bool,
    ) -> None:
        """Prepare for episodes of at most `longest` steps; targets go to `known`, NaN for lanes not `walking`.

        With `alone`, every episode is evaluated by itself: rounding is then what it is in a run alone on a CPU.
        """
        count, batch = lanes.row.shape
        self._lanes, self._walking, self._rule, self._known, self._alone = lanes, walking, rule, known, alone
        self.walk = np.zeros((count, WALK_COLUMNS), np.int64)
        self.rows = np.zeros((count, longest), np.int64)
        self.targets = np.zeros((count, longest), np.float64)
        self.left_out = np.zeros((count, longest), np.bool_)
        # A batch can begin as many episodes as it has rows.
        self._steps = np.zeros((count, batch * longest), np.int64)
        self._next_places = np.zeros_like(self._steps)
        self._lengths = np.zeros((count, batch), np.int64)
        self._found = np.zeros(count, np.int64)

    def work_out(self, networks: Networks) -> None:
        """Fill `known` for the batches that were drawn last."""
        lanes, rule = self._lanes, self._rule
        walked = (lanes.sources() == rule.backward_source) & self._walking[:, None]
        self._lengths[:] = 0
        kernels.find_episodes(
            lanes.ints,
            lanes.store_table,
            lanes.row,
            walked,
            self.walk,
            self.rows,
            self._steps,
            self._next_places,
            self._lengths,
            self._found,
        )
        places, target, online = self._evaluate(networks)
        kernels.walk_through(
            lanes.ints,
            lanes.floats,
            lanes.store_table,
            lanes.row,
            walked,
            rule.double,
            rule.diffusion,
            rule.skipped_steps,
            self._steps,
            self._lengths,
            places,
            target,
            online,
            self.walk,
            self.rows,
            self.targets,
            self.left_out,
            self._known,
            lanes.buffers.weight,
        )

    def _evaluate(self, networks: Networks) -> tuple[NDArray[np.int64], NDArray[np.floating], NDArray[np.floating]]:
        """Return for each lane its row in the values, and the values (n, steps, actions) of both networks."""
        beginning = np.flatnonzero(self._found)
        places = np.zeros(len(self._found), np.int64)
        places[beginning] = np.arange(len(beginning))
        if not len(beginning):
            nothing = np.zeros((1, 0, 1), self._known.dtype)
            return places, nothing, nothing
        totals = self._lengths[beginning].sum(axis=1)
        if self._alone:
            return places, self._one_by_one(networks, beginning, True), self._one_by_one(networks, beginning, False)
        width = int(totals.max())
        wanted = self._next_places[beginning, :width].copy()
        wanted[np.arange(width) >= totals[:, None]] = wanted[0, 0]  # rows that nobody looks at
        if self._rule.double:
            return places, *networks.both_values(beginning, wanted)
        target = networks.values(beginning, wanted, target=True)
        return places, target, target

    def _one_by_one(self, networks: Networks, beginning: NDArray[np.int64], target: bool) -> NDArray[np.floating]:
        parts: list[list[NDArray[np.floating]]] = []
        for lane in beginning.tolist():
            start, parts_of_lane = 0, []
            for length in self._lengths[lane, : self._found[lane]].tolist():
                wanted = self._next_places[lane : lane + 1, start : start + length].copy()
                parts_of_lane.append(networks.values(np.array([lane]), wanted, target=target)[0])
                start += length
            parts.append(parts_of_lane)
        joined = [np.concatenate(part) for part in parts]
        result = np.zeros((len(joined), max(map(len, joined)), joined[0].shape[1]), joined[0].dtype)
        for place, lane_values in enumerate(joined):
            result[place, : len(lane_values)] = lane_values
        return result

    def borrow(self, lane: int, rows: NDArray[np.int64], targets: NDArray[Any], left_out: NDArray[np.bool_]) -> None:
        """Take over the rest of a lane's walk."""
        count = len(rows)
        self.walk[lane, PLACE], self.walk[lane, COUNT] = 0, count
        self.rows[lane, :count], self.targets[lane, :count], self.left_out[lane, :count] = rows, targets, left_out

    def rest(self, lane: int) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.bool_]]:
        """Return the rest of a lane's walk: rows, targets, and which are left out."""
        part = slice(self.walk[lane, PLACE], self.walk[lane, COUNT])
        return self.rows[lane, part].copy(), self.targets[lane, part].copy(), self.left_out[lane, part].copy()
