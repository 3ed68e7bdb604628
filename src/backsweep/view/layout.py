"""The position of each state: ends in the middle, each step further away on a ring further out.

A tree gets a share of the circle in proportion to its size, and so does each branch inside it. States from which no end
can be reached are in a second disc to the right, with the starts of episodes in its middle.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from backsweep.view.forest import Forest, layers

AREA = 0.45
"""The area of a state, in squares of the distance between two thin rings."""
GOLDEN = 0.6180339887498949
GAP = 0.12
"""Between the two discs, as a share of the larger radius."""


class Disc(NamedTuple):
    """A circle that states were placed in."""

    x: float
    y: float
    radius: float


class Layout(NamedTuple):
    """The positions of states."""

    position: NDArray[np.float32]
    """(states, 2)."""
    ends: Disc | None
    """The disc of states that reach an end; None if there are none."""
    others: Disc | None


def place(forest: Forest) -> Layout:
    """Place every state."""
    position = np.zeros((len(forest.parent), 2))
    discs: list[Disc | None] = []
    for reaches in (True, False):
        members = np.flatnonzero(forest.reaches_end == reaches)
        if not len(members):
            discs.append(None)
            continue
        new = np.full(len(forest.parent), -1, np.int64)
        new[members] = np.arange(len(members))
        places, radius = place_disc(forest.pick(members, new))
        first = discs[0] if discs else None
        x = 0.0 if first is None else first.radius + radius + GAP * max(first.radius, radius)
        position[members] = places + np.array([x, 0.0])
        discs.append(Disc(x, 0.0, radius))
    return Layout(position.astype(np.float32), discs[0], discs[1])


def place_disc(forest: Forest) -> tuple[NDArray[np.float64], float]:
    """Return positions around the origin, and the radius of their disc."""
    angle, radius = np.zeros(len(forest.parent)), np.zeros(len(forest.parent))
    begin, width = np.zeros(len(forest.parent)), np.zeros(len(forest.parent))
    inner, outer = 0.0, 0.0
    for depth, unordered in enumerate(layers(forest.distance)):
        layer = unordered
        share = forest.size[layer].astype(np.float64)
        if depth == 0:
            width[layer] = 2 * np.pi * share / share.sum()
            begin[layer] = np.cumsum(width[layer]) - width[layer]
        else:
            layer = unordered[np.argsort(begin[forest.parent[unordered]], kind="stable")]
            share, parent = forest.size[layer].astype(np.float64), forest.parent[layer]
            before = np.cumsum(share) - share
            first = np.flatnonzero(np.diff(parent, prepend=-2))
            offset = before - np.repeat(before[first], np.diff(first, append=len(layer)))
            branches = forest.size[parent] - 1
            width[layer] = width[parent] * share / branches
            begin[layer] = begin[parent] + width[parent] * offset / branches
        angle[layer] = begin[layer] + width[layer] / 2
        inner, thickness = _ring(depth, outer, len(layer))
        # In a thick ring states are spread from its inner to its outer edge, neighbours far apart.
        radius[layer] = inner + (np.arange(len(layer)) * GOLDEN % 1.0) * thickness
        outer = inner + thickness
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1), max(outer, 1.0)


def _ring(depth: int, outer: float, count: int) -> tuple[float, float]:
    """Return the inner radius and the thickness of the next ring, which must fit `count` states."""
    if depth == 0:
        # One root is the centre; several are a small disc around it.
        return (0.0, 0.0) if count == 1 else (0.35, max(0.3, np.sqrt(count * AREA / np.pi)) - 0.3)
    inner = outer + 1.0
    needed = count * AREA / (2 * np.pi * inner)
    return inner, max(0.0, needed - 1.0)
