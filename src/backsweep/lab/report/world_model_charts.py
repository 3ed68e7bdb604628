"""The curves of C17: TER, graph values and DreamerV2 up to the same step."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from backsweep.jit.random_streams import named_generator
from backsweep.lab.claims.evidence import Evidence
from backsweep.lab.claims.questions.world_model import RULE
from backsweep.lab.claims.world_model_runs import Learned, Place
from backsweep.lab.report.chart import AnyChart, Chart, Facet, Series, Unit, task_title
from backsweep.lab.stats import curve_bands


def world_model(evidence: Evidence) -> list[AnyChart]:
    """Return the score and the share of episodes that reach the goal, a view for each task."""
    found = RULE.places(evidence)
    return [
        _chart(found, "score", "Score (0 the worst episode, 1 the best)", lambda run: run.score),
        _chart(found, "success", "Episodes that reach the goal", lambda run: run.success, "percent"),
    ]


def _chart(
    found: list[Place], name: str, title: str, curve: Callable[[Learned], NDArray[np.float64]], unit: Unit = ""
) -> Chart:
    facets = []
    for place in found:
        series = []
        for label, runs in place.runs.items():
            values = np.array([curve(run) for run in runs])
            middle, low, high = curve_bands(values, generator=named_generator(0, label))
            series.append(Series(label, place.steps.tolist(), middle.tolist(), low.tolist(), high.tolist()))
        facets.append(Facet(f"{task_title(place.task)}, {len(place.seeds)} seeds", series, place.task))
    text = f"{title}: interquartile mean over seeds, 95% intervals"
    return Chart(f"c17-{name}", text, "environment steps", name, facets, y_shows=(0.0, 1.0), y_unit=unit)
