"""The training loop, for runs of any kind.

Terms:
  step         one transition of one environment. Every run takes as many as it has environments per turn of the loop.
  update       one batch of transitions per run, and one step of the optimiser on it.
  turn         one iteration of the loop: act, store, learn.
  source       where experience comes from: plain environments (`plain_source.py`) or compiled tasks (`engine.py`). It
               holds runs that take their turns together. A run depends only on its own configuration and seed, never
               on the other runs of its source.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from fractions import Fraction
from time import perf_counter
from typing import Protocol

from backsweep.agent.config import RunConfig

ACTIVITIES = ("environment", "replay", "stepping", "values", "network", "evaluation", "checkpoint", "other")


class Clock:
    """Adds up seconds by activity. Each `lap` adds the time since the last one to an activity."""

    def __init__(self) -> None:
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._last = perf_counter()

    def lap(self, activity: str) -> None:
        """Add the time since the last lap to `activity`."""
        now = perf_counter()
        self._seconds[activity] += now - self._last
        self._last = now

    def take(self) -> dict[str, float]:
        """Return the seconds of every activity since the last call."""
        taken = {activity: round(self._seconds[activity], 6) for activity in ACTIVITIES if activity in self._seconds}
        self._seconds.clear()
        return taken


class Schedule:
    """The schedule that all runs of a fleet share, by the number of environment steps of one run."""

    def __init__(self, config: RunConfig) -> None:
        self.steps_per_turn = config.num_envs
        self.random_steps = config.warmup_steps if config.random_warmup else 0
        """The number of first steps in which all actions are random and nothing is learned."""
        self._warmup_steps, self._target_interval = config.warmup_steps, config.target_interval
        self._ratio = Fraction(config.ratio).limit_denominator(10**9)

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


class Source(Protocol):
    """Runs that take their turns together. Every method adds its time to the clock."""

    clock: Clock
    schedule: Schedule
    waits: bool
    """Whether results of the networks are pending."""

    @property
    def step(self) -> int:
        """The number of steps of each run so far."""

    @property
    def updates(self) -> int:
        """The number of updates so far."""

    def wait(self) -> None:
        """Wait for the pending results of the networks."""

    def act_at_random(self, last: int) -> bool:
        """Take all steps up to `last` that need no network at once; return whether there were any."""

    def act(self) -> None:
        """Request the best actions from the networks, unless all actions are random."""

    def move(self, learns: bool) -> None:
        """Execute the actions and store the transitions; `learns` tells whether an update follows."""

    def prepare_to_learn(self) -> None:
        """Prepare the first update of a turn: reward scales and graph values."""

    def draw(self, first: bool) -> None:
        """Draw a batch for every run, and request the targets that are computed before the update."""

    def update(self) -> None:
        """Learn from the batches."""

    def copy_target(self) -> None:
        """Copy the target networks; graph values that depend on them are due."""

    def settle(self) -> None:
        """Finish pending work, so that the runs can be inspected."""


def turns(source: Source, last: int) -> Iterator[None]:
    """Run to step `last`; yields while results of networks are pending, so that other sources can run."""
    schedule = source.schedule
    while source.step < last:
        if source.act_at_random(last):
            continue

        # Act: random actions by each run's schedule, else the best by its network.
        source.act()
        yield from _answers(source)

        # Store: the transitions go to each run's own replay.
        due = schedule.updates_due(source.step + schedule.steps_per_turn, source.updates)
        source.move(due > 0)

        # Learn: as many updates as the ratio requires, each on one batch per run.
        for update in range(due):
            yield from _answers(source)
            if not update:
                source.prepare_to_learn()
            source.draw(first=not update)
            yield from _answers(source)
            source.update()

        # The target network is copied at intervals.
        if schedule.copies_target(source.step):
            source.copy_target()
    yield from _answers(source)
    source.settle()


def _answers(source: Source) -> Iterator[None]:
    if source.waits:
        yield
        source.wait()
