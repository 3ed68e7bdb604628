"""Rank correlation, with an exact test for a few pairs."""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import ArrayLike, NDArray

MOST_PAIRS = 8


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


def chance_of_order(first: ArrayLike, second: ArrayLike) -> float:
    """Return the exact p-value of a rank correlation against random pairing; at most 8 pairs, all orders are tried."""
    one, other = np.asarray(first, np.float64), np.asarray(second, np.float64)
    if len(one) > MOST_PAIRS:
        raise ValueError(f"first must hold at most {MOST_PAIRS} values, got {len(one)}")
    orders = np.array(list(itertools.permutations(range(len(one)))))
    drawn = rank_correlation(np.broadcast_to(one, orders.shape), other[orders])
    # The tolerance lets the observed order count as one of them despite rounding.
    return float((drawn >= rank_correlation(one, other) - 1e-9).mean())
