"""Tools to check loaded arrays before anything uses them.

Digests show that a save is undamaged, not that backsweep wrote it. Kernels follow the indices in arrays without checks,
so each part of a replay checks its own arrays: every index and counter is within its range, every list ends where it
should, every count equals what it counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray


class ContentsError(ValueError):
    """Loaded arrays are inconsistent."""


def need(condition: object, what: str) -> None:
    """Raise a ContentsError that says `what` is wrong unless the condition holds."""
    if not condition:
        raise ContentsError(what)


def need_within(numbers: NDArray[Any], low: int, high: int, what: str) -> None:
    """Need all numbers to be from `low` up to, but without, `high`."""
    if numbers.size:
        smallest, largest = numbers.min(), numbers.max()
        need(low <= smallest and largest < high, f"{what} go from {smallest} to {largest}, beyond {low} to {high - 1}")


def need_finite(numbers: NDArray[Any], what: str) -> None:
    """Need all numbers to be finite."""
    need(np.isfinite(numbers).all(), f"{what} hold NaN or infinity")


def need_equal(found: NDArray[Any], expected: NDArray[Any], what: str) -> None:
    """Need two arrays to be equal."""
    need(np.array_equal(found, expected), f"{what} do not add up")


def need_lengths(loaded: Mapping[str, NDArray[Any]], known: Mapping[str, tuple[NDArray[Any], int]]) -> None:
    """Need every known array to be there, as long as the counters say."""
    need(set(loaded) == set(known), f"it has the arrays {sorted(loaded)} where {sorted(known)} are expected")
    for name, (_, length) in known.items():
        need(len(loaded[name]) == length, f"{name} has {len(loaded[name])} entries where its counters say {length}")


def need_list(head: int, links: NDArray[Any], members: NDArray[np.bool_], what: str) -> None:
    """Need a linked list to hold each member once and nothing else; links are one more than a place, 0 is the end."""
    left = int(np.count_nonzero(members))
    if left == 0:
        need(head == 0, f"{what} should be empty")
        return
    following = np.where(members, links, -1).astype(np.int64).tolist()
    link = int(head)
    while link != 0:
        need(0 < link <= len(following) and following[link - 1] >= 0 and left > 0, f"{what} is broken")
        following[link - 1], link = -1, following[link - 1]
        left -= 1
    need(left == 0, f"{what} ends too early")


def count_of(numbers: NDArray[Any], length: int) -> NDArray[np.int64]:
    """Return how often each of 0..length-1 comes up."""
    return np.bincount(numbers, minlength=length)


def spread(starts: NDArray[Any], counts: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return for blocks of `counts` entries each: the number of the block, and the place in it, of every entry."""
    block = np.repeat(np.arange(len(starts)), counts)
    place = np.arange(len(block)) - np.repeat(np.cumsum(counts) - counts, counts)
    return block, place
