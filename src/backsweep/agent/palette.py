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
"""For lines that are no method, such as steps of a study. None is the colour of a method."""

SHADES = (0.0, 0.3, 0.55)
"""For a method with several settings: how far its colour goes to black, in dark mode to white."""


def title_of(name: str) -> str:
    """Return what a reader calls a method; "uer at 0.25" and "ebu, beta 0" keep what follows the method's name."""
    if name in METHODS:
        return METHODS[name].title
    method, between, rest = _setting_of(name)
    if between == ", ":
        return f"{METHODS[method].title} ({rest.removeprefix(f'{method}_').replace('_', ' ')})"
    return f"{METHODS[method].title} at {rest}" if between else name


def _setting_of(name: str) -> tuple[str, str, str]:
    """Return the parts of "uer at 0.25" or "ebu, beta 0": method, what is between, setting; else three empty ones."""
    for between in (", ", " at "):
        method, found, rest = name.partition(between)
        if found and method in METHODS:
            return method, between, rest
    return "", "", ""


def in_order(names: Iterable[str]) -> list[str]:
    """Return names without repeats in the legend's order; what is no method comes last, as it was given."""
    given = list(dict.fromkeys(names))
    known = list(METHODS)
    return sorted(given, key=lambda name: known.index(name) if name in METHODS else len(known))


def looks(names: Sequence[str]) -> dict[str, Look]:
    """Return how each line of a chart is shown, in the legend's order.

    Settings of a method are shades of its colour, unless there are too many of them to be told apart.
    """
    order = in_order(names)
    found = {name: METHODS[name] for name in order if name in METHODS}
    families: dict[str, list[str]] = {}
    for name in order:
        families.setdefault(name if name in METHODS else _setting_of(name)[0], []).append(name)
    spare = 0
    for name in (name for name in order if name not in METHODS):
        method = _setting_of(name)[0]
        if method and len(families[method]) <= len(SHADES):
            found[name] = shaded(METHODS[method], families[method].index(name), title_of(name))
        else:
            found[name] = Look(title_of(name), *SPARE[spare % len(SPARE)])
            spare += 1
    return found


def shaded(look: Look, shade: int, title: str) -> Look:
    """Return a look in another shade of its colours."""
    return Look(title, _mixed(look.light, 0, SHADES[shade]), _mixed(look.dark, 255, SHADES[shade]))


def _mixed(colour: str, end: int, share: float) -> str:
    """Return a colour that goes a share of the way to black (0) or white (255)."""
    parts = (int(colour[place : place + 2], 16) for place in (1, 3, 5))
    return "#" + "".join(f"{round(part + share * (end - part)):02x}" for part in parts)


def pyplot(extra: str) -> Any:
    """Return matplotlib.pyplot, which draws into files; `extra` is the extra of this package that installs it."""
    try:
        import matplotlib
    except ImportError as error:
        raise ImportError(f"pictures need matplotlib: pip install 'backsweep[{extra}]'") from error
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    return plt
