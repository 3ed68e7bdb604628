"""EBU's walk in plain Python, one row after another."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from backsweep import Replay
from backsweep.agent.learner.rules import TargetRule
from backsweep.agent.learner.targets import discounts
from backsweep.types import Batch


def backward_targets(
    action: NDArray[np.int64],
    reward: NDArray[np.floating],
    discount: NDArray[np.floating],
    next_target: NDArray[np.floating],
    next_online: NDArray[np.floating] | None,
    diffusion: float,
) -> NDArray[np.float64]:
    """Return the targets of an episode by EBU's temporary table.

    The table begins as the target network's values of every step's next state. The walk goes from the last step to the
    first: y = reward + discount * table[step, best action]; then the entry of the step before, whose next state is this
    step's state, moves at the action taken here to diffusion * y + (1 - diffusion) * what it was.

    Parameters
    ----------
    action, reward, discount
        (T,), in time order.
    next_target, next_online
        (T, A): values of the next states. With `next_online` the best action is the online network's (double
        selection); None takes the table's own maximum.
    diffusion
        EBU's beta, in 0..1.
    """
    table: list[list[float]] = np.asarray(next_target, np.float64).tolist()
    chosen = None if next_online is None else np.asarray(next_online).argmax(axis=1).tolist()
    actions, rewards, discounts = (np.asarray(column).tolist() for column in (action, reward, discount))
    targets = np.empty(len(table))
    for step in range(len(table) - 1, -1, -1):
        best = max(table[step]) if chosen is None else table[step][chosen[step]]
        target = rewards[step] + discounts[step] * best
        targets[step] = target
        if step:
            before = table[step - 1]
            before[actions[step]] = diffusion * target + (1.0 - diffusion) * before[actions[step]]
    return targets


class BackwardTargetsTwin:
    """Computes what `BackwardTargets` does."""

    def __init__(self, rule: TargetRule, replay: Replay, bootstrap_at_timeout: bool = True) -> None:
        self.rule, self.replay, self.bootstrap_at_timeout = rule, replay, bootstrap_at_timeout
        self.rest: list[tuple[int, float, bool]] = []

    def of(self, batch: Batch, values: Any) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Return the target of each row, NaN outside of a walk, and which rows are skipped."""
        known, skipped = np.full(len(batch), np.nan), np.zeros(len(batch), np.bool_)
        for place, (row, source) in enumerate(zip(batch.row.tolist(), batch.source.tolist(), strict=True)):
            if source != 0:
                continue
            if not self.rest or self.rest[0][0] != row:
                self.begin(row, values)
            if self.rest:
                _, known[place], skipped[place] = self.rest.pop(0)
        return known, skipped

    def begin(self, row: int, values: Any) -> None:
        """Begin the walk through a row's episode, if the row is its last."""
        episode = self.replay.episode(row)
        self.rest = []
        if episode[-1] != row:
            return
        steps = self.replay.read(episode)
        targets = backward_targets(
            steps.action,
            steps.reward,
            discounts(steps, self.replay, self.bootstrap_at_timeout),
            values(steps.next_observation, target=True),
            values(steps.next_observation, target=False) if self.rule.double else None,
            self.rule.diffusion,
        )
        for step in range(len(episode) - 1, -1, -1):
            self.rest.append((int(episode[step]), float(targets[step]), step < self.rule.skipped_steps))
