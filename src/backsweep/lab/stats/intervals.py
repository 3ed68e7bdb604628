"""Bootstrap intervals of scores (runs, tasks). Resampling is stratified: runs within each task."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from backsweep.jit.random_streams import named_generator

Scores = NDArray[np.float64]
REPEATS = 2_000
CURVE_REPEATS = 300
"""Resamples for a number, and for a curve."""


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


def resampled_runs(shape: tuple[int, int], repeats: int, generator: np.random.Generator) -> NDArray[np.int64]:
    """Return the run drawn for each place of each resample, (repeats, runs, tasks)."""
    return generator.integers(shape[0], size=(repeats, *shape))


def resample(scores: Scores, chosen: NDArray[np.int64]) -> Scores:
    """Return scores (runs, tasks) at the chosen runs, flattened to (repeats, runs * tasks)."""
    taken: Scores = np.take_along_axis(scores[None], chosen, axis=1)
    return taken.reshape(len(chosen), -1)


def bootstrap(
    scores: Scores,
    statistic: Callable[[Scores], Scores] = interquartile_mean,
    *,
    repeats: int = REPEATS,
    generator: np.random.Generator,
) -> Interval:
    """Return a statistic of scores (runs, tasks) with its percentile interval."""
    drawn = statistic(resample(scores, resampled_runs(_shape(scores), repeats, generator)))
    return around(float(statistic(scores.reshape(1, -1))[0]), drawn)


def paired_difference(
    first: Scores, second: Scores, *, level: float = 0.95, generator: np.random.Generator
) -> tuple[Interval, float]:
    """Return the difference of interquartile means with its interval, and a two-sided bootstrap p-value against 0.

    Both are (runs, tasks) with the same seed in the same place, and are resampled together.
    """
    chosen = resampled_runs(_shape(first), REPEATS, generator)
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

    drawn = share(resample(scores, resampled_runs(_shape(scores), CURVE_REPEATS, generator)))
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
        chosen = resampled_runs(_shape(values), REPEATS, named_generator(0, "aggregates", method))
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


def _shape(scores: Scores) -> tuple[int, int]:
    runs, tasks = scores.shape
    return runs, tasks
