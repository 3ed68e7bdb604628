"""The compiled engine: threads step a fleet's runs while a device runs their networks.

The runs are divided into groups that alternate. While the device works for one group, the threads step another:

    threads   | A: apply, step, draw | B: apply, step, draw | A ...
    device    | B: update, act       | A: update, act       | B ...

The next group is one that the device has finished: an update takes as long as several acts, so another group can get
several steps ahead. A run's results depend only on its own configuration and seed, so groups, their order and threads
do not change them. The runs remain plain objects (`run.py`); `hand_back` updates them, after which they can be
recorded, evaluated, saved, or continued by plain turns.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from backsweep.agent.fleet.clock import Clock
from backsweep.agent.fleet.fleet import Fleet
from backsweep.agent.fleet.group import MOST_STEPS, Group
from backsweep.agent.fleet.loop import turns
from backsweep.jit.compilation import announce_first_compilation


class Engine:
    """Steps a fleet, many steps per call."""

    def __init__(self, fleet: Fleet, observations_per_run: Sequence[int], groups: int) -> None:
        """Prepare a fleet whose runs are all `movable`.

        Parameters
        ----------
        fleet
            The fleet. If runs leave it, make another engine.
        observations_per_run
            The number of distinct observations of each run that the device has memory for.
        groups
            The number of groups; at most one per run.
        """
        announce_first_compilation("turn_runs", "the kernels that step fleets", "one to two minutes")
        self.fleet = fleet
        bounds = np.linspace(0, len(fleet.runs), min(groups, len(fleet.runs)) + 1).astype(int).tolist()
        self._groups = [Group(fleet, first, last, observations_per_run[first:last]) for first, last in pairwise(bounds)]
        self._since_hand_back = 0

    def advance(self, steps: int, clock: Clock) -> None:
        """Take `steps` steps with every run, at most MOST_STEPS, and the updates that are due."""
        if self._since_hand_back + steps > MOST_STEPS:
            self.hand_back()
        fleet = self.fleet
        for group in self._groups:
            group.learner.copy_counts(fleet.learner)
            group.clock, group.step = clock, fleet.step
        going = {group: turns(group, fleet.step + steps) for group in self._groups}
        while going:
            group = _next(list(going))
            if next(going[group], self) is self:
                del going[group]
        fleet.learner.copy_counts(self._groups[0].learner)
        fleet.step += steps
        self._since_hand_back += steps

    def failures(self) -> list[tuple[int, Exception]]:
        """Return the failed runs, by their index in the fleet, and why."""
        return [(group.first + run, RuntimeError(why)) for group in self._groups for run, why in group.failures()]

    def hand_back(self) -> None:
        """Update the runs' own objects."""
        for group in self._groups:
            group.hand_back()
        self._since_hand_back = 0


def _next(groups: list[Group]) -> Group:
    """Return the next group: the one furthest behind, of those that need not wait for the device if there are any."""
    if len(groups) == 1:
        return groups[0]
    return min([group for group in groups if group.ready] or groups, key=lambda group: group.step)
