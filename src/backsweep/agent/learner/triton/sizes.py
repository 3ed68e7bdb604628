"""Small arithmetic of sizes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache


@dataclass(frozen=True)
class BatchShape:
    """The rows and actions of a batch, and the blocks that hold them; kernels are compiled for one."""

    size: int
    actions: int
    block: int
    block_of_actions: int


@cache
def batch_shape(size: int, actions: int) -> BatchShape:
    """Return the shape of a batch of `size` rows."""
    return BatchShape(size, actions, power(size), power(actions))


def ceil_divide(whole: int, size: int) -> int:
    """Return how many pieces of a size make up a whole, the last perhaps not full."""
    return -(-whole // size)


def power(number: int) -> int:
    """Return the next power of two, from 16 on: the smallest side of a product of tiles."""
    return max(16, 1 << (number - 1).bit_length())


def power_in(number: int) -> int:
    """Return the largest power of two that divides a number."""
    return number & -number


def between(low: int, number: int, high: int) -> int:
    """Return the next power of two, within bounds."""
    return max(low, min(high, power(number)))
