"""What rliable says about scores of several methods on several tasks."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from backsweep.evaluation.intervals import Interval, Scores

REPEATS = 2_000


def aggregates(scores: dict[str, Scores], seed: int = 0, repeats: int = REPEATS) -> dict[str, dict[str, Interval]]:
    """Return the interquartile mean, median and mean of each method's scores (runs, tasks) with 95% intervals.

    Intervals are rliable's: a stratified bootstrap over the runs of each task.
    """
    library, metrics = _rliable()

    def measures(values: Scores) -> NDArray[np.float64]:
        wanted = (metrics.aggregate_iqm, metrics.aggregate_median, metrics.aggregate_mean)
        return np.array([measure(values) for measure in wanted])

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


def performance_profiles(
    scores: dict[str, Scores], thresholds: NDArray[np.float64], seed: int = 0, repeats: int = 200
) -> dict[str, tuple[Scores, Scores, Scores]]:
    """Return for each method which share of its runs scores above each threshold, with the interval's ends."""
    library, _ = _rliable()
    np_state = np.random.RandomState(seed)
    result = {}
    for method, values in scores.items():
        share = library.run_score_deviation(values, thresholds)
        drawn = np.stack(
            [
                library.run_score_deviation(
                    np.take_along_axis(values, np_state.randint(len(values), size=values.shape), axis=0), thresholds
                )
                for _ in range(repeats)
            ]
        )
        low, high = np.percentile(drawn, [2.5, 97.5], axis=0)
        result[method] = (share, low, high)
    return result


def _rliable() -> tuple[Any, Any]:
    try:
        from rliable import library, metrics
    except ImportError as error:
        raise ImportError("aggregate scores need rliable: pip install 'backsweep[report]'") from error
    return library, metrics
