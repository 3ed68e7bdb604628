"""Sokoban's moves and images, and the set of visited states that the searches share.

fixed[lane]   walls, floor and targets, row by row: cell (row, column) is at row * width + column
room[lane]    the same with boxes and the player on top
lanes[lane]   [ player's cell | steps | boxes on targets ]
"""

# In compiled code Python's numbers and numpy's are one and the same.
# mypy: disable-error-code="no-any-return,arg-type,assignment,return-value"

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from backsweep.jit.array_table import (
    BoolVector,
    ByteImages,
    ByteMatrix,
    Float64Vector,
    Int32Cube,
    Int32Matrix,
    Int64Matrix,
    Int64Vector,
    Table,
    borrow,
    unpack,
)
from backsweep.jit.compilation import kernel
from backsweep.jit.hash_table_kernels import after, home
from backsweep.jit.random_streams_kernels import mix
from backsweep.tasks.lanes_kernels import OUTCOMES, OWN, OWN_SECOND, Outcomes, taken_action
from backsweep.tasks.sokoban import codes

ABSENT = -1
SEARCHES = OWN_SECOND
# Settings of a room.
FIRST_ACTION = 0  # the package's number of action 0: with or without the no-operation
NUM_ACTIONS = 1
WIDTH = 2
NUM_BOXES = 3
MAX_STEPS = 4
HEIGHT = 5
MOST_TRIES = 6


class Rooms(NamedTuple):
    """The room of every lane."""

    settings: Int64Vector
    chance: Float64Vector
    """Of a random action."""
    fixed: ByteMatrix
    rooms: ByteMatrix
    lanes: Int64Matrix
    lost: BoolVector
    """Whether a lane found no room when it was last advanced."""
    colours: ByteMatrix
    first_row: Int64Vector
    first_column: Int64Vector
    images: ByteImages


class Searches(NamedTuple):
    """Empty sets of visited states, one for each share of the lanes (see `add_if_new`)."""

    keys: Int32Cube
    slots: Int32Matrix
    table: Int32Matrix


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
    if action == codes.NO_OPERATION:
        return ABSENT
    offset = offset_of((action - codes.FIRST_PUSH) % codes.NUM_DIRECTIONS, width)
    here = lane[codes.PLAYER_CELL]
    ahead = here + offset
    pushed_to = ABSENT
    if room[ahead] == codes.BOX or room[ahead] == codes.BOX_ON_TARGET:
        beyond = ahead + offset
        if action >= codes.FIRST_MOVE or (room[beyond] != codes.FLOOR and room[beyond] != codes.TARGET):
            return ABSENT
        lane[codes.BOXES_ON_TARGET] += int(fixed[beyond] == codes.TARGET) - int(fixed[ahead] == codes.TARGET)
        room[beyond] = codes.BOX_ON_TARGET if fixed[beyond] == codes.TARGET else codes.BOX
        pushed_to = beyond
    elif room[ahead] != codes.FLOOR and room[ahead] != codes.TARGET:
        return ABSENT
    room[ahead] = codes.PLAYER
    room[here] = fixed[here]
    lane[codes.PLAYER_CELL] = ahead
    return pushed_to


@kernel
def draw_cell(lane: int, cell: int, rooms: Rooms) -> None:
    """Fill one cell's block of a lane's image."""
    width, image = rooms.settings[WIDTH], rooms.images[lane]
    row, column = cell // width, cell % width
    colour = int(rooms.rooms[lane, cell])
    if colour == codes.PLAYER and rooms.fixed[lane, cell] == codes.TARGET:
        colour = codes.PLAYER_ON_TARGET
    red, green, blue = rooms.colours[colour, 0], rooms.colours[colour, 1], rooms.colours[colour, 2]
    for y in range(rooms.first_row[row], rooms.first_row[row + 1]):
        for x in range(rooms.first_column[column], rooms.first_column[column + 1]):
            image[y, x, 0] = red
            image[y, x, 1] = green
            image[y, x, 2] = blue


