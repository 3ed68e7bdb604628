"""Sokoban's moves and images, and the set of visited states that the searches share.

fixed[lane]   walls, floor and targets, row by row: cell (row, column) is at row * width + column
room[lane]    the same with boxes and the player on top
lanes[lane]   [ player's cell | steps | boxes on targets ]
"""

# In compiled code Python's numbers and numpy's are one and the same.
# mypy: disable-error-code="no-any-return,arg-type,assignment,return-value"

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from backsweep.jit.compilation import kernel
from backsweep.jit.random_streams_kernels import draw_below, draw_unit, mix
from backsweep.tasks.sokoban.codes import (
    BOX,
    BOX_ON_TARGET,
    BOX_REWARD,
    BOXES_ON_TARGET,
    FIRST_MOVE,
    FIRST_PUSH,
    FLOOR,
    NO_OPERATION,
    NUM_DIRECTIONS,
    PLAYER,
    PLAYER_CELL,
    PLAYER_ON_TARGET,
    SOLVED_REWARD,
    STEP_PENALTY,
    STEPS,
    TARGET,
)

ABSENT = -1


@kernel
def offset_of(direction: int, width: int) -> int:
    """Return how far a cell's index changes in a direction: up, down, left, right."""
    if direction == 0:
        return -width
    if direction == 1:
        return width
    if direction == 2:
        return -1
    return 1


@kernel
def act(fixed: NDArray[np.uint8], room: NDArray[np.uint8], lane: NDArray[np.int64], action: int, width: int) -> int:
    """Apply one action of the package's numbering in place and return the cell a box was pushed to, or ABSENT.

    A push into a free cell is a move; a move never pushes. Walls surround the room, so two cells ahead exist whenever
    a box is ahead.
    """
    if action == NO_OPERATION:
        return ABSENT
    offset = offset_of((action - FIRST_PUSH) % NUM_DIRECTIONS, width)
    here = lane[PLAYER_CELL]
    ahead = here + offset
    pushed_to = ABSENT
    if room[ahead] == BOX or room[ahead] == BOX_ON_TARGET:
        beyond = ahead + offset
        if action >= FIRST_MOVE or (room[beyond] != FLOOR and room[beyond] != TARGET):
            return ABSENT
        lane[BOXES_ON_TARGET] += int(fixed[beyond] == TARGET) - int(fixed[ahead] == TARGET)
        room[beyond] = BOX_ON_TARGET if fixed[beyond] == TARGET else BOX
        pushed_to = beyond
    elif room[ahead] != FLOOR and room[ahead] != TARGET:
        return ABSENT
    room[ahead] = PLAYER
    room[here] = fixed[here]
    lane[PLAYER_CELL] = ahead
    return pushed_to


@kernel
def draw_cell(
    fixed: NDArray[np.uint8],
    room: NDArray[np.uint8],
    cell: int,
    width: int,
    colours: NDArray[np.uint8],
    first_row: NDArray[np.int64],
    first_column: NDArray[np.int64],
    image: NDArray[np.uint8],
) -> None:
    """Fill one cell's block of the image."""
    row, column = cell // width, cell % width
    colour = int(room[cell])
    if colour == PLAYER and fixed[cell] == TARGET:
        colour = PLAYER_ON_TARGET
    red, green, blue = colours[colour, 0], colours[colour, 1], colours[colour, 2]
    for y in range(first_row[row], first_row[row + 1]):
        for x in range(first_column[column], first_column[column + 1]):
            image[y, x, 0] = red
            image[y, x, 1] = green
            image[y, x, 2] = blue


@kernel
def draw_lanes(
    chosen: NDArray[np.bool_],
    width: int,
    fixed: NDArray[np.uint8],
    rooms: NDArray[np.uint8],
    colours: NDArray[np.uint8],
    first_row: NDArray[np.int64],
    first_column: NDArray[np.int64],
    images: NDArray[np.uint8],
) -> None:
    """Paint the whole image of every chosen lane."""
    for lane in range(chosen.size):
        if chosen[lane]:
            for cell in range(fixed.shape[1]):
                draw_cell(fixed[lane], rooms[lane], cell, width, colours, first_row, first_column, images[lane])


