"""Times until something happens, where some runs ended before it did (right-censoring)."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from backsweep.lab.stats.intervals import Interval

Times = NDArray[np.float64]
REPEATS = 1_000


def kaplan_meier(times: ArrayLike, happened: ArrayLike) -> tuple[Times, Times]:
    """Return the event times in order, and the share of runs without the event after each.

    times: (runs,) time of the event or of the run's end; happened: (runs,) whether it is the event.
    """
    time, event = np.asarray(times, np.float64), np.asarray(happened, np.bool_)
    moments = np.unique(time[event])
    waiting, share, shares = 0, 1.0, []
    for moment in moments:
        waiting = int((time >= moment).sum())
        share *= 1.0 - int((time[event] == moment).sum()) / waiting
        shares.append(share)
    return moments, np.array(shares)


def quantile(times: ArrayLike, happened: ArrayLike, share: float = 0.5) -> float:
    """Return the time by which `share` of the runs had the event; infinity if fewer did."""
    moments, waiting = kaplan_meier(times, happened)
    reached = np.flatnonzero(waiting <= 1.0 - share + 1e-12)
    return float(moments[reached[0]]) if len(reached) else math.inf


def median_interval(times: ArrayLike, happened: ArrayLike, *, generator: np.random.Generator) -> Interval:
    """Return the Kaplan-Meier median with a percentile bootstrap interval, whose upper end may be infinity."""
    time, event = np.asarray(times, np.float64), np.asarray(happened, np.bool_)
    estimate = quantile(time, event)
    chosen = generator.integers(len(time), size=(REPEATS, len(time)))
    if event.all() or time[~event].min() >= time[event].max(initial=0.0):
        # Censored runs all end last, so the median is the middle of the sorted times.
        ordered = np.sort(np.where(event, time, np.inf)[chosen], axis=1)
        medians = ordered[:, (len(time) + 1) // 2 - 1]
    else:
        medians = np.array([quantile(time[places], event[places]) for places in chosen])
    tail = (1.0 - 0.95) / 2
    ordered = np.sort(medians)
    return Interval(estimate, float(ordered[int(tail * REPEATS)]), float(ordered[int((1 - tail) * REPEATS) - 1]))


def restricted_mean(times: ArrayLike, happened: ArrayLike, horizon: float) -> float:
    """Return the mean time to the event, with times limited to `horizon`."""
    moments, waiting = kaplan_meier(times, happened)
    inside = moments < horizon
    edges = np.concatenate([[0.0], moments[inside], [horizon]])
    heights = np.concatenate([[1.0], waiting[inside]])
    return float((np.diff(edges) * heights).sum())
