"""Device memory for the distinct observations of each run.

If a task's observations can be counted, there is memory for all of them from the start. Otherwise (Sokoban) their
number is unknown: some tasks have thousands, others a fifth of the rows. So a run starts with little memory and gets
twice what it has used whenever that might not suffice.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from backsweep.agent.config import RunConfig, SessionConfig
from backsweep.agent.defaults import task_options
from backsweep.agent.fleet.run import Run
from backsweep.tasks import exact, find_task

FIRST_ROOM = 16_384
"""Initial number of observations of a run, if their total is unknown."""


class Rooms:
    """The rooms of a fleet's runs."""

    def __init__(self, runs: Sequence[Run], session: SessionConfig) -> None:
        self._rooms = {run: first_room(run.config, session) for run in runs}
        self._most = {run: most_room(run.config, session) for run in runs}

    def of(self, run: Run) -> int:
        """Return for how many observations of a run there is room."""
        return self._rooms[run]

    def grow(self, runs: Sequence[Run], new: int) -> bool:
        """Make sure of room for `new` more observations of every run; say whether there was too little.

        A device has to be set up again for it, so all runs get more when one must.
        """
        used = {run: run.replay.machinery.store.observations_high for run in runs}
        if all(min(used[run] + new, self._most[run]) <= self._rooms[run] for run in runs):
            return False
        for run in runs:
            self._rooms[run] = max(self._rooms[run], min(2 * (used[run] + new), self._most[run]))
        return True


def first_room(config: RunConfig, session: SessionConfig) -> int:
    """Return for how many observations of a run there is to be room from the start."""
    most = most_room(config, session)
    bounded = session.observations_per_run is not None or known_observations(config) is not None
    return most if bounded else min(FIRST_ROOM, most)


def most_room(config: RunConfig, session: SessionConfig) -> int:
    """Return how many observations of a run there can be on the device."""
    if session.observations_per_run is not None:
        return session.observations_per_run
    stored = 2 * config.capacity  # a row has two
    known = known_observations(config)
    return stored if known is None else min(known, stored)


def known_observations(config: RunConfig) -> int | None:
    """Return the number of observations of a task, None if unknown."""
    assert config.task is not None
    if find_task(config.task).family not in ("nchain", "minigrid"):
        return None
    return _count(config.task, tuple(sorted(task_options(config).items())))


@lru_cache(maxsize=32)
def _count(task: str, options: tuple[tuple[str, object], ...]) -> int | None:
    try:
        model = exact(task, **dict(options))
    except ValueError:  # rewards that depend on time, say: the states cannot be listed
        return None
    return model.num_states + model.num_terminal
