"""Distances of all vertices to a set of vertices, along the edges."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.int64]


def reverse_distances(count: int, source: Indices, target: Indices, starts: Indices) -> Indices:
    """Return the smallest number of edges from each of `count` vertices to any of `starts`, -1 without a path.

    Parameters
    ----------
    count
        Vertices are numbered 0 to count - 1.
    source, target
        The vertices of each edge; edges may repeat.
    starts
        Vertices at distance 0, such as the terminal ones.
    """
    before = source[np.argsort(target, kind="stable")]
    first = np.zeros(count + 1, np.int64)
    np.cumsum(np.bincount(target, minlength=count), out=first[1:])
    distance = np.full(count, -1, np.int64)
    frontier, depth = np.unique(starts), 0
    while len(frontier):
        distance[frontier] = depth
        sizes = first[frontier + 1] - first[frontier]
        # The places of all edges into the frontier: blocks of `sizes` places that begin at `first`.
        places = np.arange(sizes.sum()) + np.repeat(first[frontier] - np.cumsum(sizes) + sizes, sizes)
        found = before[places]
        frontier, depth = np.unique(found[distance[found] < 0]), depth + 1
    return distance
