"""How many seeds an open comparison would take."""

from __future__ import annotations

import math

from backsweep.lab.stats.intervals import Interval

MOST = 1_000
"""More seeds than this are not counted."""


def seeds_needed(difference: Interval, seeds: int, distance: float) -> int:
    """Return how many seeds would make an interval narrow enough to decide, if the estimate stays where it is.

    Parameters
    ----------
    difference
        The interval from `seeds` seeds. Its width shrinks with the square root of their number.
    seeds
        How many seeds it rests on.
    distance
        How far the estimate is from the nearest value at which the decision changes.

    Examples
    --------
    >>> seeds_needed(Interval(0.1, -0.1, 0.3), 5, 0.1)
    20
    """
    half = max(difference.high - difference.estimate, difference.estimate - difference.low)
    if not distance > 0 or not math.isfinite(half):
        return MOST
    return min(MOST, max(seeds + 1, math.ceil(seeds * (half / distance) ** 2 - 1e-9)))
