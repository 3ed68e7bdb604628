"""A queue of vertices in buckets of decreasing priority: what the solver updates next."""

# mypy: disable-error-code="no-any-return,arg-type,assignment,return-value"
from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from backsweep.jit.array_table import Int32Matrix, Int32Vector, Int64Vector
from backsweep.jit.compilation import inlined

BUCKETS = 1024
# Columns of queue: the neighbours in a bucket, and the bucket, each plus one.
NEXT_IN_BUCKET = 0
PREVIOUS_IN_BUCKET = 1
BUCKET = 2
QUEUE_COLUMNS = 3


class Queue(NamedTuple):
    """Vertices in buckets of decreasing priority; a vertex is in at most one bucket."""

    links: Int32Matrix
    heads: Int32Vector
    highest: Int64Vector
    """One number: no bucket above it has entries."""
    waiting: Int32Vector
    """Space for a list of vertices."""


@inlined
def leave_bucket(vertex: int, links: NDArray[np.int32], heads: NDArray[np.int32]) -> None:
    """Take a vertex out of its bucket."""
    following, previous = links[vertex, NEXT_IN_BUCKET], links[vertex, PREVIOUS_IN_BUCKET]
    if following:
        links[following - 1, PREVIOUS_IN_BUCKET] = previous
    if previous:
        links[previous - 1, NEXT_IN_BUCKET] = following
    else:
        heads[links[vertex, BUCKET] - 1] = following
    links[vertex, BUCKET] = 0


@inlined
def put(
    vertex: int, bucket: int, links: NDArray[np.int32], heads: NDArray[np.int32], highest: NDArray[np.int64]
) -> None:
    """Put a vertex into a bucket; one that is in a higher bucket stays there."""
    if links[vertex, BUCKET] > bucket:
        return
    if links[vertex, BUCKET]:
        leave_bucket(vertex, links, heads)
    first = heads[bucket]
    links[vertex, NEXT_IN_BUCKET] = first
    links[vertex, PREVIOUS_IN_BUCKET] = 0
    links[vertex, BUCKET] = bucket + 1
    if first:
        links[first - 1, PREVIOUS_IN_BUCKET] = vertex + 1
    heads[bucket] = vertex + 1
    highest[0] = max(highest[0], bucket)


@inlined
def take_highest(links: NDArray[np.int32], heads: NDArray[np.int32], highest: NDArray[np.int64]) -> int:
    """Take a vertex out of the highest bucket that has one; -1 if all are empty."""
    while highest[0] >= 0:
        first = heads[highest[0]]
        if first:
            leave_bucket(np.int64(first - 1), links, heads)
            return np.int64(first - 1)
        highest[0] -= 1
    return np.int64(-1)


@inlined
def value_bucket(value: float, bounds: NDArray[np.float64]) -> int:
    """Return the bucket of a value between two bounds."""
    low, high = bounds[0], bounds[1]
    share = (value - low) / (high - low) if high > low else 0.0
    return np.int64(min(max(share, 0.0), 1.0) * (BUCKETS - 1))


@inlined
def change_bucket(change: float, tolerance: float) -> int:
    """Return the bucket of a change: sixteen for each doubling above the tolerance."""
    return np.int64(min(max(16.0 * np.log2(change / tolerance), 0.0), BUCKETS - 1.0))
