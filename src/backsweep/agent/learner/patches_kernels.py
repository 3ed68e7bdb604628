"""Cutting patches out of images and adding them back, on the CPU.

A grid is stored row by row with its channels together, so each of the `kernel` rows of a patch is one span of
kernel * channels numbers, in the grid as in the patch:

    grid   row y      ....[span].....        patch   [span of y][span of y+1][span of y+2] ...
           row y+1    ....[span].....
           row y+2    ....[span].....

Everything here works on flat arrays: (images, height * width * channels) and (patches, kernel * kernel * channels).
"""

# In compiled code Python's numbers and numpy's are one and the same.
# mypy: disable-error-code="no-any-return,arg-type,assignment,return-value"

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from backsweep.jit.compilation import kernel


@kernel
def cut(
    grids: NDArray[Any],
    width: int,
    channels: int,
    size: int,
    stride: int,
    down: int,
    across: int,
    scale: np.floating,
    patches: NDArray[np.floating],
) -> None:
    """Write the `down` x `across` patches of every grid, each number times `scale`, which is of the patches' type."""
    span = size * channels
    place = 0
    for grid in range(grids.shape[0]):
        for y in range(down):
            for x in range(across):
                for row in range(size):
                    first = ((y * stride + row) * width + x * stride) * channels
                    source = grids[grid, first : first + span]
                    target = patches[place, row * span : (row + 1) * span]
                    for number in range(span):
                        target[number] = source[number] * scale
                place += 1


@kernel
def paste_active(
    patches: NDArray[np.floating],
    width: int,
    channels: int,
    size: int,
    stride: int,
    down: int,
    across: int,
    active: NDArray[np.floating],
    grids: NDArray[np.floating],
) -> None:
    """Add every patch at its place, and keep the sums only where `active` is above zero: back through cut and ReLU."""
    span = size * channels
    place = 0
    for grid in range(grids.shape[0]):
        grids[grid] = 0.0
        for y in range(down):
            for x in range(across):
                for row in range(size):
                    first = ((y * stride + row) * width + x * stride) * channels
                    target = grids[grid, first : first + span]
                    source = patches[place, row * span : (row + 1) * span]
                    for number in range(span):
                        target[number] += source[number]
                place += 1
        for number in range(grids.shape[1]):
            if not active[grid, number] > 0:
                grids[grid, number] = 0.0
