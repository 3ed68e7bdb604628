"""What rliable says about scores of several methods on several tasks."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backsweep.evaluation.intervals import Interval, Scores, interquartile_mean

REPEATS = 2_000


def aggregates(scores: dict[str, Scores], seed: int = 0, repeats: int = REPEATS) -> dict[str, dict[str, Interval]]:
    """Return the interquartile mean, median and mean of each method's scores (runs, tasks) with 95% intervals.

    Intervals are rliable's: a stratified bootstrap over the runs of each task.
    """
    library, metrics = _rliable()

    def measures(values: Scores) -> NDArray[np.float64]:
        # rliable's own interquartile mean gives the same number, at ten times the cost of all the rest.
        middle = interquartile_mean(values.reshape(-1))
        return np.array([middle, metrics.aggregate_median(values), metrics.aggregate_mean(values)])

    with warnings.catch_warnings():
        # rliable hands its seed on under a name that arch is about to rename.
        warnings.simplefilter("ignore", FutureWarning)
        points, ends = library.get_interval_estimates(
            scores, measures, reps=repeats, random_state=np.random.RandomState(seed)
        )
    return {
        method: {
            name: Interval(float(points[method][place]), float(ends[method][0, place]), float(ends[method][1, place]))
            for place, name in enumerate(("iqm", "median", "mean"))
        }
        for method in scores
    }


def _rliable() -> tuple[Any, Any]:
    try:
        from rliable import library, metrics
    except ImportError as error:
        raise ImportError("aggregate scores need rliable: pip install 'backsweep[report]'") from error
    return library, metrics
