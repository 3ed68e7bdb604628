"""Rows that pass through a shuffling window."""

# In compiled code Python's numbers and numpy's are one and the same.
# mypy: disable-error-code="no-any-return,arg-type,assignment,return-value"

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from backsweep.jit.compilation import kernel
from backsweep.jit.random_streams_kernels import draw_below


@kernel
def exchange(
    seed: np.uint64,
    oldest: int,
    window: NDArray[np.int64],
    held: int,
    incoming: NDArray[np.int64],
    out: NDArray[np.int64],
) -> int:
    """Pass rows through a shuffling window: each incoming row replaces a random held row, which is returned.

    Held rows that have left the replay are dropped and others drawn. Returns the number of rows now held.
    """
    state = np.empty(1, np.uint64)
    state[0] = seed
    for i in range(incoming.shape[0]):
        window[held] = incoming[i]
        held += 1
        while True:
            place = draw_below(state, held)
            row = window[place]
            held -= 1
            window[place] = window[held]
            if row >= oldest:
                break
        out[i] = row
    return held
