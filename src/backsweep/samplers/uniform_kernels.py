"""Uniform draws of rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from backsweep.jit.compilation import kernel
from backsweep.jit.random_streams_kernels import draw_below


@kernel
def draw_uniform(seed: np.uint64, total: int, live: int, out: NDArray[np.int64]) -> None:
    """Draw live serial numbers uniformly, with replacement."""
    state = np.empty(1, np.uint64)
    state[0] = seed
    for i in range(out.shape[0]):
        out[i] = total - live + draw_below(state, live)
