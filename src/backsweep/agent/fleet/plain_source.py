"""Plain environments as a source of the loop: runs step one after another, and every call is synchronous."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from backsweep.agent.fleet.fleet import Fleet
from backsweep.agent.fleet.loop import Clock, turns
from backsweep.agent.fleet.run import Run
from backsweep.types import Batch

Failed = Callable[[Run, Exception], None]


class PlainSource:
    """A fleet whose runs use only their own objects."""

    waits = False

    def __init__(self, fleet: Fleet, clock: Clock, failed: Failed) -> None:
        self.clock, self.schedule = clock, fleet.schedule
        self._fleet, self._failed = fleet, failed
        self._actions: list[NDArray[np.int64]] = []
        self._batches: list[Batch] = []

    @property
    def step(self) -> int:
        """How many steps each run has taken."""
        return self._fleet.step

    @property
    def updates(self) -> int:
        """How many updates there have been."""
        return self._fleet.learner.updates

    def wait(self) -> None:
        """Everything is there already."""

    def act_at_random(self, last: int) -> bool:
        """Return False: random actions are taken turn by turn as well."""
        return False

    def act(self) -> None:
        """Choose every run's actions."""
        self._actions = self._fleet.choose_actions()
        self.clock.lap("network")

    def move(self, learns: bool) -> None:
        """Step every run's environments; the transitions go to its own replay."""
        for index, run in reversed(list(enumerate(self._fleet.runs))):
            try:
                run.step(self._actions[index], self.clock)
            except Exception as error:
                retire(self._fleet, index, error, self._failed)
        self._fleet.step += self.schedule.steps_per_turn

    def prepare_to_learn(self) -> None:
        """Set reward scales, and renew graph values if they are due."""
        self._fleet.prepare_to_learn()
        self.clock.lap("values")

    def draw(self, first: bool) -> None:
        """Draw a batch from every replay."""
        self._batches = [run.sample() for run in self._fleet.runs]
        self.clock.lap("replay")

    def update(self) -> None:
        """Update the networks, and the priorities with the TD errors."""
        fleet = self._fleet
        result = fleet.update(self._batches)
        self.clock.lap("network")
        for index, (run, batch) in reversed(list(enumerate(zip(fleet.runs, self._batches, strict=True)))):
            td_error = result.td_error[index]
            if np.isfinite(td_error).all():
                run.replay.update_priorities(batch.row, td_error)
            else:
                retire(fleet, index, FloatingPointError("the TD error is not a number"), self._failed)
        self.clock.lap("replay")

    def copy_target(self) -> None:
        """Copy the target networks."""
        self._fleet.copy_target()

    def settle(self) -> None:
        """Nothing is under way."""
        self.clock.lap("other")


def take_turn(fleet: Fleet, clock: Clock, failed: Failed) -> None:
    """Take one turn of the loop with plain environments."""
    source = PlainSource(fleet, clock, failed)
    for _ in turns(source, fleet.step + fleet.schedule.steps_per_turn):
        raise AssertionError("plain environments need not be waited for")


def retire(fleet: Fleet, index: int, error: Exception, failed: Failed) -> None:
    """A run that fails is reported and leaves; the others continue, and the error of the last one is raised."""
    (run,) = fleet.drop([index])
    failed(run, error)
    if not fleet.runs:
        raise error
