"""Tables for making pictures smaller by averages over areas, with the results of OpenCV's INTER_AREA.

A pixel of the small picture covers `source / target` pixels of the large one, the first and the last of them perhaps in
part: of 5 pixels shown by 2, the first shows (2 a + 2 b + c) / 5.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

NEGLIGIBLE = 1e-3  # shares of a pixel that OpenCV leaves out
TAPS = 3  # source pixels that a target pixel may touch


def area_table(source: int, target: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Return for every target pixel the first source pixel and the weights of the pixels from there on."""
    scale = source / target
    begins = np.arange(target) * scale
    ends = begins + scale
    areas = np.minimum(scale, source - begins)
    pixels = np.arange(source)[None, :]
    shares = np.minimum(ends[:, None], pixels + 1) - np.maximum(begins[:, None], pixels)
    shares[shares <= NEGLIGIBLE] = 0.0
    if (shares > 0).sum(axis=1).max() > TAPS:
        raise ValueError(f"a pixel may show parts of at most {TAPS} pixels, got {source} pixels shown by {target}")
    first = np.minimum((shares > 0).argmax(axis=1), source - TAPS)
    weights = np.take_along_axis(shares, first[:, None] + np.arange(TAPS), axis=1) / areas[:, None]
    return first.astype(np.int64), np.ascontiguousarray(weights.astype(np.float32).T)
