"""Statistics of runs: intervals, aggregates, learning curves, survival times, correlations.

Bootstrap resampling of scores (runs, tasks) is stratified: runs within each task.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from backsweep.jit.random_streams import named_generator

Scores = NDArray[np.float64]
REPEATS = 2_000
CURVE_REPEATS = 300
MEDIAN_REPEATS = 1_000
"""Resamples for a number, for a curve, and for a median time."""


@dataclass(frozen=True)
class Interval:
    """An estimate and the interval around it."""

    estimate: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{plain(self.estimate)} [{plain(self.low)}, {plain(self.high)}]"

    def within(self, low: float, high: float) -> bool | None:
        """Return whether all of it lies in low..high; False if none of it does, None if a part does."""
        if low <= self.low and self.high <= high:
            return True
        return False if self.low > high or self.high < low else None


def plain(value: float) -> str:
    """Return a number with three digits, in plain notation where possible; "never" for infinity."""
    if not math.isfinite(value):
        return "never"
    if value == int(value) and abs(value) < 1e9:
        return f"{int(value):,}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def interquartile_mean(scores: Scores) -> Scores:
    """Return the mean of the last axis without its lowest and highest 25% of entries, rounded down."""
    ordered = np.sort(scores, axis=-1)
    cut = int(0.25 * scores.shape[-1])
    result: Scores = ordered[..., cut : scores.shape[-1] - cut].mean(axis=-1)
    return result


def resampled_runs(scores: Scores, generator: np.random.Generator, repeats: int = REPEATS) -> NDArray[np.int64]:
    """Return the run drawn for each place of each resample, (repeats, runs, tasks)."""
    return generator.integers(len(scores), size=(repeats, *scores.shape))


def resample(scores: Scores, chosen: NDArray[np.int64]) -> Scores:
    """Return scores (runs, tasks) at the chosen runs, flattened to (repeats, runs * tasks)."""
    taken: Scores = np.take_along_axis(scores[None], chosen, axis=1)
    return taken.reshape(len(chosen), -1)


def bootstrap(
    scores: Scores, statistic: Callable[[Scores], Scores] = interquartile_mean, *, generator: np.random.Generator
) -> Interval:
    """Return a statistic of scores (runs, tasks) with its percentile interval."""
    drawn = statistic(resample(scores, resampled_runs(scores, generator)))
    return around(float(statistic(scores.reshape(1, -1))[0]), drawn)


def paired_difference(
    first: Scores, second: Scores, *, level: float = 0.95, generator: np.random.Generator
) -> tuple[Interval, float]:
    """Return the difference of interquartile means with its interval, and a two-sided bootstrap p-value against 0.

    Both are (runs, tasks) with the same seed in the same place, and are resampled together.
    """
    chosen = resampled_runs(first, generator)
    drawn = interquartile_mean(resample(first, chosen)) - interquartile_mean(resample(second, chosen))
    estimate = float(interquartile_mean(first.reshape(-1)) - interquartile_mean(second.reshape(-1)))
    below, above = int((drawn <= 0).sum()), int((drawn >= 0).sum())
    p_value = min(1.0, 2.0 * (min(below, above) + 1) / (REPEATS + 1))
    return around(estimate, drawn, level), p_value


def probability_of_improvement(first: Scores, second: Scores, *, generator: np.random.Generator) -> Interval:
    """Return the chance that a run of `first` beats one of `second` on the same task, ties counting half.

    first: (runs, tasks), second: (other runs, tasks); the mean over tasks of the Mann-Whitney statistic.
    """
    wins = (first[:, None] > second[None]) + 0.5 * (first[:, None] == second[None])  # (runs, other runs, tasks)
    drawn = np.zeros(REPEATS)
    for task in range(first.shape[1]):
        ours = generator.multinomial(len(first), np.full(len(first), 1 / len(first)), size=REPEATS)
        theirs = generator.multinomial(len(second), np.full(len(second), 1 / len(second)), size=REPEATS)
        drawn += np.einsum("ri,ij,rj->r", ours, wins[:, :, task], theirs) / (len(first) * len(second))
    return around(float(wins.mean(axis=(0, 1)).mean()), drawn / first.shape[1])


def performance_profile(
    scores: Scores, thresholds: Scores, *, generator: np.random.Generator
) -> tuple[Scores, Scores, Scores]:
    """Return the share of scores above each threshold, and the interval's ends."""

    def share(values: Scores) -> Scores:
        found: Scores = (values[..., None] > thresholds).mean(axis=-2)
        return found

    drawn = share(resample(scores, resampled_runs(scores, generator, CURVE_REPEATS)))
    return share(scores.reshape(-1)), *_ends(drawn, axis=0)


def curve_bands(curves: NDArray[np.float64], *, generator: np.random.Generator) -> tuple[Scores, Scores, Scores]:
    """Return the interquartile mean of curves (runs, points) at each point, and the interval's lower and upper ends."""
    chosen = generator.integers(len(curves), size=(CURVE_REPEATS, len(curves)))
    drawn = interquartile_mean(curves.T[:, chosen])  # (points, repeats)
    return interquartile_mean(curves.T), *_ends(drawn, axis=1)


