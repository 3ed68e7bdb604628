"""The chart of docs/performance.md: every library over the floor, on each kind of processor, as an SVG."""

from __future__ import annotations

import math
from xml.sax.saxutils import escape

from benchmarks.libraries import PEERS
from benchmarks.records import Records

GROUPS: tuple[tuple[str, str, tuple[tuple[str, str], ...], str], ...] = (
    (
        "sample 64 images, uniform",
        "ratio",
        (
            ("backsweep Uniform", "sample/obs40/uniform/fresh"),
            ("backsweep Topological", "sample/obs40/topological/fresh"),
        ),
        "sample/obs40/uniform/",
    ),
    (
        "sample 64 images, with priorities, and update",
        "ratio",
        (
            ("backsweep Prioritized", "sample/obs40/prioritized/fresh"),
            ("backsweep Mixture", "sample/obs40/mixture/fresh"),
        ),
        "sample/obs40/prioritized/",
    ),
    ("add an image", "ratio", (("backsweep Topological", "add/1/topological/fresh"),), "add/1/"),
    ("add a vector of 4", "ratio", (("backsweep Mixture", "add/vector/1/mixture"),), "add/vector/1/"),
    ("memory, images that never repeat", "frames", (("backsweep Mixture", "memory/fresh/mixture"),), "memory/"),
    ("memory, 10k different images", "frames", (("backsweep Mixture", "memory/grid/mixture"),), "memory/"),
)
"""Title, number, our bars (name, cell) and how the peers' cells begin."""

LEFT, WIDTH, BAR, GAP, HEAD = 190, 760, 15, 4, 26
LOWEST, HIGHEST = 1 / 32, 128.0
OURS, THEIRS = ("#2458a6", "#6f9ad6", "#a9c4ea"), ("#9aa2ad", "#c3c9d1", "#dde1e6")
"""Colours of our bars and of the peers', for the first kind of processor, the second and the rest."""


def chart(records: Records) -> str:
    """Return the chart as the text of an SVG file; what was not measured is left out."""
    lines: list[str] = []
    top = 34
    for title, number, ours, prefix in GROUPS:
        bars = [(name, cell, OURS) for name, cell in ours] + [(peer, f"{prefix}{peer}", THEIRS) for peer in PEERS]
        known = [(name, _values(records, cell, number), colours) for name, cell, colours in bars]
        known = [bar for bar in known if any(value is not None for value in bar[1])]
        if not known:
            continue
        lines.append(f'<text x="0" y="{top + 12}" font-weight="600">{escape(title)}</text>')
        top += HEAD - 6
        for name, values, colours in known:
            lines += _bar(name, values, colours, top)
            top += BAR + GAP
        top += 14
    named = list(records)
    key = f"upper bars {named[0]}, lower bars {' and '.join(named[1:])}; " if len(named) > 1 else ""
    one = _place(1.0)
    axis = [
        f'<line x1="{one:.1f}" y1="24" x2="{one:.1f}" y2="{top - 10}" stroke="#c0392b" stroke-width="1.5"/>',
        '<text x="0" y="16" fill="#c0392b">1 x: plain numpy, or one frame</text>',
    ]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="-10 0 {WIDTH + 20} {top}" font-family="sans-serif" '
            'font-size="12" role="img" aria-label="Time and memory of each library as multiples of the floor; '
            'shorter is better, the scale is logarithmic">',
            f'<rect x="-10" y="0" width="{WIDTH + 20}" height="{top}" fill="#ffffff"/>',
            *lines,
            *axis,
            f'<text x="{WIDTH}" y="16" text-anchor="end" fill="#555">{key}shorter is better; logarithmic</text>',
            "</svg>",
            "",
        ]
    )


def _values(records: Records, cell: str, number: str) -> list[float | None]:
    return [record["cells"].get(cell, {}).get("numbers", {}).get(number) for record in records.values()]


def _place(value: float) -> float:
    share = math.log(min(max(value, LOWEST), HIGHEST) / LOWEST) / math.log(HIGHEST / LOWEST)
    return LEFT + share * (WIDTH - LEFT - 80)


def _bar(name: str, values: list[float | None], colours: tuple[str, ...], top: int) -> list[str]:
    """Return one line of the chart: a name, a bar for each processor, and the numbers."""
    lines = [f'<text x="{LEFT - 6}" y="{top + 12}" text-anchor="end" fill="#333">{escape(name)}</text>']
    height = BAR / len(values)
    for index, value in enumerate(values):
        if value is not None:
            place, width = top + index * height, _place(value) - LEFT
            colour = colours[min(index, len(colours) - 1)]
            lines.append(
                f'<rect x="{LEFT}" y="{place:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{colour}"/>'
            )
    end = max(_place(value) for value in values if value is not None)
    shown = ", ".join("-" if value is None else f"{value:.2f}" for value in values)
    lines.append(f'<text x="{end + 5:.1f}" y="{top + 12}" fill="#333">{shown}</text>')
    return lines
