"""Reward sums over parts of episodes: what a value can be at least and at most."""

# In compiled code Python's numbers and numpy's are one and the same.
# mypy: disable-error-code="no-any-return,arg-type,assignment,return-value"

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from backsweep.jit.compilation import inlined, kernel
from backsweep.store.ring_kernels import FLAGS, PREVIOUS, REWARD, STARTS_EPISODE


@inlined
def note_stretch(
    serial: int,
    oldest: int,
    rows: NDArray[np.int32],
    values: NDArray[np.float64],
    stretches: NDArray[np.float64],
    worst: int,
    best: int,
) -> None:
    """Write the smallest and the largest reward sum over parts of an episode that end with a row.

    Such a part is the row alone, or the best part that ends with the row before, plus this row. They go to the columns
    `worst` and `best` of `stretches`.
    """
    capacity = rows.shape[0]
    slot = serial % capacity
    reward, previous = values[slot, REWARD], rows[slot, PREVIOUS]
    stretches[slot, worst] = reward
    stretches[slot, best] = reward
    if not rows[slot, FLAGS] & STARTS_EPISODE and serial - (slot - previous) % capacity >= oldest:
        stretches[slot, worst] += min(stretches[previous, worst], 0.0)
        stretches[slot, best] += max(stretches[previous, best], 0.0)


@kernel
def stretch_range(oldest: int, total: int, rows: NDArray[np.int32], values: NDArray[np.float64]) -> tuple[float, float]:
    """Return the smallest and the largest reward sum over any part of a live episode; 0 is always included."""
    capacity = rows.shape[0]
    stretches = np.zeros((capacity, 2))
    worst, best = 0.0, 0.0
    for serial in range(oldest, total):
        note_stretch(serial, oldest, rows, values, stretches, 0, 1)
        worst = min(worst, stretches[serial % capacity, 0])
        best = max(best, stretches[serial % capacity, 1])
    return worst, best
