"""The fixed-point random projection.

    observation (pixels p_0 .. p_n-1)      matrix (dim rows of n integers)
    key[k] = sum over i of matrix[k, i] * p_i      modulo 2**64

Everything is integer arithmetic, where the order of a sum does not matter: the same observation gives the same key on
every platform, thread count and batch size.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from backsweep.compilation import exact_sums, kernel

FRACTION_BITS = 20
SCALE = float(1 << FRACTION_BITS)
LARGEST = float(1 << 62)
LARGEST_IMAGE = 1 << 20  # times 255 times a matrix entry below 2**24 stays below 2**53


@exact_sums
def project_bytes(observations: NDArray[np.uint8], matrix: NDArray[np.float64], keys: NDArray[np.int64]) -> None:
    """Add the projection of each row of uint8 `observations` to its key.

    The matrix holds the same whole numbers as elsewhere, as floats, which processors multiply and add faster. With at
    most LARGEST_IMAGE pixels no sum reaches 2**53, so none is rounded. Three rows of the matrix share one pass over the
    pixels; each pixel is converted once for all.
    """
    batch, size = observations.shape
    together = matrix.shape[0] - matrix.shape[0] % 3
    for item in range(batch):
        for k in range(0, together, 3):
            first, second, third = 0.0, 0.0, 0.0
            for i in range(size):
                pixel = np.float64(observations[item, i])
                first += matrix[k, i] * pixel
                second += matrix[k + 1, i] * pixel
                third += matrix[k + 2, i] * pixel
            keys[item, k] += np.int64(first)
            keys[item, k + 1] += np.int64(second)
            keys[item, k + 2] += np.int64(third)
        for k in range(together, matrix.shape[0]):
            total = 0.0
            for i in range(size):
                total += matrix[k, i] * np.float64(observations[item, i])
            keys[item, k] += np.int64(total)


@kernel
def project_integers(observations: NDArray[np.int64], matrix: NDArray[np.int32], keys: NDArray[np.int64]) -> None:
    """Add the projection of each row of int64 `observations` to its key."""
    batch, size = observations.shape
    for item in range(batch):
        for k in range(matrix.shape[0]):
            total = np.int64(0)
            for i in range(size):
                total += np.int64(matrix[k, i]) * observations[item, i]
            keys[item, k] += total


@kernel
def project_floats(observations: NDArray[np.float64], matrix: NDArray[np.int32], keys: NDArray[np.int64]) -> None:
    """Add the projection of each row of float `observations`, rounded to 2**-20, to its key."""
    batch, size = observations.shape
    for item in range(batch):
        for i in range(size):
            scaled = np.rint(observations[item, i] * SCALE)
            fixed = np.int64(min(max(scaled, -LARGEST), LARGEST))
            for k in range(matrix.shape[0]):
                keys[item, k] += np.int64(matrix[k, i]) * fixed
