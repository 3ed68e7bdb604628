"""Breadth-first search for a shortest solution of a Sokoban room.

    number     0      1      2     ...       states in the order they were met, nearest first
    keys       [player, box, box, ...]       boxes ascending, because they are interchangeable
    parents    -1     0      0     ...       the state it was reached from
    moves      -1     0..3   0..3  ...       the direction that led there: up, down, left, right

A push is a move into a box, so there are four actions.
"""

# In compiled code Python's numbers and numpy's are one and the same.
# mypy: disable-error-code="no-any-return,arg-type,assignment,return-value"

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from backsweep.jit.compilation import kernel
from backsweep.tasks.sokoban.codes import NUM_DIRECTIONS, TARGET, WALL
from backsweep.tasks.sokoban.moves_kernels import ABSENT, add_if_new, offset_of, write_key

UNSOLVABLE = -1
OUT_OF_SPACE = -2


@kernel
def box_number(key: NDArray[np.int32], cell: int) -> int:
    """Return the place in a key of the box on a cell, or ABSENT."""
    for place in range(1, key.size):
        if key[place] == cell:
            return place
    return ABSENT


@kernel
def all_on_targets(fixed: NDArray[np.uint8], key: NDArray[np.int32]) -> bool:
    """Return whether a state is solved."""
    on_targets = 0
    for place in range(1, key.size):
        on_targets += int(fixed[key[place]] == TARGET)
    return on_targets == key.size - 1


@kernel
def search(
    fixed: NDArray[np.uint8],
    start: NDArray[np.int32],
    width: int,
    keys: NDArray[np.int32],
    slots: NDArray[np.int32],
    table: NDArray[np.int32],
    parents: NDArray[np.int32],
    moves: NDArray[np.int8],
) -> int:
    """Return the number of the nearest solved state, UNSOLVABLE, or OUT_OF_SPACE when the arrays are full."""
    add_if_new(start, 0, keys, slots, table)
    parents[0] = ABSENT
    moves[0] = ABSENT
    if all_on_targets(fixed, start):
        return 0
    count = 1
    key = np.zeros_like(start)
    boxes = np.zeros(start.size - 1, dtype=np.int64)
    number = 0
    while number < count:
        for direction in range(NUM_DIRECTIONS):
            offset = offset_of(direction, width)
            there = keys[number, 0] + offset
            if fixed[there] == WALL:
                continue
            box = box_number(keys[number], there)
            if box != ABSENT and (fixed[there + offset] == WALL or box_number(keys[number], there + offset) != ABSENT):
                continue
            for place in range(boxes.size):
                boxes[place] = keys[number, place + 1]
            if box != ABSENT:
                boxes[box - 1] = there + offset
            write_key(key, there, boxes)
            if count == keys.shape[0]:
                return OUT_OF_SPACE
            if add_if_new(key, count, keys, slots, table):
                parents[count] = number
                moves[count] = direction
                if all_on_targets(fixed, key):
                    return count
                count += 1
        number += 1
    return UNSOLVABLE
