"""Random actions: the schedule, and one generator per run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from backsweep.jit.random_streams import named_generator


@dataclass(frozen=True, kw_only=True)
class EpsilonSchedule:
    """The probability of a random action at a step: 1 during a random warm-up, then a line from `start` to `end`.

    The line begins at step 0, as in the paper: the warm-up covers its first part. For runs that wait for their first
    reward it begins there.
    """

    start: float = 1.0
    """Epsilon where the line begins."""
    end: float = 0.01
    """Epsilon where it ends."""
    steps: int = 1_000_000
    """Steps over which epsilon falls from `start` to `end`."""
    random_steps: int = 50_000
    """Steps of random warm-up."""

    def __call__(self, step: int, begins: int | None = 0) -> float:
        """Return the probability at environment step `step`, counted from 0, of a line that begins at step `begins`.

        None is a line that has not begun.
        """
        if step < self.random_steps:
            return 1.0
        if begins is None:
            return self.start
        passed = step - begins
        if passed >= self.steps:
            return self.end
        return self.start + (self.end - self.start) * (passed / self.steps)


class Explorer:
    """Decides for each environment of one run, with the run's own generator, whether to act at random.

    The generator draws the same number of values at every step, whatever they are, so a run's stream depends only on
    the number of steps.
    """

    def __init__(self, seed: int, num_envs: int) -> None:
        self.generator = named_generator(seed, "exploration")
        self._num_envs = num_envs

    def draw(self, epsilon: float) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
        """Return which environments act at random, and a number in [0, 1) for each to choose its action by."""
        units = self.generator.random(2 * self._num_envs)
        return units[: self._num_envs] < epsilon, units[self._num_envs :]
