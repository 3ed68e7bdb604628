"""Which windows of grids are distinct, and moving rows by their index, on the CPU.

A grid is a matrix of numbers stored row by row, several of them next to each other for one place. A window is `rows`
spans of `span` numbers, one from each row of the grid:

    grid   row y      ....[span].....        a step down the grid is `down_step` rows,
           row y+1    ....[span].....        a step across it is `across_step` numbers
"""

# In compiled code Python's numbers and numpy's are one and the same.
# mypy: disable-error-code="no-any-return,arg-type,assignment,return-value"

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from backsweep.jit.compilation import inlined, kernel
from backsweep.jit.hash_table_kernels import after, home
from backsweep.jit.random_streams_kernels import mix

LOOKED_AT = 4  # grids after which it is clear whether windows repeat
FEW, OF = 4, 5  # of these windows that many are distinct: they do not repeat


class Windows(NamedTuple):
    """Where the windows of a grid are; all counted in numbers, not bytes."""

    width: int
    """Numbers in a row of the grid."""
    span: int
    rows: int
    across_step: int
    down_step: int
    across: int
    """Windows next to each other."""
    down: int
    """Windows below each other."""


@inlined
def _begin(windows: Windows, place: int) -> int:
    """Return where in its grid a window begins, given its number among the grid's windows."""
    down, across = place // windows.across, place % windows.across
    return down * windows.down_step * windows.width + across * windows.across_step


@kernel
def distinct_windows(
    grids: NDArray[np.uint32],
    windows: Windows,
    offsets: NDArray[np.int64],
    weights: NDArray[np.uint32],
    most: int,
    index: NDArray[np.int64],
    chosen: NDArray[np.int64],
    reached: NDArray[np.int64],
) -> int:
    """Find the distinct windows of grids (n, numbers); return how many there are, or -1 if more than `most`.

    They are numbered in the order in which they first occur. `index` (n * down * across) gets the number of every
    window, `chosen` the first window with each number, and `reached` (n) how many had been found after each grid: the
    windows of the first grids are the first numbers. If `most` is not all of them and those of the first few grids
    hardly repeat, the rest is not looked at: -1. `offsets` (rows * span) are the places of a window's numbers from
    where it begins, and `weights` the factors of its hash.
    """
    each = windows.down * windows.across
    size = 4
    while size < 2 * most:
        size *= 2
    table, codes = np.zeros(size, np.int32), np.empty(most, np.uint64)
    limited = most < grids.shape[0] * each
    found = place = 0
    for grid in range(grids.shape[0]):
        numbers = grids[grid]
        for window in range(each):
            first = _begin(windows, window)
            code = np.uint64(0)
            for i in range(offsets.shape[0]):
                code += np.uint64(numbers[first + offsets[i]]) * np.uint64(weights[i])
            code = mix(code)
            slot = home(code, table)
            number = -1
            while number < 0 and table[slot] != 0:
                other = table[slot] - 1
                if codes[other] == code:
                    its_numbers, its_first = grids[chosen[other] // each], _begin(windows, chosen[other] % each)
                    different = np.uint32(0)
                    for i in range(offsets.shape[0]):
                        different |= numbers[first + offsets[i]] ^ its_numbers[its_first + offsets[i]]
                    number = other if different == 0 else number
                slot = after(slot, table)
            if number < 0:
                if found == most:
                    return -1
                number = found
                table[slot], codes[number], chosen[number] = number + 1, code, place
                found += 1
            index[place] = number
            place += 1
        reached[grid] = found
        if limited and grid + 1 == LOOKED_AT and OF * found > FEW * place:
            return -1
    return found


@kernel
def cut_chosen(
    images: NDArray[Any], windows: Windows, scale: np.number, chosen: NDArray[np.int64], patches: NDArray[Any]
) -> None:
    """Write some windows of images (n, numbers) as rows, each number times `scale`, which is of the patches' type."""
    span, each = windows.span, windows.down * windows.across
    for number in range(patches.shape[0]):
        image, first = chosen[number] // each, _begin(windows, chosen[number] % each)
        for row in range(windows.rows):
            start = first + row * windows.width
            source = images[image, start : start + span]
            target = patches[number, row * span : (row + 1) * span]
            for i in range(span):
                target[i] = source[i] * scale


@kernel
def gather_rows(rows: NDArray[Any], index: NDArray[np.int64], out: NDArray[Any]) -> None:
    """Write the row `index[i]` to `out[i]`."""
    for i in range(index.shape[0]):
        source, target = rows[index[i]], out[i]
        for j in range(source.shape[0]):
            target[j] = source[j]


@kernel
def add_rows(rows: NDArray[Any], index: NDArray[np.int64], active: NDArray[Any], out: NDArray[Any]) -> None:
    """Add row i to `out[index[i]]`, which begin at zero, and keep sums only where `active` is above zero."""
    for i in range(out.shape[0]):
        out[i] = 0.0
    for i in range(index.shape[0]):
        source, target = rows[i], out[index[i]]
        for j in range(source.shape[0]):
            target[j] += source[j]
    for i in range(out.shape[0]):
        kept, target = active[i], out[i]
        for j in range(kept.shape[0]):
            target[j] = target[j] if kept[j] > 0 else 0.0
