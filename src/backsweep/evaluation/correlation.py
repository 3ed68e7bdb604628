"""Whether one number goes up with another, by ranks: no line is assumed, only a direction."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


def ranks(values: ArrayLike) -> NDArray[np.float64]:
    """Return the ranks along the last axis, from 1; equal values share the mean of theirs."""
    given = np.asarray(values, np.float64)
    below = (given[..., None] > given[..., None, :]).sum(axis=-1)
    equal = (given[..., None] == given[..., None, :]).sum(axis=-1)
    result: NDArray[np.float64] = below + (equal + 1) / 2.0
    return result


def rank_correlation(first: ArrayLike, second: ArrayLike) -> NDArray[np.float64]:
    """Return Spearman's correlation along the last axis, 0 where one side does not vary."""
    a, b = ranks(first), ranks(second)
    a, b = a - a.mean(axis=-1, keepdims=True), b - b.mean(axis=-1, keepdims=True)
    spread = np.sqrt((a**2).sum(axis=-1) * (b**2).sum(axis=-1))
    result: NDArray[np.float64] = np.divide((a * b).sum(axis=-1), spread, out=np.zeros_like(spread), where=spread > 0)
    return result