def aggregates(scores: dict[str, Scores]) -> dict[str, dict[str, Interval]]:
    """Return the interquartile mean, median and mean of each method's scores (runs, tasks) with 95% intervals.

    The interquartile mean is that of all runs; the median and the mean are those of the tasks' means. Runs are
    resampled within each task.
    """
    measures: dict[str, Callable[[Scores], Scores]] = {
        "iqm": lambda drawn: interquartile_mean(drawn.reshape(len(drawn), -1)),
        "median": lambda drawn: np.median(drawn.mean(axis=1), axis=1),
        "mean": lambda drawn: drawn.mean(axis=1).mean(axis=1),
    }
    found: dict[str, dict[str, Interval]] = {}
    for method, values in scores.items():
        chosen = resampled_runs(values, named_generator(0, "aggregates", method))
        drawn = np.take_along_axis(values[None], chosen, axis=1)
        found[method] = {name: around(float(of(values[None])[0]), of(drawn)) for name, of in measures.items()}
    return found


def holm(p_values: list[float]) -> list[float]:
    """Return p-values corrected by Holm's step-down method, in the order they were given."""
    order = sorted(range(len(p_values)), key=lambda index: p_values[index])
    corrected, largest = [0.0] * len(p_values), 0.0
    for place, index in enumerate(order):
        largest = max(largest, min(1.0, (len(p_values) - place) * p_values[index]))
        corrected[index] = largest
    return corrected


def around(estimate: float, drawn: Scores, level: float = 0.95) -> Interval:
    """Return an estimate with the percentile interval of resampled values."""
    low, high = _ends(drawn, level=level)
    return Interval(estimate, float(low), float(high))


def _ends(drawn: Scores, axis: int | None = None, level: float = 0.95) -> tuple[Scores, Scores]:
    tail = 100 * (1.0 - level) / 2
    low, high = np.percentile(drawn, [tail, 100 - tail], axis=axis)
    return low, high


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


Times = NDArray[np.float64]


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
    chosen = generator.integers(len(time), size=(MEDIAN_REPEATS, len(time)))
    if event.all() or time[~event].min() >= time[event].max(initial=0.0):
        # Censored runs all end last, so the median is the middle of the sorted times.
        ordered = np.sort(np.where(event, time, np.inf)[chosen], axis=1)
        medians = ordered[:, (len(time) + 1) // 2 - 1]
    else:
        medians = np.array([quantile(time[places], event[places]) for places in chosen])
    tail = (1.0 - 0.95) / 2
    ordered = np.sort(medians)
    return Interval(
        estimate, float(ordered[int(tail * MEDIAN_REPEATS)]), float(ordered[int((1 - tail) * MEDIAN_REPEATS) - 1])
    )


def restricted_mean(times: ArrayLike, happened: ArrayLike, horizon: float) -> float:
    """Return the mean time to the event, with times limited to `horizon`."""
    moments, waiting = kaplan_meier(times, happened)
    inside = moments < horizon
    edges = np.concatenate([[0.0], moments[inside], [horizon]])
    heights = np.concatenate([[1.0], waiting[inside]])
    return float((np.diff(edges) * heights).sum())


MOST_PAIRS = 8


def ranks(values: ArrayLike) -> NDArray[np.float64]:
    """Return the ranks along the last axis, from 1; equal values share the mean of theirs."""
    given = np.asarray(values, np.float64)
    below = (given[..., None] > given[..., None, :]).sum(axis=-1)
    equal = (given[..., None] == given[..., None, :]).sum(axis=-1)
    result: NDArray[np.float64] = below + (equal + 1) / 2.0
    return result


def rank_correlation(first: ArrayLike, second: ArrayLike) -> NDArray[np.float64]:
    """Return Spearman's correlation along the last axis, 0 where one side does not vary."""
    a, b = ranks(first), ranks(second)
    a, b = a - a.mean(axis=-1, keepdims=True), b - b.mean(axis=-1, keepdims=True)
    spread = np.sqrt((a**2).sum(axis=-1) * (b**2).sum(axis=-1))
    result: NDArray[np.float64] = np.divide((a * b).sum(axis=-1), spread, out=np.zeros_like(spread), where=spread > 0)
    return result


def chance_of_order(first: ArrayLike, second: ArrayLike) -> float:
    """Return the exact p-value of a rank correlation against random pairing; at most 8 pairs, all orders are tried."""
    one, other = np.asarray(first, np.float64), np.asarray(second, np.float64)
    if len(one) > MOST_PAIRS:
        raise ValueError(f"first must hold at most {MOST_PAIRS} values, got {len(one)}")
    orders = np.array(list(itertools.permutations(range(len(one)))))
    drawn = rank_correlation(np.broadcast_to(one, orders.shape), other[orders])
    # The tolerance lets the observed order count as one of them despite rounding.
    return float((drawn >= rank_correlation(one, other) - 1e-9).mean())


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
