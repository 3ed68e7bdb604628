"""Parameters of many runs in one flat tensor.

    flat (runs, size)  ──views──>  {"conv0.weight": (runs, inputs, outputs), "conv0.bias": (runs, 1, outputs), ...}

The views share the flat tensor's memory. An optimiser works on the flat tensor in a handful of operations, copying the
target network is one copy, and a run is one row.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

ALIGNMENT = 16  # numbers; every parameter starts on a cache line, which also keeps results independent of its place


@dataclass(frozen=True)
class ParameterLayout:
    """Names, shapes and positions of one run's parameters in the flat row."""

    shapes: tuple[tuple[str, tuple[int, ...]], ...]

    @property
    def size(self) -> int:
        """Length of a run's row."""
        return sum(_padded(shape) for _, shape in self.shapes)

    @property
    def count(self) -> int:
        """How many numbers of a row are parameters; the rest is padding."""
        return sum(math.prod(shape) for _, shape in self.shapes)

    def views(self, flat: torch.Tensor) -> dict[str, torch.Tensor]:
        """Return the parameters as views of a flat tensor (runs, size)."""
        views, place = {}, 0
        for name, shape in self.shapes:
            views[name] = flat[:, place : place + math.prod(shape)].view(flat.shape[0], *shape)
            place += _padded(shape)
        return views


def _padded(shape: tuple[int, ...]) -> int:
    return -(-math.prod(shape) // ALIGNMENT) * ALIGNMENT
