"""What rliable says about scores of several methods on several tasks.

The numbers are rliable's own; the intervals are those of its stratified bootstrap, drawn all at once (`intervals`): one
at a time, they took most of the time of a report.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from backsweep.jit.random_streams import named_generator
from backsweep.lab.stats.intervals import Interval, Scores, around, interquartile_mean, resampled_runs

REPEATS = 2_000


def aggregates(scores: dict[str, Scores], seed: int = 0, repeats: int = REPEATS) -> dict[str, dict[str, Interval]]:
    """Return the interquartile mean, median and mean of each method's scores (runs, tasks) with 95% intervals.

    The median and the mean are those of the tasks' means; runs are resampled within each task.
    """
    metrics = _rliable_metrics()
    measures: dict[str, tuple[Callable[[Scores], float], Callable[[Scores], Scores]]] = {
        "iqm": (metrics.aggregate_iqm, lambda drawn: interquartile_mean(drawn.reshape(len(drawn), -1))),
        "median": (metrics.aggregate_median, lambda drawn: np.median(drawn.mean(axis=1), axis=1)),
        "mean": (metrics.aggregate_mean, lambda drawn: drawn.mean(axis=1).mean(axis=1)),
    }
    found: dict[str, dict[str, Interval]] = {}
    for method, values in scores.items():
        runs, tasks = values.shape
        chosen = resampled_runs((runs, tasks), repeats, named_generator(seed, "aggregates", method))
        drawn = np.take_along_axis(values[None], chosen, axis=1)
        found[method] = {
            name: around(float(of_scores(values)), of_drawn(drawn)) for name, (of_scores, of_drawn) in measures.items()
        }
    return found


def _rliable_metrics() -> Any:
    try:
        from rliable import metrics
    except ImportError as error:
        raise ImportError("aggregate scores need rliable: pip install 'backsweep[report]'") from error
    return metrics
