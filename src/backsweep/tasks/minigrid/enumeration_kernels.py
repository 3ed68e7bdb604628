"""Enumerates every state of a MiniGrid task.

A layout is a start grid without its key, its doors as drawn. Within a layout a state is a number in mixed radix:

    number = (((item * door radix + door a) * door radix + door b) * cells + agent's cell) * 4 + direction

where a door that does not exist has no digit.

    item       the key's cell, or `cells` while it is carried; always 0 where there is no key
    door a, b  0 open, 1 closed, 2 locked
"""

# In compiled code Python's numbers and numpy's are one and the same.
# mypy: disable-error-code="no-any-return,arg-type,assignment,return-value"

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from backsweep.jit.array_table import (
    Addresses,
    BoolMatrix,
    BoolVector,
    ByteMatrix,
    Float64Matrix,
    Int32Matrix,
    Int32Vector,
    Int64Matrix,
    Int64Vector,
    unpack,
)
from backsweep.jit.compilation import kernel
from backsweep.tasks.minigrid import codes
from backsweep.tasks.minigrid.moves_kernels import Canvas, act, draw_cell, ends_episode, reward_of

# Columns of the layout table.
LAYOUT_KEY = 0  # the key's cell code, EMPTY if there is none
LAYOUT_DOOR_A = 1
LAYOUT_DOOR_B = 2
LAYOUT_COLUMNS = 3
# Sizes of the numbers.
RADIX = 0  # numbers of a layout
DOOR_RADIX = 1  # states of a door
SIZES = 2

UNSEEN = -1


class Layouts(NamedTuple):
    """The grids of a task without agents and keys, and how situations in them are numbered."""

    bases: ByteMatrix
    layouts: Int64Matrix
    rules: Int64Vector
    sizes: Int64Vector


class Walk(NamedTuple):
    """The result of an enumeration.

    seen         number -> place, UNSEEN where not met; one entry per number of every layout
    numbers      place -> number, in the order of visiting
    ending       place -> whether the state is terminal; such states have no successors
    successors   (place, action) -> place;   rewards and succeeds have the same axes
    """

    seen: Int32Vector
    numbers: Int64Vector
    ending: BoolVector
    successors: Int32Matrix
    rewards: Float64Matrix
    succeeds: BoolMatrix


@kernel
def door_state(cells: NDArray[np.uint8], door: int) -> int:
    """Return 0, 1 or 2 for an open, closed or locked door."""
    return (int(cells[door]) - codes.DOOR_OPEN) // codes.NUM_COLOURS


@kernel
def encode(
    cells: NDArray[np.uint8], lane: NDArray[np.int64], layout: NDArray[np.int64], door_radix: int, width: int
) -> int:
    """Return a situation's number within its layout."""
    item = 0
    if layout[LAYOUT_KEY] != codes.EMPTY:
        item = cells.size
        for cell in range(cells.size):
            if cells[cell] == layout[LAYOUT_KEY]:
                item = cell
    number = item
    if layout[LAYOUT_DOOR_A] >= 0:
        number = number * door_radix + door_state(cells, layout[LAYOUT_DOOR_A])
    if layout[LAYOUT_DOOR_B] >= 0:
        number = number * door_radix + door_state(cells, layout[LAYOUT_DOOR_B])
    return int((number * cells.size + lane[codes.Y] * width + lane[codes.X]) * 4 + lane[codes.DIRECTION])


@kernel
def decode(
    number: int,
    base: NDArray[np.uint8],
    layout: NDArray[np.int64],
    door_radix: int,
    width: int,
    cells: NDArray[np.uint8],
    lane: NDArray[np.int64],
) -> None:
    """Write the situation with a given number within its layout."""
    for cell in range(cells.size):
        cells[cell] = base[cell]
    lane[codes.DIRECTION] = number % 4
    number //= 4
    agent = number % cells.size
    number //= cells.size
    lane[codes.X], lane[codes.Y] = agent % width, agent // width
    lane[codes.STEPS] = 0
    lane[codes.CARRYING] = codes.EMPTY
    lane[codes.DOOR_A], lane[codes.DOOR_B] = layout[LAYOUT_DOOR_A], layout[LAYOUT_DOOR_B]
    if layout[LAYOUT_DOOR_B] >= 0:
        colour = (base[layout[LAYOUT_DOOR_B]] - codes.KEY) % codes.NUM_COLOURS
        cells[layout[LAYOUT_DOOR_B]] = codes.DOOR_OPEN + (number % door_radix) * codes.NUM_COLOURS + colour
        number //= door_radix
    if layout[LAYOUT_DOOR_A] >= 0:
        colour = (base[layout[LAYOUT_DOOR_A]] - codes.KEY) % codes.NUM_COLOURS
        cells[layout[LAYOUT_DOOR_A]] = codes.DOOR_OPEN + (number % door_radix) * codes.NUM_COLOURS + colour
        number //= door_radix
    if layout[LAYOUT_KEY] != codes.EMPTY:
        if number == cells.size:
            lane[codes.CARRYING] = layout[LAYOUT_KEY]
        else:
            cells[number] = layout[LAYOUT_KEY]


