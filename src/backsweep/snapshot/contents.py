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


def need_like(loaded: Mapping[str, NDArray[Any]], name: str, like: NDArray[Any]) -> None:
    """Need an array to be there, with the dtype and the shape of another."""
    need(name in loaded, f"the array {name!r} is missing")
    found = loaded[name]
    need(
        found.dtype == like.dtype and found.shape == like.shape,
        f"{name} is {found.dtype} of shape {found.shape}, expected {like.dtype} of shape {like.shape}",
    )


def need_lengths(loaded: Mapping[str, NDArray[Any]], known: Mapping[str, tuple[NDArray[Any], int]]) -> None:
    """Need every known array to be there, as long as the counters say."""
    need(set(loaded) == set(known), f"it has the arrays {sorted(loaded)} where {sorted(known)} are expected")
    for name, (_, length) in known.items():
        need(len(loaded[name]) == length, f"{name} has {len(loaded[name])} entries where its counters say {length}")