@kernel
def draw_lanes(first: int, last: int, chosen: NDArray[np.bool_], rooms: Rooms) -> None:
    """Paint the whole image of every chosen lane of first..last-1."""
    for lane in range(first, last):
        if chosen[lane]:
            for cell in range(rooms.fixed.shape[1]):
                draw_cell(lane, cell, rooms)


@kernel
def step_lanes(
    first: int, last: int, actions: NDArray[np.int64], resting: NDArray[np.bool_], outcomes: Outcomes, rooms: Rooms
) -> None:
    """Move every lane of first..last-1 that is not resting and repaint the cells it changed."""
    settings, chance = rooms.settings, rooms.chance[0]
    for index in range(first, last):
        if resting[index]:
            continue
        action = taken_action(index, actions[index], chance, settings[NUM_ACTIONS], outcomes.streams)
        lane = rooms.lanes[index]
        here = lane[codes.PLAYER_CELL]
        boxes_before = lane[codes.BOXES_ON_TARGET]
        pushed_to = act(rooms.fixed[index], rooms.rooms[index], lane, settings[FIRST_ACTION] + action, settings[WIDTH])
        lane[codes.STEPS] += 1
        reward = codes.STEP_PENALTY
        if lane[codes.BOXES_ON_TARGET] > boxes_before:
            reward += codes.BOX_REWARD
        elif lane[codes.BOXES_ON_TARGET] < boxes_before:
            reward -= codes.BOX_REWARD
        outcomes.terminated[index] = lane[codes.BOXES_ON_TARGET] == settings[NUM_BOXES]
        if outcomes.terminated[index]:
            reward += codes.SOLVED_REWARD
        outcomes.rewards[index] = reward
        outcomes.truncated[index] = lane[codes.STEPS] >= settings[MAX_STEPS]
        if lane[codes.PLAYER_CELL] != here:
            for cell in (here, lane[codes.PLAYER_CELL], pushed_to):
                if cell != ABSENT:
                    draw_cell(index, cell, rooms)


@kernel
def move_lanes(actions: NDArray[np.int64], resting: NDArray[np.bool_], task: Table) -> None:
    """Move every lane that is not resting and repaint the cells it changed."""
    outcomes, rooms = unpack(Outcomes, task[OUTCOMES]), unpack(Rooms, task[OWN])
    step_lanes(0, actions.size, borrow(actions), borrow(resting), outcomes, rooms)


@kernel
def copy_into(target: NDArray[Any], source: NDArray[Any]) -> None:
    """Copy an array into another of its length; slice assignment takes seconds to compile."""
    for place in range(source.size):
        target[place] = source[place]


@kernel
def write_key(key: NDArray[np.int32], player: int, things: NDArray[np.int64]) -> None:
    """Write a state's key: the player's cell, then the things in ascending order, because boxes are interchangeable."""
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
    """Add a key to the set; return whether it was new.

    table   searched as in `hash_table_kernels.py`:  [ 0 | 3 | 0 | 1 | 2 | ... ]    number of the key + 1, or 0
    keys    the keys in order of insertion:   keys[0], keys[1], ...          `count` of them before this call
    slots   the place of each key in the table, for clearing it
    """
    word = np.uint64(0)
    for place in range(key.size):
        word = mix(word + np.uint64(key[place]) + np.uint64(1))
    slot = home(word, table)
    while table[slot] != 0:
        known = table[slot] - 1
        same = True
        for place in range(key.size):
            if keys[known, place] != key[place]:
                same = False
                break
        if same:
            return False
        slot = after(slot, table)
    table[slot] = count + 1
    slots[count] = slot
    for place in range(key.size):
        keys[count, place] = key[place]
    return True


@kernel
def clear_set(count: int, slots: NDArray[np.int32], table: NDArray[np.int32]) -> None:
    """Empty a set of `count` keys."""
    for number in range(count):
        table[slots[number]] = 0
