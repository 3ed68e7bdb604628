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
def mark_block(edges_of_blocks: NDArray[np.int8], start: int, size: int) -> bool:
    """Note where a block begins and ends; say whether its size is a power of two and it lies within the pool."""
    used = edges_of_blocks.shape[0] - 1
    if size <= 0 or size > used or size & (size - 1) != 0 or start < 0 or start > used - size:
        return False
    edges_of_blocks[start] += 1
    edges_of_blocks[start + size] -= 1
    # Two that begin or end in one place overlap; noticed here, no entry can run over.
    return edges_of_blocks[start] <= 1 and edges_of_blocks[start + size] >= -1


@kernel
def blocks_apart(edges_of_blocks: NDArray[np.int8]) -> bool:
    """Say whether no two of the marked blocks overlap."""
    depth = 0
    for place in range(edges_of_blocks.shape[0]):
        depth += edges_of_blocks[place]
        if depth > 1:
            return False
    return True


@kernel
def all_finite(numbers: NDArray[np.float64]) -> bool:
    """Say whether a table of numbers holds neither NaN nor infinity."""
    fits = True
    for row in range(numbers.shape[0]):
        for column in range(numbers.shape[1]):
            fits &= np.isfinite(numbers[row, column])
    return fits
