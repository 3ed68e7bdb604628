"""Steps fleets of plain environments, with the interface of the compiled engine.

On a GPU the runs are divided into groups that alternate, so that environments step while the device computes:

    this process   | A: step | B: step | C: step | A ...
    device         | B: act  | C: act  | A: act  | B ...
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from backsweep.agent.config import RunConfig
from backsweep.agent.fleet.alternation import advance_together, ranges
from backsweep.agent.fleet.fleet import Fleet
from backsweep.agent.fleet.loop import Clock
from backsweep.agent.fleet.plain_source import PlainSource
from backsweep.agent.fleet.run import Run

GROUPS = 3
"""Groups on a GPU: while one waits for an update, which takes as long as several acts, two others alternate."""
TURNS = 50
"""Turns that groups take together before they wait for each other."""

Failed = Callable[[Run, Exception], None]


class PlainEngine:
    """Steps a fleet. If runs leave it, make another engine."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self._records = records_programs(fleet.learner.device, fleet.shared)
        self._sources: list[PlainSource]
        if self._records:
            self._sources = [
                PlainSource(fleet, fleet.learner.of_runs(first, last), first, last, records=True)
                for first, last in ranges(len(fleet.runs), GROUPS)
            ]
        else:
            self._sources = [PlainSource(fleet, fleet.learner, 0, len(fleet.runs), records=False)]

    @property
    def most_steps(self) -> int:
        """How many steps to take at once at most: environments may be slow, and signals wait."""
        return TURNS if self._records else self.fleet.schedule.steps_per_turn

    def advance(self, steps: int, clock: Clock) -> None:
        """Take `steps` steps with every run, or the next larger number of whole turns, and the updates that are due."""
        advance_together(self.fleet, self._sources, self.fleet.step + steps, clock)

    def failures(self) -> list[tuple[int, Exception]]:
        """Return the failed runs, by their index in the fleet, and why."""
        failed = {source.first + place: error for source in self._sources for place, error in source.failed.items()}
        return sorted(failed.items())

    def hand_back(self) -> None:
        """Do nothing: the runs' own objects are what is stepped."""


def take_turn(fleet: Fleet, clock: Clock, failed: Failed) -> None:
    """Take one turn of the loop with plain environments; runs that fail leave."""
    engine = PlainEngine(fleet)
    engine.advance(fleet.schedule.steps_per_turn, clock)
    for index, error in reversed(engine.failures()):
        retire(fleet, index, error, failed)


def records_programs(device: torch.device, config: RunConfig) -> bool:
    """Return whether acts and updates of plain environments are recorded; a recorded act has one environment a run."""
    return device.type == "cuda" and config.num_envs == 1


def retire(fleet: Fleet, index: int, error: Exception, failed: Failed) -> None:
    """A run that fails is reported and leaves; the others continue, and the error of the last one is raised."""
    (run,) = fleet.drop([index])
    failed(run, error)
    if not fleet.runs:
        raise error
