"""Reading batches from a replay, and updating priorities."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from backsweep.replay.argument_checks import (
    LARGEST_INT,
    checked_errors,
    checked_gamma,
    checked_rows,
    checked_steps,
    positive_int,
    refuse_update,
)
from backsweep.replay.components import ReplayComponents
from backsweep.samplers.episodic_backward_kernels import episode_rows
from backsweep.store import reading_kernels
from backsweep.store.ring_kernels import EPISODE, FLAGS, LENGTH, LIVE, NEXT, RING, TOTAL, TRUNCATED
from backsweep.store.stretches_kernels import stretch_range
from backsweep.types import Batch, Picks, Rows


class Reading(ReplayComponents):
    """The half of `Replay` that returns batches."""

    def sample(self, batch_size: int) -> Batch:
        """Return a batch of rows that the sampler chose.

        The arrays belong to you as long as you hold the batch or anything made of it.
        """
        batch_size = self._checked_size("batch_size", batch_size)
        with self._lock:
            self._refuse_if_empty()
            picks = self._sampler.pick(batch_size)
            return self._read(picks.row, picks.weight, picks.source, self._n_step, self._gamma)

    def pick(self, count: int) -> Picks:
        """Choose rows as `sample` does without reading them, for data stored elsewhere."""
        count = self._checked_size("count", count)
        with self._lock:
            self._refuse_if_empty()
            picks = self._sampler.pick(count)
            ones, zeros, _ = self._shared_constants(count)
            return Picks(
                picks.row,
                ones if picks.weight is None else picks.weight,
                zeros if picks.source is None else picks.source,
            )

    def _checked_size(self, name: str, size: int) -> int:
        size = positive_int(name, size)
        if size > self._capacity:
            raise ValueError(f"{name} must be at most the capacity of {self._capacity}, got {size}")
        return size

    def _refuse_if_empty(self) -> None:
        if not self._counters[LIVE]:
            raise ValueError("cannot sample from an empty replay: add transitions first")

    def read(self, row: ArrayLike, *, n_step: int | None = None, gamma: float | None = None) -> Batch:
        """Return the given live rows as a batch, in that order, with weights of 1.

        `n_step` and `gamma` default to those of the replay.
        """
        rows = checked_rows(row)
        steps = self._n_step if n_step is None else positive_int("n_step", n_step, LARGEST_INT)
        discount = self._gamma if gamma is None else checked_gamma(gamma)
        with self._lock:
            live = self._store.are_live(rows)
            if not live.all():
                raise ValueError(
                    f"row must hold live serial numbers, {self._store.oldest} to {self._store.total - 1}, "
                    f"got {rows[~live][0]}"
                )
            return self._read(rows.copy(), None, None, steps, discount)

    def _read(
        self,
        row: Rows,
        weight: NDArray[np.float32] | None,
        source: NDArray[np.int64] | None,
        n_step: int,
        gamma: float,
    ) -> Batch:
        planner, target = self._planner, None
        if planner is None:
            out = self._store.read(row, n_step, gamma)
        elif n_step == 1:
            out = planner.read(row, gamma)
            target = out.target
        else:
            out = self._store.read(row, n_step, gamma)
            target = planner.targets(row)
        ones, zeros, single_steps = self._shared_constants(len(row))
        return Batch(
            out.observation,
            out.action,
            out.reward,
            out.next_observation,
            out.terminated,
            out.discount,
            ones if weight is None else weight,
            row,
            zeros if source is None else source,
            single_steps if n_step == 1 else self._store.folded_steps(row, n_step),
            target,
        )

    def _shared_constants(self, size: int) -> tuple[NDArray[np.float32], NDArray[np.int64], NDArray[np.int64]]:
        constants = self._constants.get(size)
        if constants is None:
            constants = np.ones(size, np.float32), np.zeros(size, np.int64), np.ones(size, np.int64)
            for array in constants:
                array.flags.writeable = False
            self._constants = {size: constants}
        return constants

    def episode(self, row: int) -> Rows:
        """Return the live rows of the episode that `row` belongs to, in time order."""
        checked = int(checked_rows([row])[0])
        with self._lock:
            store = self._store
            if not store.oldest <= checked < store.total:
                raise ValueError(f"row must be live, {store.oldest} to {store.total - 1}, got {checked}")
            episode = store.rows[checked % self._capacity, EPISODE]
            out = np.empty(store.episodes[episode, LENGTH], np.int64)
            episode_rows(checked, store.table[RING], out)
            return out

    def truncated(self, row: ArrayLike, steps: ArrayLike = 1) -> NDArray[np.bool_]:
        """Return for each of the given live rows whether its episode was truncated there.

        With ``batch.steps`` as `steps`: whether it was at the last of the steps that are folded into the row, or of
        those that there are.
        """
        rows = checked_rows(row)
        ahead = checked_steps(steps, rows) - 1
        with self._lock:
            if not self._store.are_live(rows).all():
                raise ValueError(
                    f"row must hold live serial numbers, {self._store.oldest} to {self._store.total - 1}, got {rows}"
                )
            table, last = self._store.rows, rows % self._capacity
            for step in range(min(int(ahead.max(initial=0)), len(self._store))):
                following = table[last, NEXT]
                goes_on = (step < ahead) & (following >= 0)
                if not goes_on.any():
                    break
                last = np.where(goes_on, following, last)
            cut: NDArray[np.bool_] = (table[last, FLAGS] & TRUNCATED) != 0
            return cut

    def return_range(self) -> tuple[float, float]:
        """Return the smallest and the largest reward sum over any part of a stored episode; 0 is always included."""
        with self._lock:
            store = self._store
            low, high = stretch_range(store.oldest, store.total, store.rows, store.values)
            return float(low), float(high)

    def update_priorities(
        self, row: ArrayLike, td_error: ArrayLike | None = None, *, priority: ArrayLike | None = None
    ) -> None:
        """Pass the TD errors of sampled rows to the sampler.

        Overwritten rows are skipped and counted in `stats`. Samplers without priorities ignore the errors.

        Parameters
        ----------
        row
            ``batch.row``.
        td_error
            Signed or absolute TD errors, one for each row.
        priority
            Instead of `td_error`: a value of 0 or more that replaces the absolute TD error.
        """
        if (td_error is None) == (priority is None):
            raise TypeError("update_priorities takes either td_error or priority")
        name, values = ("td_error", td_error) if priority is None else ("priority", priority)
        rows = checked_rows(row)
        assert values is not None
        errors = checked_errors(values, rows, name)
        with self._lock:
            total = self._counters[TOTAL]
            oldest = total - self._counters[LIVE]
            late = reading_kernels.check_updates(rows, errors, oldest, total, priority is not None)
            if late < 0:
                refuse_update(rows, errors, name, total, plans=self._planner is not None)
            if late > 0:
                self._stale_updates += late
                live = self._store.are_live(rows)
                rows, errors = rows[live], errors[live]
            if self._sampler.uses_priorities:
                self._sampler.update(rows, errors)
