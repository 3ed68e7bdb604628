"""Priorities of the slots of a ring in a sum tree, with an optional minimum tree."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from backsweep.jit.array_table import addresses_of
from backsweep.jit.memory import READ_ALL_OVER, reserve
from backsweep.samplers import sum_tree_kernels
from backsweep.samplers.sum_tree_kernels import FAN_OUT, TreeArrays


class SumTree:
    """One priority for each of `slots` slots; see `sum_tree_kernels.py` for the picture."""

    def __init__(self, slots: int, *, with_minima: bool) -> None:
        sizes = [-(-slots // FAN_OUT) * FAN_OUT]
        while sizes[0] > FAN_OUT:
            sizes.insert(0, -(-sizes[0] // FAN_OUT**2) * FAN_OUT)
        sizes.insert(0, FAN_OUT)  # the root, with a cache line to itself so that all groups stay aligned
        self.levels = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        self.sums = reserve((sum(sizes),), np.float64, READ_ALL_OVER)
        self.minima: NDArray[np.float64] = np.full(sum(sizes) if with_minima else 0, np.inf)
        self.bundle = TreeArrays(self.levels, self.sums, self.minima)
        self.addresses = addresses_of(self.bundle)

    @property
    def total(self) -> float:
        """The sum of all priorities."""
        return float(self.sums[0])

    def leaves(self, slots: NDArray[np.int64] | slice) -> NDArray[np.float64]:
        """Return the priorities of some slots."""
        leaves: NDArray[np.float64] = self.sums[self.levels[-2] :][slots]
        return leaves

    def build(self, leaves: NDArray[np.float64]) -> None:
        """Set the first priorities all at once."""
        sum_tree_kernels.build_trees(np.ascontiguousarray(leaves), self.addresses)

    @property
    def nbytes(self) -> int:
        """Bytes of both trees at full size."""
        return self.sums.nbytes + self.minima.nbytes
