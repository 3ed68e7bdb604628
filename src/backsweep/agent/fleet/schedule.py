"""When runs learn, and when their target networks are copied."""

from __future__ import annotations

from fractions import Fraction

from backsweep.agent.config import RunConfig


class Schedule:
    """The schedule that all runs of a fleet share, by the number of environment steps of one run."""

    def __init__(self, config: RunConfig) -> None:
        self.steps_per_turn = config.num_envs
        self.random_steps = config.warmup_steps if config.random_warmup else 0
        """The number of first steps in which all actions are random and nothing is learned."""
        self._warmup_steps, self._target_interval = config.warmup_steps, config.target_interval
        self._ratio = Fraction(config.ratio).limit_denominator(10_000)

    def updates_due(self, step: int, done: int) -> int:
        """Return the number of updates that are due after `done` updates, at `ratio` per step since the warm-up."""
        learning = step - self._warmup_steps
        if learning <= 0:
            return 0
        return learning * self._ratio.numerator // self._ratio.denominator - done

    def copies_target(self, step: int) -> bool:
        """Return whether the target networks are copied at a step."""
        return self.passes(step, self._target_interval)

    def passes(self, step: int, interval: int) -> bool:
        """Return whether the last turn, which ended at `step`, reached a multiple of `interval`."""
        return step // interval > (step - self.steps_per_turn) // interval
