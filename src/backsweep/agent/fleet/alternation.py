"""Groups of a fleet's runs that alternate: while the device works for one, another one steps its environments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Protocol

import numpy as np

from backsweep.agent.fleet.fleet import Fleet
from backsweep.agent.fleet.loop import Clock, Source, turns
from backsweep.agent.learner.double_dqn import Learner


class GroupSource(Source, Protocol):
    """A source of the loop for some runs of a fleet, with their share of the networks."""

    step: int
    learner: Learner

    @property
    def ready(self) -> bool:
        """Whether the device has finished all that was requested."""


def ranges(runs: int, groups: int) -> Iterator[tuple[int, int]]:
    """Divide runs into at most `groups` ranges of about equal size."""
    return pairwise(np.linspace(0, runs, min(groups, runs) + 1).astype(int).tolist())


def advance_together(fleet: Fleet, groups: Sequence[GroupSource], last: int, clock: Clock) -> None:
    """Take the steps up to `last` with every run, and the updates that are due."""
    for group in groups:
        group.learner.copy_counts(fleet.learner)
        group.clock, group.step = clock, fleet.step
    going = {group: turns(group, last) for group in groups}
    while going:
        group = _next(list(going))
        if next(going[group], going) is going:
            del going[group]
    # A group whose runs have all failed learns no more.
    ahead = max(groups, key=lambda group: group.updates)
    fleet.learner.copy_counts(ahead.learner)
    fleet.step = ahead.step


def _next(groups: list[GroupSource]) -> GroupSource:
    """Return the next group: the one furthest behind, of those that need not wait for the device if there are any."""
    if len(groups) == 1:
        return groups[0]
    return min([group for group in groups if group.ready] or groups, key=lambda group: group.step)
