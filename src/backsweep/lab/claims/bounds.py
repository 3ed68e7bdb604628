"""Bounds of an episode's return, and whether a network's values exceed them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from backsweep.lab.claims.evidence import settings_of
from backsweep.tasks import find_task


def return_bounds(config: dict[str, Any]) -> tuple[float, float] | None:
    """Return the worst and the best return of an episode of a run's task, None if unknown."""
    if config.get("task") is None:
        return None
    task = find_task(str(config["task"]))
    options = {**task.options_under(settings_of(config)), **config.get("task_options", {})}
    bounds: tuple[float, float] | None = task.options(**options).return_bounds
    return bounds


def left_bounds(values: ArrayLike, bounds: tuple[float, float]) -> bool:
    """Return whether a value is below the worst return of an episode or above the best; False for an unknown value.

    Values are discounted returns, which may be nearer to 0 than any return.
    """
    given = np.asarray(values, np.float64)
    low, high = min(bounds[0], 0.0), max(bounds[1], 0.0)
    return bool(((given < low) | (given > high)).any())
