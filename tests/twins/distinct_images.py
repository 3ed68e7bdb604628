"""The plain-Python twin of `agent/learner/distinct_images_kernels.py`."""

from __future__ import annotations

from collections.abc import Hashable, Sequence


def distinct_rows(rows: Sequence[Hashable], wanted: Sequence[bool], half: int) -> tuple[list[int], list[int]]:
    """Return a row of each distinct one in the kernel's order, and each row's place in that order."""
    first = {row for row, asked in zip(rows[:half], wanted[:half], strict=True) if asked}
    second = {row for row, asked in zip(rows[half:], wanted[half:], strict=True) if asked}
    order: list[int] = []
    for kind in (first - second, first & second, second - first):
        for row in kind:
            order.append(next(i for i, other in enumerate(rows) if other == row and wanted[i]))
        order[len(order) - len(kind) :] = sorted(order[len(order) - len(kind) :])
    places = {rows[row]: place for place, row in enumerate(order)}
    return order, [places[row] if asked else len(order) - 1 for row, asked in zip(rows, wanted, strict=True)]
