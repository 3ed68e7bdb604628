"""The picture of a step: the brighter of two screens, made smaller by averages over areas."""

# In compiled code Python's numbers and numpy's are one and the same.
# mypy: disable-error-code="no-any-return,arg-type,assignment,return-value"

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from backsweep.jit.compilation import kernel


@kernel
def shrink(
    screens: NDArray[np.uint8],
    first_column: NDArray[np.int64],
    column_weights: NDArray[np.float32],
    first_row: NDArray[np.int64],
    row_weights: NDArray[np.float32],
    out: NDArray[np.uint8],
) -> None:
    """Write the maximum of two screens (2, height, width), made smaller, to `out`.

    The tables are those of `screen.area_table`: a pixel of `out` is a weighted sum of three rows from `first_row` on,
    and of three columns from `first_column` on. Sums are taken in the order of OpenCV, columns first, and rounded as
    it does.
    """
    height, width = screens.shape[1], screens.shape[2]
    bright = np.empty(width, np.float32)
    lines = np.empty((height, out.shape[1]), np.float32)
    for row in range(height):
        one, other, line = screens[0, row], screens[1, row], lines[row]
        for column in range(width):
            bright[column] = np.float32(max(one[column], other[column]))
        for x in range(out.shape[1]):
            column = first_column[x]
            total = bright[column] * column_weights[0, x]
            total += bright[column + 1] * column_weights[1, x]
            total += bright[column + 2] * column_weights[2, x]
            line[x] = total
    for y in range(out.shape[0]):
        row = first_row[y]
        above, middle, below = lines[row], lines[row + 1], lines[row + 2]
        for x in range(out.shape[1]):
            total = above[x] * row_weights[0, y]
            total += middle[x] * row_weights[1, y]
            total += below[x] * row_weights[2, y]
            out[y, x] = np.uint8(np.rint(total))
