"""The charts as pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from backsweep.report.charts import Chart, Facet

COLOURS = ("#d1495b", "#2e6f95", "#4c9f70", "#8d6a9f", "#c98b1b", "#3a7d7c", "#7a7a7a", "#b5651d", "#5b5ea6", "#a23b72")
METHOD_PLACES = {"ter": 0, "uer": 1, "per": 2, "ebu": 3, "discor": 4, "ter-shuffled": 6, "ter-mixed": 7}


def colour_places(names: list[str]) -> dict[str, int]:
    """Return a colour for each line; a method has the same one everywhere."""
    places = {name: METHOD_PLACES[name] for name in names if name in METHOD_PLACES}
    free = [place for place in range(len(COLOURS)) if place not in places.values()]
    for name in names:
        if name not in places:
            places[name] = free.pop(0) if free else len(places) % len(COLOURS)
    return places


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
    size = (max(5.2, 3.9 * columns), 3.4 * rows + 0.5)
    figure, panels = plt.subplots(rows, columns, figsize=size, squeeze=False, layout="constrained")
    places = colour_places(list(dict.fromkeys(line.name for facet in chart.facets for line in facet.series)))
    for panel, facet in zip(panels.flat, chosen, strict=False):
        _panel(panel, chart, facet, places)
    for panel in list(panels.flat)[len(chosen) :]:
        panel.set_visible(False)
    handles, labels = panels.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=min(len(labels), 7), frameon=False, fontsize=8)
    figure.suptitle(chart.title, fontsize=10)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _panel(panel: Any, chart: Chart, facet: Facet, places: dict[str, int]) -> None:
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
