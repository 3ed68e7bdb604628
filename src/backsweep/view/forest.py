"""Trees over the states: the parent of a state is one step nearer to an end, or to a start.

States from which an end can be reached form trees with the ends as roots. The others form trees with the starts of
episodes as roots, along the direction of time.
"""

from __future__ import annotations

from dataclasses import dataclass

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
