"""Numbers from learning curves."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike


def area_under(steps: ArrayLike, values: ArrayLike) -> float:
    """Return the mean height of a curve between its first and last point (trapezoids)."""
    x, y = np.asarray(steps, np.float64), np.asarray(values, np.float64)
    if len(x) < 2 or x[-1] <= x[0]:
        return float(y.mean())
    return float(np.trapezoid(y, x) / (x[-1] - x[0]))


def steps_to(steps: ArrayLike, values: ArrayLike, threshold: float) -> tuple[float, bool]:
    """Return the first step at which a curve is at the threshold or above, and True; or its last step, and False."""
    x, y = np.asarray(steps, np.float64), np.asarray(values, np.float64)
    reached = np.flatnonzero(y >= threshold)
    return (float(x[reached[0]]), True) if len(reached) else (float(x[-1]), False)


def steps_to_keep(steps: ArrayLike, values: ArrayLike, threshold: float) -> tuple[float, bool]:
    """Return the first step after which a curve stays at the threshold or above, and True; else see `steps_to`."""
    x, y = np.asarray(steps, np.float64), np.asarray(values, np.float64)
    below = np.flatnonzero(~(y >= threshold))
    first = below[-1] + 1 if len(below) else 0
    return (float(x[first]), True) if first < len(x) else (float(x[-1]), False)
