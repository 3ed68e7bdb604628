"""The plain-Python twin of `agent/learner/optimisers_kernels.py`."""

from __future__ import annotations

import math
from collections.abc import Sequence


def adam(
    parameters: list[float], gradient: Sequence[float], mean: list[float], square: list[float], *constants: float
) -> None:
    """Take one step in place; the constants come in the kernel's order."""
    new1, beta2, new2, epsilon, divisor, factor, smallest_mean, smallest_square = constants
    for place, slope in enumerate(gradient):
        mean[place] += new1 * (slope - mean[place])
        if abs(mean[place]) < smallest_mean:
            mean[place] = 0.0
        square[place] = max(beta2 * square[place] + new2 * slope**2, smallest_square)
        parameters[place] += factor * mean[place] / (math.sqrt(square[place]) / divisor + epsilon)
