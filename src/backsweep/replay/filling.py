"""Adding transitions to a replay."""

from __future__ import annotations

from collections.abc import Sequence
from sys import getrefcount
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from backsweep.checks import is_int
from backsweep.encoding.random_projection import warn_of_range
from backsweep.jit.compilation import entry_point
from backsweep.jit.interrupts import uninterrupted
from backsweep.jit.random_streams import generator_state, restore_generator
from backsweep.replay.argument_checks import checked_lanes
from backsweep.replay.autoreset import stage_transitions
from backsweep.replay.components import BUILT_IN_ENCODERS, ReplayComponents
from backsweep.store.argument_form_kernels import SOME_ENDED
from backsweep.store.ingest_kernels import ADDED, ADDED_AS_USUAL, OUT_OF_RANGE, add_arguments, add_staged
from backsweep.store.ring_kernels import CLEARED, TOTAL
from backsweep.store.staging import Arguments
from backsweep.types import Rows


class Filling(ReplayComponents):
    """The half of `Replay` that adds transitions."""

    def add(
        self,
        observation: Any,
        action: ArrayLike,
        reward: ArrayLike,
        next_observation: Any,
        terminated: ArrayLike,
        truncated: ArrayLike,
        *,
        final_observation: Sequence[Any] | None = None,
        mask: ArrayLike | None = None,
        lanes: ArrayLike | None = None,
        successor_unknown: ArrayLike | None = None,
    ) -> Rows:
        """Add one transition per lane and return their row numbers, -1 for lanes that added nothing.

        Parameters
        ----------
        observation, action, reward, next_observation, terminated, truncated
            The arguments and results of `step`; arrays with a leading axis of lanes if ``num_envs > 1``. Only
            termination stops bootstrapping and makes a root of the graph; truncation only ends the episode.
        final_observation
            For vector environments in same-step autoreset mode, which return the next episode's first observation:
            ``infos.get("final_obs")``. The entry of a lane that has ended is its true successor.
        mask
            Lanes with False add nothing, although their environments have taken this step: in next-step mode it may be
            the call that resets one, which then is over. For environments that took no step use `lanes`.
        lanes
            Lane numbers, if the arrays do not hold all lanes in order. All the other
            arguments then have one entry for each of these lanes.
        successor_unknown
            Lanes with True ended in a state that was never observed; their `next_observation` is ignored. Terminations
            are stored, with a separate state in the graph. Truncations are skipped, because there is no state to
            bootstrap from, and counted in `stats`.
        """
        with self._lock:
            done: int | None = None
            table = self._add_table
            if (
                table is not None
                and final_observation is None
                and mask is None
                and lanes is None
                and successor_unknown is None
                and not (self._autoreset.some_ended or self._staging.hides_successors)
            ):
                first = self._counters[TOTAL]
                if getrefcount(self._rows) != self._references_unheld:  # a new one takes longer
                    self._rows = np.empty(self._num_envs, np.int64)
                rows = self._rows
                given = (observation, action, reward, next_observation, terminated, truncated, rows)
                try:
                    done = (self._add_kernel or self._compile_add)(id(given), table)
                    if done >= ADDED:
                        for added in self._listeners:  # as `_notify` does, without a call
                            added(first, first + self._num_envs)
                        if done != ADDED_AS_USUAL:
                            if done & SOME_ENDED:
                                self._autoreset.note_ends(self._store, None)
                            if done & OUT_OF_RANGE:
                                warn_of_range()
                        return rows
                except BaseException:
                    self._catch_up(first, None)
                    raise
            arguments = (observation, action, reward, next_observation, terminated, truncated)
            return self._add_step_by_step(arguments, final_observation, mask, lanes, successor_unknown, done)

    def _compile_add(self, arguments: int, table: int) -> int:
        """Call `add_arguments` for the first time in this process, which compiles or loads it."""
        done = add_arguments(arguments, table)
        self._add_kernel = entry_point(add_arguments, 2)
        return done

    def _add_step_by_step(
        self,
        arguments: Arguments,
        final_observation: Sequence[Any] | None,
        mask: ArrayLike | None,
        lanes: ArrayLike | None,
        successor_unknown: ArrayLike | None,
        done: int | None,
    ) -> Rows:
        """Add what is not in the usual form, or comes with more than a step; `done` says what is staged already."""
        store, staging = self._store, self._staging
        chosen = None if lanes is None else checked_lanes(lanes, self._num_envs)
        some_end, skipped = stage_transitions(
            store, self._autoreset, arguments, final_observation, mask, chosen, successor_unknown, done
        )
        left_out, first = self._left_out + skipped, store.total
        try:
            self._add_staged()
            self._left_out = left_out
            self._notify(first, store.total, some_end, chosen)
        except BaseException:
            if store.total != first:
                self._left_out = left_out
            self._catch_up(first, chosen)
            raise
        return staging.numbers.copy() if chosen is None else staging.numbers[chosen]

    def _notify(self, first: int, last: int, some_end: bool, lanes: NDArray[np.int64] | None) -> None:
        """Notify the listeners of the store's new rows first..last-1. Repeating it is harmless."""
        for added in self._listeners:
            added(first, last)
        if some_end or self._autoreset.some_ended:
            self._autoreset.note_ends(self._store, lanes)

    def _catch_up(self, first: int, lanes: NDArray[np.int64] | None) -> None:
        """Notify the listeners after an interrupt: Ctrl-C can come between any two steps."""
        last = self._store.total
        if last != first:
            with uninterrupted():
                self._notify(first, last, True, lanes)

    def _add_staged(self) -> None:
        """Add the staged transitions to both store and graph, or to neither."""
        store = self._store
        if store.in_file:
            store.make_room()
        if self._tables is not None and not store.staging.hides_successors:
            if add_staged(*self._tables) < 0:
                warn_of_range()
            return
        # A user's encoder may fail, and must do so before anything has changed.
        foreign = self._graph is not None and not isinstance(self._encoder_config, BUILT_IN_ENCODERS)
        keys = self._graph.keys_of_staged() if foreign and self._graph is not None else None
        if self._graph is None:
            store.add()
            return
        first = store.total
        with uninterrupted():
            self._graph.follow(first, store.add(), keys)

    def extend(
        self,
        observation: Any,
        action: ArrayLike,
        reward: ArrayLike,
        terminated: ArrayLike = False,
        truncated: ArrayLike = False,
        *,
        lane: int = 0,
    ) -> Rows:
        """Add a trajectory, or a piece of one, to a lane and return its row numbers.

        Parameters
        ----------
        observation
            One more than there are actions: the last is the successor of the last step.
        action, reward
            One for each step.
        terminated, truncated
            How the last step ended: a bool, or one for each step, of which only the last may be True.
        lane
            The lane to add to. If the trajectory does not continue the lane's episode, a new episode begins.
        """
        if not is_int(lane) or not 0 <= lane < self._num_envs:
            raise ValueError(f"lane must be an int from 0 to {self._num_envs - 1}, got {lane!r}")
        with self._lock:
            staging, first = self._store.staging, self._store.total
            trajectory = staging.trajectory(observation, action, reward, terminated, truncated)
            for step in range(len(trajectory)):
                staging.stage_step(lane, trajectory, step)
                try:
                    self._add_staged()
                    self._sampler.added(first + step, first + step + 1)
                except BaseException:
                    if self._store.total > first + step:
                        with uninterrupted():
                            self._sampler.added(first + step, first + step + 1)
                    raise
            self._autoreset.note_trajectory(lane)
            return np.arange(first, first + len(trajectory))

    def clear(self) -> None:
        """Remove all transitions and the sampler's state; row numbers and random streams continue."""
        with self._lock, uninterrupted():
            total, generator, before = self._store.total, self._sampler.generator, self.__dict__.copy()
            drawn = generator_state(generator)
            try:
                self._make_components(self._autoreset.mode, generator)
                self._store.counters[[TOTAL, CLEARED]] = total
            except BaseException:  # no room for another file, say
                self.__dict__.update(before)
                restore_generator(generator, drawn)
                raise
