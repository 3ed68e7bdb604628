"""Checks of loaded lists and blocks that several parts of a replay share."""

# In compiled code Python's numbers and numpy's are one and the same.
# mypy: disable-error-code="no-any-return,arg-type,assignment,return-value"

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from backsweep.jit.compilation import inlined, kernel

FREE = np.uint8(0)
LIVE = np.uint8(1)
LISTED = np.uint8(2)
ALL_BITS = np.uint64(2**64 - 1)


@kernel
def free_list_fits(head: int, links: NDArray[Any], state: NDArray[np.uint8]) -> bool:
    """Say whether a list holds all that is FREE once and nothing else, and mark it LISTED on the way.

    Links are one more than a place, 0 is the end.
    """
    left = 0
    for place in range(state.shape[0]):
        left += state[place] == FREE
    link = np.int64(head)
    while link != 0:
        if link < 0 or link > state.shape[0] or state[link - 1] != FREE:
            return False
        state[link - 1] = LISTED
        left -= 1
        link = np.int64(links[link - 1])
    return left == 0


@inlined
def taken_bits(places: int) -> NDArray[np.uint64]:
    """Return one bit for each place, none of them taken."""
    return np.zeros((places >> 6) + 2, np.uint64)  # a block that ends in the last word touches the one behind it


@inlined
def take_block(taken: NDArray[np.uint64], used: int, start: int, size: int) -> bool:
    """Take the places of a block; say whether its size is a power of two, it lies within `used`, and all were free.

    One bit for each place is so little that it stays in the nearest caches, whatever the order of the blocks.
    """
    if size <= 0 or size > used or size & (size - 1) != 0 or start < 0 or start > used - size:
        return False
    overlap = np.uint64(0)
    for begin in range(start, start + size, 64):  # most blocks are small: one round
        bits = ALL_BITS >> np.uint64(64 - min(size, 64))
        word, shift = np.uint64(begin >> 6), np.uint64(begin & 63)
        low, high = bits << shift, bits >> np.uint64(1) >> (np.uint64(63) - shift)
        overlap |= (taken[word] & low) | (taken[word + np.uint64(1)] & high)
        taken[word] |= low
        taken[word + np.uint64(1)] |= high
    return overlap == 0


@kernel
def all_finite(numbers: NDArray[np.float64]) -> bool:
    """Say whether a table of numbers holds neither NaN nor infinity."""
    fits = True
    for row in range(numbers.shape[0]):
        for column in range(numbers.shape[1]):
            fits &= np.isfinite(numbers[row, column])
    return fits
