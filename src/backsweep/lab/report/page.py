"""The page: one HTML file with its style, scripts and data inside, which opens from disk."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backsweep.agent.palette import METHODS, SHADES, SPARE, Look, looks, shaded
from backsweep.lab.report.answers import Report
from backsweep.lab.report.chart import CARD_CATEGORIES, AnyChart
from backsweep.lab.report.comparison import comparison_html
from backsweep.lab.report.sections import cards_html, chain_player, contents_html, details_html, hero_html, remarks_html
from backsweep.lab.report.solving_time import soonest_chart
from backsweep.tasks.pictures import png_bytes, task_pictures

SCRIPTS = ("tools.js", "lines.js", "dots.js", "chart.js", "chain.js", "page.js")
STYLES = ("page.css", "charts.css")


def page_of(report: Report, *, files: bool = True) -> str:
    """Return the whole page; `files` says whether pictures and tables are stored next to it and linked."""
    data = page_data(report)
    text = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
    with_chain = data["chain"] is not None
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>backsweep: which replay learns soonest?</title>
<link rel="icon" href="data:,">
<style>
{colours()}
{"".join(map(_asset, STYLES))}</style>
</head>
<body>
<a class="skip" href="#main">Skip to the content</a>
<header class="bar"><a href="#top">backsweep</a><button type="button" id="menu" aria-expanded="false"
 aria-controls="contents">Contents</button></header>
{contents_html(report, with_chain)}
<main id="main">
<noscript><p>Charts need JavaScript; their numbers are in the tables below.</p></noscript>
{hero_html(report, with_chain)}
{cards_html(report)}
{comparison_html(report)}
{details_html(report, files)}
{remarks_html(report)}
</main>
<script type="application/json" id="data">{text}</script>
<script>
{"".join(map(_asset, SCRIPTS))}</script>
</body>
</html>
"""


def page_data(report: Report) -> dict[str, Any]:
    """Return the data that the scripts draw."""
    charts: list[AnyChart] = [chart for answer in report.answers for chart in answer.charts]
    if report.soonest is not None:
        charts.insert(0, soonest_chart(report.soonest))
    chain = chain_player(report)
    if chain is not None:
        chain["looks"] = _looks(looks(list(chain["views"][0]["traces"])))
    tasks = [task for chart in charts for task in (place.task for place in chart.places)]
    return {
        "charts": {chart.name: {**chart.to_json(), "looks": _looks(chart.looks)} for chart in charts},
        "card_categories": CARD_CATEGORIES,
        "chain": chain,
        "pictures": thumbnails(tasks),
    }


def _looks(lines: Mapping[str, Look]) -> dict[str, dict[str, str]]:
    """Return the title and the CSS colour of each line."""
    variables = {pair: name for name, pair in _variables().items()}
    return {
        name: {"title": look.title, "colour": f"var({variables[look.light, look.dark]})"}
        for name, look in lines.items()
    }


def _variables() -> dict[str, tuple[str, str]]:
    """Return the colours of all lines, light and dark, by the name of their CSS variable."""
    found: dict[str, tuple[str, str]] = {}
    for name, look in METHODS.items():
        variable = "--" + name.replace(", ", "-").replace(" ", "-")
        for shade in range(len(SHADES)):
            mixed = shaded(look, shade, look.title)
            found[f"{variable}-{shade}" if shade else variable] = mixed.light, mixed.dark
    return found | {f"--spare-{place}": pair for place, pair in enumerate(SPARE)}


def colours() -> str:
    """Return the palette as CSS variables, for light and dark mode."""
    every = _variables()
    light, dark = (" ".join(f"{name}: {pair[place]};" for name, pair in every.items()) for place in (0, 1))
    return f":root {{ {light} }}\n@media (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}"


def _asset(name: str) -> str:
    return resources.files("backsweep.lab.report").joinpath("assets", name).read_text(encoding="utf-8") + "\n"


LONGEST = 128  # pixels of the longer side


def thumbnails(tasks: Iterable[str]) -> dict[str, str]:
    """Return a picture of each task that can be drawn, as a data URI."""
    found = {task: thumbnail(task) for task in dict.fromkeys(tasks) if task}
    return {task: picture for task, picture in found.items() if picture is not None}


def thumbnail(task: str) -> str | None:
    """Return a task's first level as a data URI; None if the task is unknown or its extra is not installed."""
    try:
        if task.startswith("atari/"):
            _quieten_emulator()
        (picture,) = task_pictures(task, 1)
    except (ImportError, ValueError):
        return None
    return "data:image/png;base64," + base64.b64encode(png_bytes(smaller(picture))).decode()


def _quieten_emulator() -> None:
    """Keep Atari's emulator from printing its banner."""
    from ale_py import ALEInterface, LoggerMode

    ALEInterface.setLoggerMode(LoggerMode.Error)


def smaller(picture: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return a picture reduced by averaging to at most 128 pixels on its longer side."""
    factor = -(-max(picture.shape[:2]) // LONGEST)
    height, width = (size // factor for size in picture.shape[:2])
    squares = picture[: height * factor, : width * factor].reshape(height, factor, width, factor, 3)
    result: NDArray[np.uint8] = squares.mean(axis=(1, 3)).round().astype(np.uint8)
    return result
