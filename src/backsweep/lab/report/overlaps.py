"""Lines that overlap are drawn as alternating dashes, so that each colour is visible."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from backsweep.lab.report.chart import Series

COLUMNS = 60
NEAR = 0.008
"""Lines this close overlap, as a share of the chart's height: about the width of a line."""

Stretch = tuple[float, float]


def dashes(series: Sequence[Series], *, log_x: bool = False, log_y: bool = False) -> dict[str, list[Stretch]]:
    """Return the dashes of each line that overlaps another, as stretches of the x axis."""
    lines = [line for line in series if not line.points and len(line.x) > 1]
    if len(lines) < 2:
        return {}
    known = np.concatenate([np.asarray(line.x, np.float64) for line in lines])
    first, last = float(known.min()), float(known.max())
    edges = np.geomspace(first, last, COLUMNS + 1) if log_x else np.linspace(first, last, COLUMNS + 1)
    heights = np.stack([_heights(line, edges, log_y) for line in lines])
    near = NEAR * (float(heights.max() - heights.min()) or 1.0)
    found: dict[str, list[Stretch]] = {line.name: [] for line in lines}
    met: set[str] = set()
    for column in range(COLUMNS):
        for place, line in enumerate(lines):
            apart = np.abs(heights[:, column : column + 2] - heights[place, column : column + 2]).max(axis=1)
            group = np.flatnonzero(apart <= near).tolist()
            if len(group) > 1:
                met.add(line.name)
            if group[column % len(group)] == place:
                found[line.name].append((float(edges[column]), float(edges[column + 1])))
    return {name: stretches for name, stretches in found.items() if name in met}


def _heights(line: Series, at: NDArray[np.float64], log_y: bool) -> NDArray[np.float64]:
    x, y = np.asarray(line.x, np.float64), np.asarray(line.y, np.float64)
    y = np.log10(np.maximum(y, 1e-12)) if log_y else y
    if line.steps:
        return np.asarray(y[np.clip(np.searchsorted(x, at, side="right") - 1, 0, len(x) - 1)])
    return np.asarray(np.interp(at, x, y))
