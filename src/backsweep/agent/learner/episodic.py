"""EBU's targets: they are computed once per episode, when the walk back through it begins.

sampler:   rows of episode 7, newest first ...........| rows of episode 3 ....
batches:   [............][............][.......         ....][...........]
targets:   all of episode 7's at its first row          all of episode 3's at its first row
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from backsweep.agent.learner.rules import TargetRule
from backsweep.agent.learner.targets import backward_targets, discounts
from backsweep.replay import Replay
from backsweep.types import Batch


class Values(Protocol):
    """Gives one lane's values (rows, actions) for observations, of its online or its target network."""

    def __call__(self, observations: Any, *, target: bool) -> NDArray[np.floating]:
        """Return the values."""
        ...


class BackwardTargets:
    """The targets of the episode that one lane's sampler is walking through."""

    def __init__(self, rule: TargetRule, replay: Replay, bootstrap_at_timeout: bool = True) -> None:
        self.rule = rule
        self._replay = replay
        self._bootstrap_at_timeout = bootstrap_at_timeout
        # Rows that the walk has not reached yet, newest first, and their targets.
        self.rows = np.empty(0, np.int64)
        self.targets = np.empty(0, np.float64)
        self.left_out = np.empty(0, np.bool_)

    def of(self, batch: Batch, values: Values) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Return the target of each row of a batch, NaN for rows outside of a walk, and which rows are skipped.

        Rows of another part of a mixture, or of the sampler's fallback, are not part of a walk. The first
        `skipped_steps` steps of an episode are skipped.
        """
        known, left_out = np.full(len(batch), np.nan), np.zeros(len(batch), np.bool_)
        place = 0
        while place < len(batch):
            if batch.source[place] != self.rule.backward_source:
                place += 1
                continue
            if not len(self.rows) or self.rows[0] != batch.row[place]:
                self._begin(int(batch.row[place]), values)
                if not len(self.rows):
                    place += 1
                    continue
            run = min(len(self.rows), len(batch) - place)
            part = slice(place, place + run)
            # A row of another part of a mixture is not the walk's, even if it is the next one.
            same = (self.rows[:run] == batch.row[part]) & (batch.source[part] == self.rule.backward_source)
            run = run if same.all() else int(same.argmin())
            known[place : place + run] = self.targets[:run]
            left_out[place : place + run] = self.left_out[:run]
            self.rows, self.targets, self.left_out = self.rows[run:], self.targets[run:], self.left_out[run:]
            place += run
        return known, left_out

    def _begin(self, row: int, values: Values) -> None:
        episode = self._replay.episode(row)
        if episode[-1] != row:
            self.rows, self.targets, self.left_out = self.rows[:0], self.targets[:0], self.left_out[:0]
            return
        steps = self._replay.read(episode)
        targets = backward_targets(
            steps.action,
            steps.reward,
            discounts(steps, self._replay, self._bootstrap_at_timeout),
            values(steps.next_observation, target=True),
            values(steps.next_observation, target=False) if self.rule.double else None,
            self.rule.diffusion,
        )
        self.rows, self.targets = episode[::-1].copy(), targets[::-1].copy()
        self.left_out = np.arange(len(episode))[::-1] < self.rule.skipped_steps

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the state that the next batch depends on."""
        return {"rows": self.rows, "targets": self.targets, "left_out": self.left_out}

    def load_state(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Resume in the middle of an episode."""
        self.rows, self.targets = arrays["rows"].copy(), arrays["targets"].copy()
        self.left_out = arrays["left_out"].copy()
