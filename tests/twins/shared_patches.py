"""The plain-Python twin of `agent/learner/shared_patches_kernels.py`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Grid = Sequence[Sequence[Any]]


def windows_of(grid: Grid, rows: int, span: int, down_step: int, across_step: int) -> list[tuple[Any, ...]]:
    """Return the windows of a grid of numbers, row by row."""
    height, width = len(grid), len(grid[0])
    return [
        tuple(number for row in grid[y : y + rows] for number in row[x : x + span])
        for y in range(0, height - rows + 1, down_step)
        for x in range(0, width - span + 1, across_step)
    ]


def distinct(
    windows: Sequence[Sequence[Any]], most: int, looked_at: int
) -> tuple[list[int], list[int], list[int]] | None:
    """Return the number of every window of all grids, the first with each number, and how many each grid reached.

    Return None if there are more than `most`, or if `most` is not all of them and more than four fifths of the windows
    of the first `looked_at` grids are distinct.
    """
    numbers: dict[Any, int] = {}
    index, chosen, reached = [], [], []
    limited = most < sum(map(len, windows))
    for place, of_grid in enumerate(windows):
        for window in of_grid:
            if window not in numbers:
                numbers[window] = len(numbers)
                chosen.append(len(index))
            index.append(numbers[window])
        reached.append(len(numbers))
        if limited and place + 1 == looked_at and 5 * len(numbers) > 4 * len(index):
            return None
    return None if len(numbers) > most else (index, chosen, reached)


def add_rows(
    rows: Sequence[Sequence[float]], index: Sequence[int], active: Sequence[Sequence[float]]
) -> list[list[float]]:
    """Return sums of rows by their index, in order, and zero where `active` is not above zero."""
    sums = [[0.0] * len(row) for row in active]
    for row, number in zip(rows, index, strict=True):
        sums[number] = [total + value for total, value in zip(sums[number], row, strict=True)]
    return [
        [total if on > 0 else 0.0 for total, on in zip(of_row, kept, strict=True)]
        for of_row, kept in zip(sums, active, strict=True)
    ]
