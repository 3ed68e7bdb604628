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

from backsweep.encoding.byte_products_kernels import (
    BLOCK,
    IMAGES_AT_ONCE,
    OUTPUTS,
    has_registers_for_many,
    multiply_blocks,
)
from backsweep.jit.compilation import inlined, kernel

FRACTION_BITS = 20
SCALE = float(1 << FRACTION_BITS)
LARGEST = float(1 << 62)
STRETCH = 32  # blocks of pixels; their part of the matrix, 24 KiB, stays in the fastest cache
LONG_STRETCH = 128  # blocks of pixels of several observations; their sums stay below 2**31


@inlined
def multiplied_together(count: int) -> int:
    """Return how many of so many observations of bytes are multiplied `IMAGES_AT_ONCE` at a time: the first ones."""
    return count - count % IMAGES_AT_ONCE if has_registers_for_many() else 0


@kernel
def project_bytes(
    observations: NDArray[np.uint8],
    places: NDArray[np.int32],
    matrix: NDArray[np.int32],
    planes: NDArray[np.int16],
    keys: NDArray[np.int64],
    copies: NDArray[np.uint8],
) -> None:
    """Add the projection of the uint8 observation in row ``places[i, 0]`` to ``keys[i]``.

    If `copies` has rows, those that are `multiplied_together` are copied to its rows ``places[i, 1]``, past the caches;
    `end_streams` must follow.

    `planes` is the matrix as `random_projection.planes_of` arranges it. It exceeds the fastest cache, so several
    observations are multiplied by each part of it at once, or the rest by one stretch of it before the next.
    """
    size, whole = matrix.shape[1], matrix.shape[1] // BLOCK * BLOCK
    if whole == 0:
        for item in range(keys.shape[0]):
            for k in range(matrix.shape[0]):
                for i in range(size):
                    keys[item, k] += np.int64(matrix[k, i]) * np.int64(observations[places[item, 0], i])
        return
    together = multiplied_together(keys.shape[0])
    for group in range(planes.shape[0]):
        part = slice(OUTPUTS * group, OUTPUTS * (group + 1))
        for start in range(0, whole, BLOCK * LONG_STRETCH):
            pixels = slice(start, min(start + BLOCK * LONG_STRETCH, whole))
            blocks = planes[group, pixels.start // BLOCK : pixels.stop // BLOCK]
            for item in range(0, together, IMAGES_AT_ONCE):
                targets = copies[:, pixels] if group == 0 else copies[:0]
                add_many_products(observations[:, pixels], places[item:], blocks, keys[item:, part], targets)
        for start in range(0, whole, BLOCK * STRETCH):
            pixels = slice(start, min(start + BLOCK * STRETCH, whole))
            blocks = planes[group, pixels.start // BLOCK : pixels.stop // BLOCK]
            for item in range(together, keys.shape[0]):
                add_products(observations[places[item, 0], pixels], blocks, keys[item, part])
        if whole < size:  # the last block overlaps the one before
            for item in range(keys.shape[0]):
                rest = observations[places[item, 0], size - BLOCK : size]
                add_products(rest, planes[group, whole // BLOCK :], keys[item, part])
    if copies.shape[0] > 0:
        for item in range(together):
            for i in range(whole, size):
                copies[places[item, 1], i] = observations[places[item, 0], i]


@inlined
def add_many_products(
    pixels: NDArray[np.uint8],
    places: NDArray[np.int32],
    planes: NDArray[np.int16],
    keys: NDArray[np.int64],
    copies: NDArray[np.uint8],
) -> None:
    """Do what `add_products` does for `IMAGES_AT_ONCE` observations; copy their pixels if `copies` has rows."""
    images = (pixels[places[0, 0]], pixels[places[1, 0]], pixels[places[2, 0]], pixels[places[3, 0]])
    if copies.shape[0] > 0:
        targets = (copies[places[0, 1]], copies[places[1, 1]], copies[places[2, 1]], copies[places[3, 1]])
        products = multiply_blocks(images, planes, targets)
    else:
        products = multiply_blocks(images, planes, ())
    for k in range(keys.shape[1]):
        keys[0, k] += products[k]
        keys[1, k] += products[OUTPUTS + k]
        keys[2, k] += products[2 * OUTPUTS + k]
        keys[3, k] += products[3 * OUTPUTS + k]


@inlined
def add_products(pixels: NDArray[np.uint8], planes: NDArray[np.int16], key: NDArray[np.int64]) -> None:
    """Add the products of some blocks of pixels to a part of a key, which may be shorter than `OUTPUTS`."""
    products = multiply_blocks((pixels,), planes, ())
    for k in range(key.shape[0]):
        key[k] += products[k]


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
    observations: NDArray[np.floating], places: NDArray[np.int32], matrix: NDArray[np.int32], keys: NDArray[np.int64]
) -> bool:
    """Add the projection of the float observation in row ``places[i, 0]``, rounded to 2**-20, to ``keys[i]``.

    Returns whether any number was out of range.
    """
    beyond = False
    for item in range(keys.shape[0]):
        place = places[item, 0]
        if matrix.shape[0] == OUTPUTS:  # the usual length of a key: its sums stay in registers
            first, second, third = np.int64(0), np.int64(0), np.int64(0)
            for i in range(matrix.shape[1]):
                fixed, out = fixed_point(np.float64(observations[place, i]))
                beyond |= out
                first += np.int64(matrix[0, i]) * fixed
                second += np.int64(matrix[1, i]) * fixed
                third += np.int64(matrix[2, i]) * fixed
            keys[item, 0] += first
            keys[item, 1] += second
            keys[item, 2] += third
            continue
        for i in range(matrix.shape[1]):
            fixed, out = fixed_point(np.float64(observations[place, i]))
            beyond |= out
            for k in range(matrix.shape[0]):
                keys[item, k] += np.int64(matrix[k, i]) * fixed
    return beyond


@inlined
def fixed_point(number: float) -> tuple[int, bool]:
    """Return a number in units of 2**-20, rounded and clipped, and whether it was out of range."""
    scaled = np.rint(number * SCALE)
    return np.int64(min(max(scaled, -LARGEST), LARGEST)), abs(scaled) > LARGEST
