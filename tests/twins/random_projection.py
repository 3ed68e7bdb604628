"""The plain-Python twin of `encoding/random_projection_kernels.py`."""

from __future__ import annotations

from collections.abc import Sequence

FRACTION_BITS = 20


def fixed_point(value: float) -> int:
    """Round to a multiple of 2**-20, as an integer count of them."""
    scaled = float(value) * 2.0**FRACTION_BITS
    return round(min(max(scaled, -(2.0**62)), 2.0**62))


def project(values: Sequence[int], matrix: Sequence[Sequence[int]]) -> list[int]:
    """Return the key of one observation given as integers."""
    key = []
    for row in matrix:
        total = sum(int(weight) * int(value) for weight, value in zip(row, values, strict=True))
        key.append((total + 2**63) % 2**64 - 2**63)
    return key
