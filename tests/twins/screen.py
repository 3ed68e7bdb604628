"""The plain-Python twin of `tasks/atari/screen_kernels.py`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Table = tuple[NDArray[np.int64], NDArray[np.float32]]


def shrink(screens: NDArray[np.uint8], columns: Table, rows: Table) -> NDArray[np.uint8]:
    """Return the maximum of two screens, made smaller by the tables of both axes."""
    bright = screens.max(axis=0).astype(np.float32)
    lines = np.stack([_weighted(line, columns) for line in bright])
    return np.rint(np.stack([_weighted(column, rows) for column in lines.T], axis=1)).astype(np.uint8)


def _weighted(numbers: NDArray[np.float32], table: Table) -> NDArray[np.float32]:
    found = []
    for place, first in enumerate(table[0].tolist()):
        total: Any = np.float32(0.0)
        for tap, weight in enumerate(table[1][:, place]):
            total = total + numbers[first + tap] * weight
        found.append(total)
    return np.array(found, np.float32)
