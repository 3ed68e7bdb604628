"""The charts as picture files."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backsweep.agent.palette import Look, pyplot
from backsweep.lab.report.chart import AnyChart, Chart, DotChart, Facet, Series, short_number

FEWEST_PER_PROCESS = 4  # starting one takes about as long as drawing this many pictures
LEGEND_COLUMNS = 7
MOST_BANDS = 8  # those of more lines cover each other and the lines; as in chart.js


def draw_all(charts: Mapping[Path, AnyChart], processes: int) -> None:
    """Write a picture for every chart, in several processes; each takes half a second."""
    workers = min(processes, len(charts) // FEWEST_PER_PROCESS)
    if workers < 2:
        for path, chart in charts.items():
            draw(chart, path)
        return
    # Spawned, not forked: a fork would lack this process's threads.
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        for done in [pool.submit(draw, chart, path) for path, chart in charts.items()]:
            done.result()


def draw(chart: AnyChart, path: Path) -> None:
    """Write a chart into a PNG: its chosen views side by side, or its categories below each other."""
    plt = pyplot("report")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure = _dots(plt, chart) if isinstance(chart, DotChart) else _lines(plt, chart)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _lines(plt: Any, chart: Chart) -> Any:
    chosen = [chart.facets[place] for place in chart.pictured if place < len(chart.facets)]
    columns = min(len(chosen), 4)
    rows = -(-len(chosen) // columns)
    shown = chart.looks
    width, height = max(5.2, 3.9 * columns), 3.4 * rows + 0.5
    across = min(len(shown), LEGEND_COLUMNS)
    # Margins in inches: matplotlib's automatic layout would draw everything twice.
    below = 0.5 + 0.2 * -(-len(shown) // across)
    figure, panels = plt.subplots(rows, columns, figsize=(width, height), squeeze=False)
    figure.subplots_adjust(
        left=0.72 / width,
        right=1 - 0.15 / width,
        bottom=below / height,
        top=1 - 0.65 / height,
        wspace=0.72 / (width / columns - 0.72),
        hspace=0.85 / (height / rows - 0.85),
    )
    for panel, facet in zip(panels.flat, chosen, strict=False):
        _panel(panel, chart, facet, shown)
    for panel in list(panels.flat)[len(chosen) :]:
        panel.set_visible(False)
    _legend(figure, shown, across)
    figure.suptitle(chart.title, fontsize=10, y=1 - 0.08 / height, va="top")
    return figure


def _legend(figure: Any, shown: Mapping[str, Look], across: int) -> None:
    """Add a legend with every method of the chart, in order."""
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], color=look.light, linewidth=2.4) for look in shown.values()]
    titles = [look.title for look in shown.values()]
    figure.legend(handles, titles, loc="lower center", ncols=across, frameon=False, fontsize=8)


def _panel(panel: Any, chart: Chart, facet: Facet, shown: Mapping[str, Look]) -> None:
    from matplotlib.path import Path as Outline

    drawn = dashes(facet.series, log_x=chart.log_x, log_y=chart.log_y)
    for line in facet.series:
        colour = shown[line.name].light
        if line.points:
            ends = [[y - low for y, low in zip(line.y, line.low, strict=True)]]
            ends.append([high - y for y, high in zip(line.y, line.high, strict=True)])
            panel.errorbar(line.x, line.y, yerr=ends, color=colour, fmt="o", capsize=3)
            continue
        style: dict[str, Any] = {"drawstyle": "steps-post"} if line.steps else {}
        (drawing,) = panel.plot(line.x, line.y, color=colour, linewidth=1.8, **style)
        if stretches := drawn.get(line.name):
            # A little wider, so that a step at an edge keeps the width of its line.
            wider = [(a - 0.15 * (b - a), b + 0.15 * (b - a)) for a, b in stretches]
            corners = [[(a, -1), (b, -1), (b, 2), (a, 2), (a, -1)] for a, b in wider]
            outline = Outline.make_compound_path(*(Outline(corner, closed=True) for corner in corners))
            drawing.set_clip_path(outline, panel.get_xaxis_transform())
        if line.low and len(facet.series) <= MOST_BANDS:
            panel.fill_between(line.x, line.low, line.high, color=colour, alpha=0.13, linewidth=0)
    if chart.log_x:
        panel.set_xscale("log")
    if chart.log_y:
        panel.set_yscale("log")
    panel.xaxis.set_major_formatter(lambda value, _: short_number(value))
    panel.yaxis.set_major_formatter(lambda value, _: short_number(value, chart.y_unit))
    low, high = panel.get_ylim()
    margin = 0.03 * (high - low) if len(chart.y_shows) > 1 else 0.0
    for value in chart.y_shows:
        low, high = min(low, value - margin), max(high, value + margin)
    if 0.0 in chart.y_shows and all(value >= 0 for line in facet.series for value in (*line.y, *line.low)):
        low = -margin
    panel.set_ylim(low, high)
    panel.set_title(facet.label.replace(", ", ",\n", 1), fontsize=8)
    panel.set_xlabel(chart.x, fontsize=8)
    panel.set_ylabel(chart.y, fontsize=8)
    panel.tick_params(labelsize=7, which="both")
    panel.grid(alpha=0.25)
    panel.spines[["top", "right"]].set_visible(False)


LOST_WIDTH = 0.1
"""Width of the column for values beyond the end of the axis, as a share of its length."""


def _dots(plt: Any, chart: DotChart) -> Any:
    shown = chart.looks
    strips = sum(max(1, len(category.dots)) for category in chart.categories)
    height = 1.3 + 0.1 * strips + 0.12 * len(chart.categories)
    figure, panel = plt.subplots(figsize=(9.5, max(2.2, height)), layout="constrained")
    values = [
        v for category in chart.categories for d in category.dots for v in (*d.values, d.low, d.high) if v is not None
    ]
    known = [value for value in values if math.isfinite(value)] + list(chart.x_shows)
    low, high = min(known), max(known)
    outside = high + 0.13 * (high - low or 1.0)
    places, at = [], 0.0
    for category in chart.categories:
        start = at
        for dots in sorted(category.dots, key=lambda entry: list(shown).index(entry.name)):
            colour = shown[dots.name].light
            if chart.bars and dots.middle is not None:
                panel.plot([0, min(dots.middle, outside)], [-at, -at], color=colour, linewidth=2.4, alpha=0.35)
            if dots.low is not None and dots.high is not None:
                panel.plot([dots.low, dots.high], [-at, -at], color=colour, linewidth=1.6)
            within = [value for value in dots.values if math.isfinite(value)]
            lost = len(dots.values) - len(within)  # drawn next to each other
            step = min(0.012, LOST_WIDTH / max(lost, 1)) * (high - low)
            apart = [outside + step * (place - (lost - 1) / 2) for place in range(lost)]
            panel.scatter(within + apart, [-at] * len(dots.values), color=colour, s=20)
            at += 1.0
        places.append(-(start + at - 1.0) / 2)
        at += 1.0
    panel.set_yticks(places, [category.label for category in chart.categories])
    panel.set_xlabel(chart.x, fontsize=9)
    panel.xaxis.set_major_formatter(lambda value, _: short_number(value, chart.unit))
    margin = 0.02 * (high - low or 1.0)
    right = outside + LOST_WIDTH / 2 * (high - low) if chart.beyond else high + margin
    panel.set_xlim(low - (margin if low < 0 else 0.0), right + margin)
    if chart.beyond and any(math.isinf(value) for value in values):
        panel.axvline((high + outside) / 2, color="0.8", linewidth=1)
        ticks = [tick for tick in panel.get_xticks() if low <= tick <= high]
        panel.set_xticks([*ticks, outside], [*(short_number(tick, chart.unit) for tick in ticks), chart.beyond])
    if low < 0:
        panel.axvline(0, color="0.6", linewidth=1)
    legend = len(shown) > 1 and not chart.named
    legend_rows = -(-len(shown) // LEGEND_COLUMNS) if legend else 0
    panel.set_title(chart.title, fontsize=10, pad=6 + 18 * legend_rows)
    if legend:
        from matplotlib.lines import Line2D

        handles = [Line2D([], [], color=look.light, marker="o", linewidth=2.4) for look in shown.values()]
        titles = [look.title for look in shown.values()]
        panel.legend(
            handles,
            titles,
            ncols=LEGEND_COLUMNS,
            frameon=False,
            fontsize=8,
            loc="lower center",
            bbox_to_anchor=(0.45, 1.0),
        )
    panel.tick_params(axis="y", length=0)
    panel.spines[["top", "right", "left"]].set_visible(False)
    return figure


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
