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
def mark_block(blocks: NDArray[np.uint8], start: int, size: int) -> bool:
    """Note where a block begins and how large it is; say whether its size is a power of two and it lies within.

    No other may begin in the same place. An entry is one more than the logarithm of the size, 0 where none begins.
    """
    used = blocks.shape[0]
    if size <= 0 or size > used or size & (size - 1) != 0 or start < 0 or start > used - size or blocks[start] != 0:
        return False
    entry = 1
    while size > 1:
        size >>= 1
        entry += 1
    blocks[start] = entry
    return True


@kernel
def blocks_apart(blocks: NDArray[np.uint8], count: int) -> bool:
    """Say whether no two of `count` marked blocks overlap: a walk from the end of each to the next meets them all."""
    words = blocks[: blocks.shape[0] // 8 * 8].view(np.uint64)
    place, met = 0, 0
    while place < blocks.shape[0]:
        if place & 7 == 0 and place < 8 * words.shape[0] and words[place >> 3] == 0:
            place += 8  # most gaps are long
        elif blocks[place] == 0:
            place += 1
        else:
            met += 1
            place += np.int64(1) << np.int64(blocks[place] - 1)
    return met == count


@kernel
def all_finite(numbers: NDArray[np.float64]) -> bool:
    """Say whether a table of numbers holds neither NaN nor infinity."""
    fits = True
    for row in range(numbers.shape[0]):
        for column in range(numbers.shape[1]):
            fits &= np.isfinite(numbers[row, column])
    return fits
