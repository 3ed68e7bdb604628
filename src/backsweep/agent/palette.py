"""The name, colour and order of each method, the same on all charts and pictures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Look:
    """The look of a line: its title, and its colour in light and dark mode."""

    title: str
    light: str
    dark: str


METHODS = {
    "graph": Look("graph values", "#c2410c", "#fb8a4c"),
    "graph, uniform exploration": Look("graph values, uniform exploration", "#d9578a", "#f9a8c9"),
    "graph-uniform": Look("graph values, uniform rows", "#9f1239", "#fda4af"),
    "graph-sweep": Look("graph values, swept rows", "#c27803", "#fcd9a0"),
    "ter": Look("TER", "#1d4ed8", "#7aa2ff"),
    "ter-mixed": Look("TER-mixed", "#1e293b", "#dbe3ee"),
    "ter-shuffled": Look("TER-shuffled", "#0e8fb3", "#4cc9e6"),
    "ter-single": Look("TER-single", "#b45309", "#f5b041"),
    "ter-nostitch": Look("TER-nostitch", "#4d7c0f", "#b5e04f"),
    "ter-pseudo": Look("TER-pseudo", "#3730a3", "#a5b4fc"),
    "ter-visits": Look("TER-visits", "#475569", "#b6c2d1"),
    "graph-backup": Look("Graph Backup", "#0f766e", "#4fd1c0"),
    "uer": Look("uniform", "#6b7280", "#a3adba"),
    "per": Look("PER", "#15803d", "#5fc987"),
    "ebu": Look("EBU", "#7e22ce", "#c58af9"),
    "ebu-mixed": Look("EBU-mixed", "#65a30d", "#a3e635"),
    "ebu-notimeout": Look("EBU-notimeout", "#d97706", "#fbbf24"),
    "discor": Look("DisCor", "#be185d", "#f472b6"),
    "ceer": Look("CEER", "#a16207", "#e2b13c"),
    "erlam": Look("ERLAM", "#57534e", "#c9c3bd"),
    "n-step": Look("n-step", "#0369a1", "#6cc5f7"),
    "gap": Look("advantage learning", "#c026d3", "#ee8cf5"),
}
"""In the order of the legend."""

SPARE = (
    ("#155e75", "#67e8f9"),
    ("#3f6212", "#bef264"),
    ("#5b21b6", "#c4b5fd"),
    ("#9d174d", "#f9a8d4"),
    ("#713f12", "#fde047"),
    ("#e11d48", "#fb7185"),
    ("#1e3a8a", "#93c5fd"),
    ("#7c2d12", "#fdba74"),
)
"""For lines that are no method: a setting of one, or a step of a study. None is the colour of a method."""


def title_of(name: str) -> str:
    """Return what a reader calls a method; "uer at 0.25" and "ebu, beta 0" keep what follows the method's name."""
    if name in METHODS:
        return METHODS[name].title
    method, comma, rest = name.partition(", ")
    if comma and method in METHODS:
        return f"{METHODS[method].title} ({rest.removeprefix(f'{method}_').replace('_', ' ')})"
    method, at, rest = name.partition(" at ")
    return f"{METHODS[method].title} at {rest}" if at and method in METHODS else name


def in_order(names: Iterable[str]) -> list[str]:
    """Return names without repeats in the legend's order; what is no method comes last, as it was given."""
    given = list(dict.fromkeys(names))
    known = list(METHODS)
    return sorted(given, key=lambda name: known.index(name) if name in METHODS else len(known))


def looks(names: Sequence[str]) -> dict[str, Look]:
    """Return how each line of a chart is shown, in the legend's order."""
    found = {name: METHODS[name] for name in in_order(names) if name in METHODS}
    for place, name in enumerate(name for name in in_order(names) if name not in METHODS):
        found[name] = Look(title_of(name), *SPARE[place % len(SPARE)])
    return found


def pyplot(extra: str) -> Any:
    """Return matplotlib.pyplot, which draws into files; `extra` is the extra of this package that installs it."""
    try:
        import matplotlib
    except ImportError as error:
        raise ImportError(f"pictures need matplotlib: pip install 'backsweep[{extra}]'") from error
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    return plt
