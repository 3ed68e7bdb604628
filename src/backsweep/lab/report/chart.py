"""Charts as data, from which the page and the picture files are drawn."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from backsweep.agent.palette import Look, looks, title_of
from backsweep.lab.stats import kaplan_meier

Unit = Literal["", "percent"]
CARD_CATEGORIES = 8
"""The largest number of categories of a dot chart that a card shows."""


@dataclass(frozen=True)
class Series:
    """One line, with a band if `low` and `high` are given."""

    name: str
    x: list[float]
    y: list[float]
    low: list[float] = field(default_factory=list)
    high: list[float] = field(default_factory=list)
    steps: bool = False
    """Whether the line is a step function."""
    points: bool = False
    """Whether to draw points with error bars instead of a line with a band."""

    @classmethod
    def of_solved(
        cls, name: str, times: Sequence[float], happened: Sequence[bool], first: float, last: float
    ) -> Series:
        """Return the share of runs that have solved their task by each time between two: one minus Kaplan-Meier."""
        at, waiting = kaplan_meier(times, happened)
        share = [0.0, *(1.0 - waiting).tolist()]
        return cls(name, [first, *at.tolist(), last], [*share, share[-1]], steps=True)


@dataclass(frozen=True)
class Facet:
    """One view of a chart, selected by the reader."""

    label: str
    series: list[Series]
    task: str = ""
    """Its task, for its picture and for switching all charts of a claim together."""


@dataclass(frozen=True)
class Chart:
    """Lines over an axis, in one view or more."""

    name: str
    title: str
    x: str
    y: str
    facets: list[Facet]
    log_x: bool = False
    log_y: bool = False
    y_shows: tuple[float, ...] = (0.0,)
    """Values that the y axis must include."""
    y_unit: Unit = ""
    pictured: tuple[int, ...] = (0,)
    """The views in the picture file."""
    first: int = 0
    """The view that the page shows first, unless it shows all."""
    known: tuple[str, ...] = ()
    """The lines of all charts of its question, which have the same colour and order in each."""

    @property
    def looks(self) -> dict[str, Look]:
        """How each line is shown, in the legend's order."""
        return _looks(self.known, (line.name for facet in self.facets for line in facet.series))

    @property
    def places(self) -> list[Facet]:
        """Its views."""
        return self.facets

    @property
    def together(self) -> bool:
        """Whether the page may show all views at once: if each is about a task."""
        return 1 < len(self.facets) <= 12 and all(facet.task for facet in self.facets)

    def entries(self) -> Iterator[dict[str, Any]]:
        """Yield every point, for CSV."""
        for facet in self.facets:
            for line in facet.series:
                for place, (x, y) in enumerate(zip(line.x, line.y, strict=True)):
                    band = {"low": line.low[place], "high": line.high[place]} if line.low else {}
                    yield {"view": facet.label, "line": line.name, self.x: x, self.y: y} | band

    def to_json(self) -> dict[str, Any]:
        """Return the chart as plain JSON, numbers rounded to four digits."""
        plain: dict[str, Any] = _short(dataclasses.asdict(self))
        return {"kind": "lines", **plain, "together": self.together, "lines": list(self.looks)}


@dataclass(frozen=True)
class Dots:
    """The values of one line in one category, as dots, and their median."""

    name: str
    values: list[float]
    middle: float | None = None
    low: float | None = None
    high: float | None = None
    note: str = ""
    """A note next to the value, such as how many runs got there."""


@dataclass(frozen=True)
class DotCategory:
    """One category of a dot chart, with a strip for each line."""

    label: str
    dots: list[Dots]
    task: str = ""


@dataclass(frozen=True)
class DotChart:
    """Dots along one axis, for categories without an order such as tasks or seeds."""

    name: str
    title: str
    x: str
    categories: list[DotCategory]
    x_shows: tuple[float, ...] = (0.0,)
    """Values that the axis must include."""
    unit: Unit = ""
    bars: bool = False
    """Whether to draw a bar from 0 to the median."""
    beyond: str = ""
    """Label of infinite values, which are drawn to the right of the axis."""
    known: tuple[str, ...] = ()
    """The lines of all charts of its question, which have the same colour and order in each."""

    @property
    def looks(self) -> dict[str, Look]:
        """How each line is shown, in the legend's order."""
        return _looks(self.known, (dots.name for category in self.categories for dots in category.dots))

    @property
    def places(self) -> list[DotCategory]:
        """Its categories."""
        return self.categories

    @property
    def named(self) -> bool:
        """Whether the label of each category names its only line, so that no legend is needed."""
        return all([title_of(dots.name) for dots in category.dots] == [category.label] for category in self.categories)

    def entries(self) -> Iterator[dict[str, Any]]:
        """Yield every dot, for CSV."""
        for category in self.categories:
            for dots in category.dots:
                band = {} if dots.low is None else {"low": dots.low, "high": dots.high}
                for value in dots.values:
                    yield {"row": category.label, "line": dots.name, self.x: value} | band

    def to_json(self) -> dict[str, Any]:
        """Return the chart as plain JSON; infinite values are null."""
        return {"kind": "dots", **_short(dataclasses.asdict(self)), "lines": list(self.looks), "named": self.named}


AnyChart = Chart | DotChart


def _looks(known: tuple[str, ...], own: Iterable[str]) -> dict[str, Look]:
    """Return the looks of a chart's own lines, among all that are known."""
    names = dict.fromkeys(own)
    return {name: look for name, look in looks((*known, *names)).items() if name in names}


def short_number(value: float, unit: Unit = "") -> str:
    """Return a number as an axis shows it: 250k, 1.5M, 100 billion, 20%."""
    if unit == "percent":
        return f"{100 * value:.3g}%"
    size = abs(value)
    if size >= 1e15:
        return f"1e{round(math.log10(size))}"
    for least, by, word in ((1e12, 1e12, " trillion"), (1e9, 1e9, " billion"), (1e6, 1e6, "M"), (1e4, 1e3, "k")):
        if size >= least:
            return f"{value / by:.3g}{word}"
    return f"{value:.0e}" if 0 < size < 1e-3 else f"{value:,.4g}"


def task_title(task: str) -> str:
    """Return the title of a task: DoorKey, SimpleCrossing-Hard, Sokoban 7x7-2."""
    names = {
        "doorkey": "DoorKey",
        "redbluedoors": "RedBlueDoors",
        "simplecrossing": "SimpleCrossing",
        "lavacrossing": "LavaCrossing",
        "lunarlander": "LunarLander",
    }
    family, _, rest = task.rpartition("/")
    level, _, hardness = rest.partition("-")
    if family == "sokoban":
        return f"Sokoban {rest}"
    if family == "minatar":
        return f"MinAtar {rest.replace('-', ' ').title()}"
    title = names.get(level, level.capitalize() if family else level)
    return f"{title}-{hardness.capitalize()}" if hardness and family else title + (f"-{hardness}" if hardness else "")


def _short(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _short(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_short(item) for item in value]
    if isinstance(value, float):
        return float(f"{value:.4g}") if math.isfinite(value) else None
    return value
