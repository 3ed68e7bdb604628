"""EBU's targets: they are computed once per episode, when the walk back through it begins.

sampler:   rows of episode 7, newest first ...........| rows of episode 3 ....
batches:   [............][............][.......         ....][...........]
targets:   all of episode 7's at its first row          all of episode 3's at its first row
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from backsweep.agent.learner import backward_targets_kernels
from backsweep.agent.learner.backward_targets_kernels import COUNT, PLACE, POSITIONS, Backward, Walk
from backsweep.agent.learner.rules import TargetRule
from backsweep.jit.array_table import addresses_of
from backsweep.replay import Replay
from backsweep.snapshot.contents import need_finite, need_like
from backsweep.store.ring_kernels import RING
from backsweep.types import Batch


class Values(Protocol):
    """Gives one run's values (rows, actions) for observations, of its online or its target network."""

    def __call__(self, observations: Any, *, target: bool) -> NDArray[np.floating]:
        """Return the values."""


class BackwardTargets:
    """The targets of the episode that one run's sampler is walking through."""

    def __init__(self, rule: TargetRule, replay: Replay, bootstrap_at_timeout: bool = True) -> None:
        if not 0.0 <= rule.diffusion <= 1.0:
            raise ValueError(f"rule.diffusion must be in 0..1, got {rule.diffusion}")
        self.rule = rule
        self._replay = replay
        self._bootstrap_at_timeout = bootstrap_at_timeout
        self._walk = new_walk(0, 0, 0)
        self._addresses = addresses_of(self._walk)

    def of(self, batch: Batch, values: Values) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Return the target of each row of a batch, NaN for rows outside of a walk, and which rows are skipped.

        Rows of another part of a mixture, or of the sampler's fallback, are not part of a walk. The first
        `skipped_steps` steps of an episode are skipped.
        """
        rule, replay, machinery = self.rule, self._replay, self._replay.machinery
        ring = machinery.store.table[RING]
        if len(batch) != len(self._walk.batch):
            self._make_room(len(batch), len(self._walk.steps))
        while (found := self._find(batch, ring)) < 0:
            self._make_room(len(batch), -2 * found)
        target = online = np.zeros((0, 1))
        if found:
            ends = self._walk.lengths[:found].cumsum()
            episodes = np.split(self._walk.steps[: ends[-1]], ends[:-1])
            following = [replay.read(episode).next_observation for episode in episodes]
            target = np.concatenate([values(each, target=True) for each in following]).astype(np.float64)
            if rule.double:
                online = np.concatenate([values(each, target=False) for each in following]).astype(np.float64)
        known = np.empty(len(batch))
        settings = rule_settings(rule, machinery.gamma, self._bootstrap_at_timeout)
        backward_targets_kernels.walk_through(ring, self._addresses, settings, target, online, known)
        return known, self._walk.skipped.copy()

    def _find(self, batch: Batch, ring: NDArray[np.int64]) -> int:
        self._walk.batch[:] = batch.row
        self._walk.walked[:] = batch.source == 0
        return int(backward_targets_kernels.find_episodes(ring, self._addresses))

    def _make_room(self, batch: int, steps: int) -> None:
        rest = self.rest()
        room = max(steps, len(rest[0]))
        self._walk = new_walk(batch, room, room)
        self._addresses = addresses_of(self._walk)
        set_rest(self._walk, *rest)

    def rest(self) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.bool_]]:
        """Return the rest of the walk: rows, newest first, their targets, and which are skipped."""
        return rest_of(self._walk)

    def set_rest(self, rows: NDArray[np.int64], targets: NDArray[np.float64], left_out: NDArray[np.bool_]) -> None:
        """Resume in the middle of an episode."""
        self._walk = new_walk(0, len(rows), 0)
        self._addresses = addresses_of(self._walk)
        set_rest(self._walk, rows, targets, left_out)

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the state that the next batch depends on."""
        return dict(zip(("rows", "targets", "left_out"), self.rest(), strict=True))

    def load_state(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Restore what `state` returned; raise a ValueError if it is no walk."""
        empty = new_walk(0, len(arrays["rows"]), 0)
        for name in ("rows", "targets", "left_out"):
            need_like(arrays, name, getattr(empty, name))
        need_finite(arrays["targets"], "targets of a walk")
        self.set_rest(arrays["rows"], arrays["targets"], arrays["left_out"])


def rule_settings(rule: TargetRule, gamma: float = 0.0, bootstrap_at_timeout: bool = True) -> Backward:
    """Return a rule as the kernels take it."""
    return Backward(float(gamma), bool(bootstrap_at_timeout), rule.double, float(rule.diffusion), rule.skipped_steps)


def new_walk(batch: int, longest: int, steps: int) -> Walk:
    """Return a walk that has not begun, for batches of a size and episodes of a length at most.

    `steps` is the room for the steps of all episodes that a batch begins.
    """
    return Walk(
        position=np.zeros(POSITIONS, np.int64),
        rows=np.zeros(longest, np.int64),
        targets=np.zeros(longest, np.float64),
        left_out=np.zeros(longest, np.bool_),
        batch=np.zeros(batch, np.int64),
        walked=np.zeros(batch, np.bool_),
        skipped=np.zeros(batch, np.bool_),
        steps=np.zeros(steps, np.int64),
        lengths=np.zeros(batch, np.int64),
    )


def rest_of(walk: Walk) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.bool_]]:
    """Return the rest of a walk: rows, newest first, their targets, and which are skipped."""
    rest = slice(walk.position[PLACE], walk.position[COUNT])
    return walk.rows[rest].copy(), walk.targets[rest].copy(), walk.left_out[rest].copy()


def set_rest(walk: Walk, rows: NDArray[Any], targets: NDArray[Any], left_out: NDArray[Any]) -> None:
    """Let a walk continue with these rows."""
    count = len(rows)
    walk.position[PLACE], walk.position[COUNT] = 0, count
    walk.rows[:count], walk.targets[:count], walk.left_out[:count] = rows, targets, left_out
