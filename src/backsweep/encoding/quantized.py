"""A regular grid over continuous observations: states in the same cell share a vertex."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from backsweep.encoding.base import LiveEncoder
from backsweep.encoding.exact_bytes import digest_keys
from backsweep.trees import leaves
from backsweep.types import Observations


@dataclass(frozen=True)
class Quantized:
    """A grid of cells: each number is rounded down to a multiple of `step`, and each cell is a vertex."""

    step: float | tuple[float, ...]
    """The cell width: one for all dimensions, or one for each number of the flattened observation."""

    def __post_init__(self) -> None:
        if isinstance(self.step, np.number):
            object.__setattr__(self, "step", float(self.step))
        if not isinstance(self.step, (int, float, Iterable)) or getattr(self.step, "shape", None) == ():
            raise ValueError(f"Quantized: step must be a number above 0, or one for each entry, got {self.step!r}")
        steps = (self.step,) if isinstance(self.step, (int, float)) else tuple(self.step)
        numbers = all(isinstance(step, (int, float, np.number)) for step in steps)
        if not steps or not numbers or not all(math.isfinite(step) and step > 0 for step in steps):
            raise ValueError(f"Quantized: step must be a number above 0, or one for each entry, got {self.step!r}")
        if not isinstance(self.step, (int, float)):
            object.__setattr__(self, "step", steps)  # lists and arrays become tuples: a configuration is hashable

    def build(self, space: gym.Space[Any], generator: np.random.Generator) -> LiveQuantized:
        """Spread `step` over the numbers of `space`."""
        sizes = [math.prod(leaf.shape or ()) for leaf in leaves(space)]
        if isinstance(self.step, tuple) and len(self.step) != sum(sizes):
            raise ValueError(
                f"Quantized: step has {len(self.step)} entries, expected one or {sum(sizes)} "
                "(the size of the flattened observation)"
            )
        steps = np.broadcast_to(np.asarray(self.step, np.float64), (sum(sizes),))
        return LiveQuantized(np.split(steps, np.cumsum(sizes)[:-1]))


class LiveQuantized(LiveEncoder):
    """The grid for one space."""

    words = 2

    def __init__(self, steps: list[NDArray[np.float64]]) -> None:
        self._steps = steps

    def encode(self, observations: Observations) -> NDArray[np.int64]:
        """Return digests of the cells' indices, shape (batch, 2)."""
        cells = [
            np.floor(leaf.reshape(len(leaf), -1).astype(np.float64) / steps) + 0.0
            for leaf, steps in zip(leaves(observations), self._steps, strict=True)
        ]
        return digest_keys(cells)