@kernel
def step_lanes(
    actions: NDArray[np.int64],
    resting: NDArray[np.bool_],
    first_action: int,
    num_actions: int,
    random_action_chance: float,
    width: int,
    num_boxes: int,
    max_steps: int,
    streams: NDArray[np.uint64],
    fixed: NDArray[np.uint8],
    rooms: NDArray[np.uint8],
    lanes: NDArray[np.int64],
    colours: NDArray[np.uint8],
    first_row: NDArray[np.int64],
    first_column: NDArray[np.int64],
    images: NDArray[np.uint8],
    rewards: NDArray[np.float64],
    terminated: NDArray[np.bool_],
    truncated: NDArray[np.bool_],
) -> None:
    """Move every lane that is not resting and repaint the cells it changed.

    An action counts from `first_action` of the package's numbering, which leaves the no-operation out or in.
    """
    for index in range(actions.size):
        if resting[index]:
            continue
        action = actions[index]
        stream = streams[index : index + 1]
        if random_action_chance > 0.0 and draw_unit(stream) < random_action_chance:
            action = draw_below(stream, num_actions)
        lane = lanes[index]
        here = lane[PLAYER_CELL]
        boxes_before = lane[BOXES_ON_TARGET]
        pushed_to = act(fixed[index], rooms[index], lane, first_action + action, width)
        lane[STEPS] += 1
        reward = STEP_PENALTY
        if lane[BOXES_ON_TARGET] > boxes_before:
            reward += BOX_REWARD
        elif lane[BOXES_ON_TARGET] < boxes_before:
            reward -= BOX_REWARD
        terminated[index] = lane[BOXES_ON_TARGET] == num_boxes
        if terminated[index]:
            reward += SOLVED_REWARD
        rewards[index] = reward
        truncated[index] = lane[STEPS] >= max_steps
        if lane[PLAYER_CELL] != here:
            for cell in (here, lane[PLAYER_CELL], pushed_to):
                if cell != ABSENT:
                    draw_cell(fixed[index], rooms[index], cell, width, colours, first_row, first_column, images[index])


@kernel
def copy_into(target: NDArray[Any], source: NDArray[Any]) -> None:
    """Copy an array into another of its length; slice assignment takes seconds to compile."""
    for place in range(source.size):
        target[place] = source[place]


@kernel
def write_key(key: NDArray[np.int32], player: int, things: NDArray[np.int64]) -> None:
    """Write a state's key: the player's cell, then the things in ascending order, so that boxes have no names."""
    key[0] = player
    for place in range(things.size):
        thing = np.int32(things[place])
        slot = place + 1
        while slot > 1 and key[slot - 1] > thing:
            key[slot] = key[slot - 1]
            slot -= 1
        key[slot] = thing


@kernel
def add_if_new(
    key: NDArray[np.int32], count: int, keys: NDArray[np.int32], slots: NDArray[np.int32], table: NDArray[np.int32]
) -> bool:
    """Add a key to the set unless it is in it; return whether it was new.

    table   open addressing, a power of two:  [ -1 | 2 | -1 | 0 | 1 | ... ]   number of the key, or ABSENT
    keys    the keys in the order they came:  keys[0], keys[1], ...          `count` of them before this call
    slots   the place in the table of each key, so that clearing costs what filling did
    """
    word = np.uint64(0)
    for place in range(key.size):
        word = mix(word + np.uint64(key[place]) + np.uint64(1))
    mask = table.size - 1
    slot = np.int64(word & np.uint64(mask))
    while table[slot] != ABSENT:
        known = table[slot]
        same = True
        for place in range(key.size):
            if keys[known, place] != key[place]:
                same = False
                break
        if same:
            return False
        slot = (slot + 1) & mask
    table[slot] = count
    slots[count] = slot
    for place in range(key.size):
        keys[count, place] = key[place]
    return True


@kernel
def clear_set(count: int, slots: NDArray[np.int32], table: NDArray[np.int32]) -> None:
    """Empty a set of `count` keys."""
    for number in range(count):
        table[slots[number]] = ABSENT
