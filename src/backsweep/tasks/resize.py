"""Nearest-neighbour resizing of grid pictures, as tables.

    cell row 0      │ image rows first[0] .. first[1] - 1
    cell row 1      │ image rows first[1] .. first[2] - 1        and the same for columns

Image row r shows row pixel[r] of its tile, so an image consists of copied blocks.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def nearest_sources(source: int, target: int) -> NDArray[np.int64]:
    """Return the source index of every target index by OpenCV's float64 rule, which differs from exact arithmetic."""
    factor = 1.0 / (target / source)
    sources: NDArray[np.int64] = np.minimum(np.floor(np.arange(target) * factor).astype(np.int64), source - 1)
    return sources


def axis_tables(cells: int, image_size: int, tile_pixels: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the first image index of every cell (and the end), and every image index's pixel within its tile."""
    sources = nearest_sources(cells * tile_pixels, image_size)
    first = np.searchsorted(sources // tile_pixels, np.arange(cells + 1)).astype(np.int64)
    return first, sources % tile_pixels
