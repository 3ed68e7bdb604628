"""The charts as pictures."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from backsweep.lab.report.charts import Chart, Facet

FEWEST_PER_PROCESS = 4  # starting one takes about as long as so many pictures
LEGEND_COLUMNS = 7

COLOURS = (
    *("#d1495b", "#2e6f95", "#4c9f70", "#8d6a9f", "#c98b1b", "#3a7d7c", "#7a7a7a", "#b5651d", "#5b5ea6", "#a23b72"),
    *("#6a994e", "#e07a5f", "#264653"),
)
METHOD_PLACES = {
    **{"ter": 0, "uer": 1, "per": 2, "ebu": 3, "discor": 4, "graph": 5, "ter-shuffled": 6, "ter-mixed": 7, "n-step": 8},
    **{"ceer": 9, "graph-backup": 10, "erlam": 11, "gap": 12},
}


def colour_places(names: list[str]) -> dict[str, int]:
    """Return a colour for each line; a method has the same one everywhere."""
    places = {name: METHOD_PLACES[name] for name in names if name in METHOD_PLACES}
    free = [place for place in range(len(COLOURS)) if place not in places.values()]
    for name in names:
        if name not in places:
            places[name] = free.pop(0) if free else len(places) % len(COLOURS)
    return places


def draw_all(charts: Mapping[Path, Chart], processes: int) -> None:
    """Write a picture for every chart, several at a time: one takes half a second, and there may be dozens."""
    workers = min(processes, len(charts) // FEWEST_PER_PROCESS)
    if workers < 2:
        for path, chart in charts.items():
            draw(chart, path)
        return
    # New processes rather than copies of this one, whose threads a copy would not have.
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        for done in [pool.submit(draw, chart, path) for path, chart in charts.items()]:
            done.result()


def draw(chart: Chart, path: Path) -> None:
    """Write a chart's chosen views side by side into a PNG."""
    try:
        import matplotlib
    except ImportError as error:
        raise ImportError("pictures need matplotlib: pip install 'backsweep[report]'") from error
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    chosen = [chart.facets[place] for place in chart.pictured if place < len(chart.facets)]
    columns = min(len(chosen), 4)
    rows = -(-len(chosen) // columns)
    names = list(dict.fromkeys(line.name for facet in chart.facets for line in facet.series))
    places = colour_places(names)
    width, height = max(5.2, 3.9 * columns), 3.4 * rows + 0.5
    across = min(len(names), LEGEND_COLUMNS)
    # Margins in inches: matplotlib's own layout would draw everything twice to find them.
    below = 0.5 + 0.2 * -(-len(names) // across)
    figure, panels = plt.subplots(rows, columns, figsize=(width, height), squeeze=False)
    figure.subplots_adjust(
        left=0.65 / width,
        right=1 - 0.15 / width,
        bottom=below / height,
        top=1 - 0.65 / height,
        wspace=0.65 / (width / columns - 0.65),
        hspace=0.85 / (height / rows - 0.85),
    )
    for panel, facet in zip(panels.flat, chosen, strict=False):
        _panel(panel, chart, facet, places)
    for panel in list(panels.flat)[len(chosen) :]:
        panel.set_visible(False)
    handles, labels = panels.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncols=across, frameon=False, fontsize=8)
    figure.suptitle(chart.title, fontsize=10, y=1 - 0.08 / height, va="top")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _panel(panel: Any, chart: Chart, facet: Facet, places: dict[str, int]) -> None:
    from matplotlib.ticker import EngFormatter

    for line in facet.series:
        colour = COLOURS[places[line.name]]
        if line.points:
            ends = [[y - low for y, low in zip(line.y, line.low, strict=True)]]
            ends.append([high - y for y, high in zip(line.y, line.high, strict=True)])
            panel.errorbar(line.x, line.y, yerr=ends, color=colour, label=line.name, fmt="o", capsize=3)
            continue
        style = {"drawstyle": "steps-post"} if line.steps else {}
        panel.plot(line.x, line.y, color=colour, label=line.name, linewidth=1.6, **style)
        if line.low:
            panel.fill_between(line.x, line.low, line.high, color=colour, alpha=0.15, linewidth=0)
    if chart.log_x:
        panel.set_xscale("log")
    else:
        panel.xaxis.set_major_formatter(EngFormatter(sep=""))  # 1.5M, not 1.5 and a power of ten in a corner
    if chart.log_y:
        panel.set_yscale("log")
    low, high = panel.get_ylim()
    room = 0.03 * (high - low) if len(chart.y_shows) > 1 else 0.0
    for value in chart.y_shows:
        low, high = min(low, value - room), max(high, value + room)
    if 0.0 in chart.y_shows and all(value >= 0 for line in facet.series for value in (*line.y, *line.low)):
        low = -room
    panel.set_ylim(low, high)
    panel.set_title(facet.label.replace(", ", ",\n", 1), fontsize=8)
    panel.set_xlabel(chart.x, fontsize=8)
    panel.set_ylabel(chart.y, fontsize=8)
    panel.tick_params(labelsize=7, which="both")
    panel.grid(alpha=0.25)
    panel.spines[["top", "right"]].set_visible(False)
