"""The fixed-point random projection.

    observation (pixels p_0 .. p_n-1)      matrix (dim rows of n integers)
    key[k] = sum over i of matrix[k, i] * p_i      modulo 2**64

Everything is integer arithmetic, where the order of a sum does not matter: the same observation gives the same key on
every platform, thread count and batch size.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from backsweep.compilation import kernel

FRACTION_BITS = 20
SCALE = float(1 << FRACTION_BITS)
LARGEST = float(1 << 62)


@kernel
def project_bytes(observations: NDArray[np.uint8], matrix: NDArray[np.int32], keys: NDArray[np.int64]) -> None:
    """Add the projection of each row of uint8 `observations` to its key."""
    batch, size = observations.shape
    for item in range(batch):
        for k in range(matrix.shape[0]):
            total = np.int64(0)
            for i in range(size):
                total += np.int64(matrix[k, i]) * np.int64(observations[item, i])
            keys[item, k] += total


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
