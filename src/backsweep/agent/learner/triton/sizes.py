"""Small arithmetic of sizes."""

from __future__ import annotations


def parts(whole: int, part: int) -> int:
    """Return how many parts of a size make up a whole, the last perhaps not full."""
    return -(-whole // part)


def power(number: int) -> int:
    """Return the next power of two, from 16 on: the smallest side of a product of tiles."""
    return max(16, 1 << (number - 1).bit_length())


def power_in(number: int) -> int:
    """Return the largest power of two that divides a number."""
    return number & -number


def between(low: int, number: int, high: int) -> int:
    """Return the next power of two, within bounds."""
    return max(low, min(high, power(number)))
