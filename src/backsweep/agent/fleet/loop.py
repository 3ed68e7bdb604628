"""The training loop, for runs of any kind.

Words used here:
  step         one transition of one environment. Every run takes as many as it has environments per turn of the loop.
  update       one batch of transitions per run, and one step of the optimiser on it.
  turn         once around the loop: act, remember, learn.
  source       where experience comes from: plain environments (`plain.py`) or compiled tasks (`group.py`). It holds
               runs that take their turns together. What happens in a run depends on its own configuration and seed
               alone, never on the runs it shares a source with.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from backsweep.agent.fleet.clock import Clock
from backsweep.agent.fleet.schedule import Schedule


class Source(Protocol):
    """Runs that take their turns together. Every method puts the time it takes on the clock."""

    clock: Clock
    schedule: Schedule
    waits: bool
    """Whether networks have been asked for something that is not there yet."""

    @property
    def step(self) -> int:
        """How many steps each run has taken."""
        ...

    @property
    def updates(self) -> int:
        """How many updates there have been."""
        ...

    def wait(self) -> None:
        """Wait for what the networks were asked for."""
        ...

    def act_at_random(self, last: int) -> bool:
        """Take at once the steps up to `last` in which no network has a part; say whether there were any."""
        ...

    def act(self) -> None:
        """Ask the networks for the best actions, where not all actions are random."""
        ...

    def move(self, learns: bool) -> None:
        """Carry out the actions and remember what came of them; `learns` says whether an update follows."""
        ...

    def prepare_to_learn(self) -> None:
        """Settle what has to be known before the first update of a turn: reward scales and graph values."""
        ...

    def draw(self, first: bool) -> None:
        """Draw a batch for every run, and ask for the targets that are known before the update."""
        ...

    def update(self) -> None:
        """Learn from the batches."""
        ...

    def copy_target(self) -> None:
        """Copy the target networks; values that rest on them are due."""
        ...

    def settle(self) -> None:
        """Finish what is under way, so that the runs can be looked at."""
        ...


def turns(source: Source, last: int) -> Iterator[None]:
    """Go on to step `last`; yields where networks have to be waited for, so that others can use the time."""
    schedule = source.schedule
    while source.step < last:
        if source.act_at_random(last):
            continue

        # Act: random actions by each run's schedule, else the best by its network.
        source.act()
        yield from _answers(source)

        # Remember: the transitions go to each run's own replay.
        due = schedule.updates_due(source.step + schedule.steps_per_turn, source.updates)
        source.move(due > 0)

        # Learn: as many updates as the ratio asks for, each on one batch per run.
        for update in range(due):
            yield from _answers(source)
            if not update:
                source.prepare_to_learn()
            source.draw(first=not update)
            yield from _answers(source)
            source.update()

        # The target network follows in jumps.
        if schedule.copies_target(source.step):
            source.copy_target()
    yield from _answers(source)
    source.settle()


def _answers(source: Source) -> Iterator[None]:
    if source.waits:
        yield
        source.wait()
