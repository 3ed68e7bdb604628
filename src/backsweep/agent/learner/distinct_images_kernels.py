"""Which images of a batch are distinct, and in which order to evaluate them."""

# In compiled code Python's numbers and numpy's are one and the same.
# mypy: disable-error-code="no-any-return,arg-type,assignment,return-value"

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from backsweep.jit.compilation import kernel
from backsweep.jit.hash_table_kernels import after, home
from backsweep.store.distinct_kernels import hash_record, same_record

FIRST, SECOND = 1, 2  # in which half of the rows an image occurs; both are 3


@kernel
def distinct_rows(
    rows: NDArray[np.uint64],
    weights: NDArray[np.uint64],
    wanted: NDArray[np.bool_],
    half: int,
    order: NDArray[np.int64],
    place: NDArray[np.int64],
) -> int:
    """Find the distinct rows (n, words) among the wanted ones; return how many there are.

    `order` gets a row of each: those that occur before row `half` only, those that occur before and after it, those
    that occur after it only. `place` (n,) gets the place in `order` of each row's equal; that of a row which is not
    wanted is the last.
    """
    count = rows.shape[0]
    size = 4
    while size < 2 * count:
        size *= 2
    table = np.zeros(size, np.int32)
    codes, leader = np.empty(count, np.uint64), np.full(count, -1, np.int64)
    halves = np.zeros(count, np.int64)
    for row in range(count):
        if not wanted[row]:
            continue
        codes[row] = hash_record(rows[row], weights)
        slot = home(codes[row], table)
        while leader[row] < 0 and table[slot] != 0:
            other = table[slot] - 1
            if codes[other] == codes[row] and same_record(rows[other], rows[row]):
                leader[row] = other
            slot = after(slot, table)
        if leader[row] < 0:
            table[slot] = row + 1
            leader[row] = row
        halves[leader[row]] |= FIRST if row < half else SECOND
    found = 0
    for kind in (FIRST, FIRST | SECOND, SECOND):
        for row in range(count):
            if leader[row] == row and halves[row] == kind:
                order[found] = row
                place[row] = found
                found += 1
    for row in range(count):
        place[row] = found - 1 if leader[row] < 0 else place[leader[row]]
    return found
