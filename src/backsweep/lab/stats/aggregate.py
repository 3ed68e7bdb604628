"""Scores of several methods on several tasks in three numbers each, with stratified bootstrap intervals."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from backsweep.jit.random_streams import named_generator
from backsweep.lab.stats.intervals import REPEATS, Interval, Scores, around, interquartile_mean, resampled_runs


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
        runs, tasks = values.shape
        chosen = resampled_runs((runs, tasks), REPEATS, named_generator(0, "aggregates", method))
        drawn = np.take_along_axis(values[None], chosen, axis=1)
        found[method] = {name: around(float(of(values[None])[0]), of(drawn)) for name, of in measures.items()}
    return found
