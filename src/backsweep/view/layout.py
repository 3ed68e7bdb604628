"""The position of each state: ends in the middle, each step further away on a ring further out.

A tree gets a share of the circle in proportion to its size, and so does each branch inside it. States from which no end
can be reached are in a second disc to the right, with the starts of episodes in its middle. In the first disc the
parent of a state is one step nearer to an end; in the second, to a start, against the direction of time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from backsweep.graph.distances import Indices, reverse_distances
from backsweep.view.facts import Facts

MOST_EXTRA_ROOTS = 50


@dataclass(frozen=True)
class Forest:
    """The trees."""

    reaches_end: NDArray[np.bool_]
    distance: Indices
    """Steps to the nearest end; where none can be reached, steps from the nearest start."""
    parent: Indices
    """The parent of each state, -1 for roots."""
    size: Indices
    """The size of each state's subtree, itself included."""

    def pick(self, kept: Indices, new: Indices) -> Forest:
        """Return the trees of the `kept` states, whose parents are kept too; `new` has their new numbers."""
        parent = np.where(self.parent[kept] < 0, -1, new[self.parent[kept]])
        reaches, distance = self.reaches_end[kept], self.distance[kept]
        return Forest(reaches, distance, parent, _sizes(distance, parent))


def grow_forest(facts: Facts) -> Forest:
    """Return the trees towards the nearest ends or starts."""
    count, source, target = len(facts), facts.source, facts.target
    distance = reverse_distances(count, source, target, np.flatnonzero(facts.terminal))
    reaches = distance >= 0
    parent = _parents(distance, source, target, count)
    inside = ~reaches[source] & ~reaches[target]
    before, after = source[inside], target[inside]
    others = _distances_from_starts(facts, reaches, before, after)
    outside = _parents(others, after, before, count)
    distance, parent = np.where(reaches, distance, others), np.where(reaches, parent, outside)
    return Forest(reaches, distance, parent, _sizes(distance, parent))


def _distances_from_starts(facts: Facts, reaches: NDArray[np.bool_], before: Indices, after: Indices) -> Indices:
    """Return the distance from a start of states that reach no end, -1 for all others."""
    count = len(facts)
    entered = np.zeros(count, np.bool_)
    entered[after[before != after]] = True
    roots = np.flatnonzero(~reaches & (facts.start | ~entered))
    distance = reverse_distances(count, after, before, roots)
    for _ in range(MOST_EXTRA_ROOTS):
        # Cycles whose entry is no longer stored.
        left = np.flatnonzero(~reaches & (distance < 0))
        if not len(left):
            return distance
        roots = np.append(roots, left[0])
        distance = reverse_distances(count, after, before, roots)
    distance[~reaches & (distance < 0)] = 0
    return distance


def _parents(distance: Indices, source: Indices, target: Indices, count: int) -> Indices:
    """Return a successor of each state that is a step nearer, -1 at distance 0 or -1."""
    parent = np.full(count, -1, np.int64)
    nearer = (distance[source] > 0) & (distance[target] == distance[source] - 1)
    parent[source[nearer]] = target[nearer]
    return parent


def _sizes(distance: Indices, parent: Indices) -> Indices:
    size = np.ones(len(distance), np.int64)
    for layer in reversed(layers(distance)):
        children = layer[parent[layer] >= 0]
        np.add.at(size, parent[children], size[children])
    return size


def layers(distance: Indices) -> list[Indices]:
    """Return the states at each distance, nearest first."""
    if not len(distance):
        return []
    order = np.argsort(distance, kind="stable")
    ends = np.cumsum(np.bincount(distance))
    return np.split(order, ends[:-1])


def most_important(forest: Forest, visits: Indices, most: int) -> Indices:
    """Return at most `most` states: those with the largest subtrees, then the most visited ones.

    A parent's subtree is larger than its child's, so the parents of kept states are kept too.
    """
    if len(visits) <= most:
        return np.arange(len(visits))
    order = np.lexsort((-visits, -forest.size))
    return np.sort(order[:most])


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
