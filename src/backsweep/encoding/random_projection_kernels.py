"""The fixed-point random projection.

    observation (pixels p_0 .. p_n-1)      matrix (dim rows of n integers)
    key[k] = sum over i of matrix[k, i] * p_i      modulo 2**64

Integer sums do not depend on their order, so the same observation gives the same key on
every platform, thread count and batch size.
"""

# In compiled code Python's numbers and numpy's are one and the same.
# mypy: disable-error-code="no-any-return,arg-type,assignment,return-value"

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from backsweep.jit.compilation import exact_sums, inlined, kernel

FRACTION_BITS = 20
SCALE = float(1 << FRACTION_BITS)
LARGEST = float(1 << 62)
LARGEST_IMAGE = 1 << 20  # times 255 times a matrix entry below 2**24 stays below 2**53


@inlined
def _add_to_key(key: NDArray[np.int64], k: int, first: float, second: float, third: float) -> None:
    key[k] += np.int64(first)
    key[k + 1] += np.int64(second)
    key[k + 2] += np.int64(third)


@exact_sums
def project_bytes(
    observations: NDArray[np.uint8], places: NDArray[np.int32], matrix: NDArray[np.float64], keys: NDArray[np.int64]
) -> None:
    """Add the projection of the uint8 observation in row ``places[i, 0]`` to ``keys[i]``.

    The matrix holds the same integers as elsewhere, as floats, which processors multiply and add faster. With at
    most LARGEST_IMAGE pixels no sum reaches 2**53, so none is rounded. The matrix exceeds the fastest cache, so
    four observations share one pass over three of its rows, and each pixel is converted once per pass.
    """
    batch, size = keys.shape[0], matrix.shape[1]
    together, fours = matrix.shape[0] - matrix.shape[0] % 3, batch - batch % 4
    for item in range(0, fours, 4):
        a, b, c, d = places[item, 0], places[item + 1, 0], places[item + 2, 0], places[item + 3, 0]
        for k in range(0, together, 3):
            a0, a1, a2 = 0.0, 0.0, 0.0
            b0, b1, b2 = 0.0, 0.0, 0.0
            c0, c1, c2 = 0.0, 0.0, 0.0
            d0, d1, d2 = 0.0, 0.0, 0.0
            for i in range(size):
                first, second, third = matrix[k, i], matrix[k + 1, i], matrix[k + 2, i]
                of_a, of_b = np.float64(observations[a, i]), np.float64(observations[b, i])
                of_c, of_d = np.float64(observations[c, i]), np.float64(observations[d, i])
                a0 += first * of_a
                a1 += second * of_a
                a2 += third * of_a
                b0 += first * of_b
                b1 += second * of_b
                b2 += third * of_b
                c0 += first * of_c
                c1 += second * of_c
                c2 += third * of_c
                d0 += first * of_d
                d1 += second * of_d
                d2 += third * of_d
            _add_to_key(keys[item], k, a0, a1, a2)
            _add_to_key(keys[item + 1], k, b0, b1, b2)
            _add_to_key(keys[item + 2], k, c0, c1, c2)
            _add_to_key(keys[item + 3], k, d0, d1, d2)
    for item in range(fours, batch):
        place = places[item, 0]
        for k in range(0, together, 3):
            a0, a1, a2 = 0.0, 0.0, 0.0
            for i in range(size):
                pixel = np.float64(observations[place, i])
                a0 += matrix[k, i] * pixel
                a1 += matrix[k + 1, i] * pixel
                a2 += matrix[k + 2, i] * pixel
            _add_to_key(keys[item], k, a0, a1, a2)
    for item in range(batch):
        place = places[item, 0]
        for k in range(together, matrix.shape[0]):
            total = 0.0
            for i in range(size):
                total += matrix[k, i] * np.float64(observations[place, i])
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


@kernel
def project_float_places(
    observations: NDArray[np.floating], places: NDArray[np.int32], matrix: NDArray[np.float64], keys: NDArray[np.int64]
) -> bool:
    """Add the projection of the float observation in row ``places[i, 0]``, rounded to 2**-20, to ``keys[i]``.

    The matrix holds the same integers as elsewhere, as floats. Returns whether any number was out of range.
    """
    beyond = False
    for item in range(keys.shape[0]):
        place = places[item, 0]
        for i in range(matrix.shape[1]):
            scaled = np.rint(np.float64(observations[place, i]) * SCALE)
            beyond |= abs(scaled) > LARGEST
            fixed = np.int64(min(max(scaled, -LARGEST), LARGEST))
            for k in range(matrix.shape[0]):
                keys[item, k] += np.int64(matrix[k, i]) * fixed
    return beyond