@kernel
def number_starts(
    start_cells: NDArray[np.uint8],
    start_lanes: NDArray[np.int64],
    start_layouts: NDArray[np.int64],
    layouts: NDArray[np.int64],
    radix: int,
    door_radix: int,
    width: int,
    numbers: NDArray[np.int64],
) -> None:
    """Write the number of every start, over all layouts: layout * radix + number within the layout."""
    for start in range(start_cells.shape[0]):
        layout = start_layouts[start]
        numbers[start] = layout * radix + encode(
            start_cells[start], start_lanes[start], layouts[layout], door_radix, width
        )


@kernel
def explore(starts: NDArray[np.int64], layouts_at: Addresses, walk_at: Addresses) -> int:
    """Visit every state that can be reached from the starts and return how many there are.

    If `numbers` is full, return one more than its size.
    """
    known, walk = unpack(Layouts, layouts_at), unpack(Walk, walk_at)
    bases, layouts, rules, seen, numbers = known.bases, known.layouts, known.rules, walk.seen, walk.numbers
    radix, door_radix, width = known.sizes[RADIX], known.sizes[DOOR_RADIX], rules[codes.WIDTH]
    cells = np.zeros(bases.shape[1], dtype=np.uint8)
    lane = np.zeros(codes.LANE_COLUMNS, dtype=np.int64)
    count = 0
    for start in range(starts.size):
        if seen[starts[start]] == UNSEEN:
            seen[starts[start]] = count
            numbers[count] = starts[start]
            count += 1
    place = 0
    while place < count:
        if not walk.ending[place]:
            layout = numbers[place] // radix
            for action in range(walk.successors.shape[1]):
                decode(numbers[place] % radix, bases[layout], layouts[layout], door_radix, width, cells, lane)
                was_on_goal = cells[lane[codes.Y] * width + lane[codes.X]] == codes.GOAL
                outcome = act(cells, lane, action, rules)
                is_on_goal = cells[lane[codes.Y] * width + lane[codes.X]] == codes.GOAL
                number = layout * radix + encode(cells, lane, layouts[layout], door_radix, width)
                if seen[number] == UNSEEN:
                    if count == numbers.size:
                        return count + 1
                    seen[number] = count
                    numbers[count] = number
                    walk.ending[count] = ends_episode(outcome, rules)
                    count += 1
                walk.successors[place, action] = seen[number]
                walk.rewards[place, action] = reward_of(outcome, was_on_goal, is_on_goal, 0, rules)
                walk.succeeds[place, action] = outcome == codes.SUCCESS
        place += 1
    return count


@kernel
def draw_states(
    numbers: NDArray[np.int64], layouts_at: Addresses, canvas_at: Addresses, images: NDArray[np.uint8]
) -> None:
    """Paint the image of every numbered state."""
    known, canvas = unpack(Layouts, layouts_at), unpack(Canvas, canvas_at)
    bases, layouts = known.bases, known.layouts
    radix, door_radix, width = known.sizes[RADIX], known.sizes[DOOR_RADIX], known.rules[codes.WIDTH]
    cells = np.zeros(bases.shape[1], dtype=np.uint8)
    lane = np.zeros(codes.LANE_COLUMNS, dtype=np.int64)
    for place in range(numbers.size):
        layout = numbers[place] // radix
        decode(numbers[place] % radix, bases[layout], layouts[layout], door_radix, width, cells, lane)
        for index in range(cells.size):
            draw_cell(cells, lane, index, width, canvas, images[place])
