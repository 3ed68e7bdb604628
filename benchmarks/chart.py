"""The chart of docs/performance.md: every library over the floor, as an SVG."""

from __future__ import annotations

import math
from typing import Any
from xml.sax.saxutils import escape

from benchmarks.libraries import PEERS

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
OURS, THEIRS = "#2458a6", "#b7bdc6"


def chart(found: dict[str, dict[str, Any]]) -> str:
    """Return the chart as the text of an SVG file; what was not measured is left out."""
    lines: list[str] = []
    top = 34
    for title, number, ours, prefix in GROUPS:
        bars = [(name, cell, OURS) for name, cell in ours] + [(peer, f"{prefix}{peer}", THEIRS) for peer in PEERS]
        known = [
            (name, found[cell]["numbers"][number], colour) for name, cell, colour in bars if _has(found, cell, number)
        ]
        if not known:
            continue
        lines.append(f'<text x="0" y="{top + 12}" font-weight="600">{escape(title)}</text>')
        top += HEAD - 6
        for name, value, colour in known:
            lines += _bar(name, value, colour, top)
            top += BAR + GAP
        top += 14
    one = _place(1.0)
    axis = [
        f'<line x1="{one:.1f}" y1="24" x2="{one:.1f}" y2="{top - 10}" stroke="#c0392b" stroke-width="1.5"/>',
        f'<text x="{one:.1f}" y="16" text-anchor="middle" fill="#c0392b">1 x: plain numpy, or one frame</text>',
    ]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="-10 0 {WIDTH + 20} {top}" font-family="sans-serif" '
            'font-size="12" role="img" aria-label="Time and memory of each library as multiples of the floor; '
            'shorter is better, the scale is logarithmic">',
            f'<rect x="-10" y="0" width="{WIDTH + 20}" height="{top}" fill="#ffffff"/>',
            *lines,
            *axis,
            f'<text x="{WIDTH}" y="16" text-anchor="end" fill="#555">shorter is better; logarithmic</text>',
            "</svg>",
            "",
        ]
    )


def _has(found: dict[str, dict[str, Any]], cell: str, number: str) -> bool:
    return number in found.get(cell, {}).get("numbers", {})


def _place(value: float) -> float:
    share = math.log(min(max(value, LOWEST), HIGHEST) / LOWEST) / math.log(HIGHEST / LOWEST)
    return LEFT + share * (WIDTH - LEFT - 50)


def _bar(name: str, value: float, colour: str, top: int) -> list[str]:
    end = _place(value)
    return [
        f'<text x="{LEFT - 6}" y="{top + 12}" text-anchor="end" fill="#333">{escape(name)}</text>',
        f'<rect x="{LEFT}" y="{top}" width="{end - LEFT:.1f}" height="{BAR}" fill="{colour}"/>',
        f'<text x="{end + 5:.1f}" y="{top + 12}" fill="#333">{value:.2f}</text>',
    ]
