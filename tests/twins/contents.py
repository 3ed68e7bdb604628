"""Tools of the plain checks of loaded arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from backsweep.snapshot.contents import need
from backsweep.store.store import Store


def need_equal(found: NDArray[Any], expected: NDArray[Any], what: str) -> None:
    """Need two arrays to be equal."""
    need(np.array_equal(found, expected), f"{what} do not add up")


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


def ages(store: Store) -> NDArray[np.int64]:
    """Return for each used slot how many live rows are older, -1 where there is no live row."""
    age = np.full(min(store.total, store.capacity), -1)
    age[store.live_slots()] = np.arange(len(store))
    return age
