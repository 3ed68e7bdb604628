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

FIRST_LIMIT = 16_384
"""Initial number of observations of a run, if their total is unknown."""


class ObservationLimits:
    """How many observations of each run of a fleet the device has memory for."""

    def __init__(self, runs: Sequence[Run], session: SessionConfig) -> None:
        self._limits = {run: first_limit(run.config, session) for run in runs}
        self._most = {run: largest_limit(run.config, session) for run in runs}

    def of(self, run: Run) -> int:
        """Return a run's limit."""
        return self._limits[run]

    def grow(self, runs: Sequence[Run], new: int) -> bool:
        """Raise the limits if a run might reach its own with `new` more observations; return whether they were raised.

        That sets up the device again, so the limits of all runs rise together.
        """
        used = {run: run.replay.machinery.store.observations_high for run in runs}
        if all(min(used[run] + new, self._most[run]) <= self._limits[run] for run in runs):
            return False
        for run in runs:
            self._limits[run] = max(self._limits[run], min(2 * (used[run] + new), self._most[run]))
        return True


def first_limit(config: RunConfig, session: SessionConfig) -> int:
    """Return a run's limit at the start."""
    most = largest_limit(config, session)
    bounded = session.observations_per_run is not None or known_observations(config) is not None
    return most if bounded else min(FIRST_LIMIT, most)


def largest_limit(config: RunConfig, session: SessionConfig) -> int:
    """Return the largest number of observations that a run can have on the device."""
    if session.observations_per_run is not None:
        return session.observations_per_run
    stored = 2 * config.capacity  # a row has two
    known = known_observations(config)
    return stored if known is None else min(known, stored)


def known_observations(config: RunConfig) -> int | None:
    """Return the number of observations of a task, None if unknown."""
    assert config.task is not None
    if not find_task(config.task).is_exact:
        return None
    return _count(config.task, tuple(sorted(task_options(config).items())))


@lru_cache(maxsize=32)
def _count(task: str, options: tuple[tuple[str, object], ...]) -> int | None:
    try:
        model = exact(task, **dict(options))
    except ValueError:  # rewards that depend on time, say: the states cannot be listed
        return None
    return model.num_states + model.num_terminal
