"""MiniGrid's moves, rewards and images.

A lane is a row of `cells` and a row of `lanes` (columns in `codes.py`); x runs right, y runs down:

    cells[lane]   one byte per cell, row by row: cell (x, y) is at y * width + x
    lanes[lane]   [ x | y | direction | carrying | steps | door a | door b ]

The image is kept up to date in place: a step repaints only the cells that it changed.

    canvas        tiles (tile, 8, 8, 3); first_row, row_pixel, first_column, column_pixel as in `tiles.Canvas`
"""

# In compiled code Python's numbers and numpy's are one and the same.
# mypy: disable-error-code="no-any-return,arg-type,assignment,return-value"

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from backsweep.jit.array_table import (
    ByteImages,
    ByteMatrix,
    Float64Vector,
    Int64Matrix,
    Int64Vector,
    Table,
    borrow,
    unpack,
)
from backsweep.jit.compilation import kernel
from backsweep.tasks.lanes_kernels import OUTCOMES, OWN, OWN_SECOND, Outcomes, range_of, taken_action
from backsweep.tasks.minigrid import codes

CANVAS = OWN_SECOND


class Grids(NamedTuple):
    """The level of every lane."""

    rules: Int64Vector
    num_actions: Int64Vector
    chance: Float64Vector
    """Of a random action."""
    cells: ByteMatrix
    lanes: Int64Matrix
    images: ByteImages


class Canvas(NamedTuple):
    """The tile table and, per axis, where each cell and each pixel of the image comes from (see `resize`)."""

    tiles: ByteImages
    first_row: Int64Vector
    row_pixel: Int64Vector
    first_column: Int64Vector
    column_pixel: Int64Vector


@kernel
def is_open_door(code: int) -> bool:
    """Return whether a cell code is an open door."""
    return codes.DOOR_OPEN <= code < codes.DOOR_CLOSED


@kernel
def cell_ahead(lane: NDArray[np.int64], width: int) -> int:
    """Return the index of the cell in front of the agent, which exists because walls surround every level."""
    x, y, direction = lane[codes.X], lane[codes.Y], lane[codes.DIRECTION]
    if direction == codes.RIGHT:
        x += 1
    elif direction == codes.DOWN:
        y += 1
    elif direction == codes.LEFT:
        x -= 1
    elif direction == codes.UP:
        y -= 1
    return int(y * width + x)


@kernel
def toggled(code: int, carrying: int) -> int:
    """Return what a cell becomes when toggled by an agent that carries `carrying`."""
    if is_open_door(code):
        return code - codes.DOOR_OPEN + codes.DOOR_CLOSED
    if codes.DOOR_CLOSED <= code < codes.DOOR_LOCKED:
        return code - codes.DOOR_CLOSED + codes.DOOR_OPEN
    if code >= codes.DOOR_LOCKED and carrying == code - codes.DOOR_LOCKED + codes.KEY:
        return code - codes.DOOR_LOCKED + codes.DOOR_OPEN
    return code


@kernel
def act(cells: NDArray[np.uint8], lane: NDArray[np.int64], action: int, rules: NDArray[np.int64]) -> int:
    """Apply one action to one lane in place and return NOTHING, SUCCESS or FAILURE."""
    width = rules[codes.WIDTH]
    family = rules[codes.FAMILY]
    front = cell_ahead(lane, width)
    ahead = int(cells[front])
    red_was_open = family == codes.FAMILY_REDBLUEDOORS and is_open_door(cells[lane[codes.DOOR_A]])
    blue_was_open = family == codes.FAMILY_REDBLUEDOORS and is_open_door(cells[lane[codes.DOOR_B]])
    outcome = codes.NOTHING
    if action == codes.TURN_LEFT:
        lane[codes.DIRECTION] = (lane[codes.DIRECTION] + 3) % 4
    elif action == codes.TURN_RIGHT:
        lane[codes.DIRECTION] = (lane[codes.DIRECTION] + 1) % 4
    elif action == codes.FORWARD:
        if ahead in (codes.EMPTY, codes.GOAL, codes.LAVA) or is_open_door(ahead):
            lane[codes.Y] = front // width
            lane[codes.X] = front % width
        if ahead == codes.GOAL:
            outcome = codes.SUCCESS
        elif ahead == codes.LAVA:
            outcome = codes.FAILURE
    elif action == codes.PICK_UP:
        if codes.KEY <= ahead < codes.KEY + codes.NUM_COLOURS and lane[codes.CARRYING] == codes.EMPTY:
            lane[codes.CARRYING] = ahead
            cells[front] = codes.EMPTY
    elif action == codes.DROP:
        if ahead == codes.EMPTY and lane[codes.CARRYING] != codes.EMPTY:
            cells[front] = lane[codes.CARRYING]
            lane[codes.CARRYING] = codes.EMPTY
    elif action == codes.TOGGLE:
        cells[front] = toggled(ahead, lane[codes.CARRYING])
        if family == codes.FAMILY_UNLOCK and is_open_door(cells[lane[codes.DOOR_A]]):
            outcome = codes.SUCCESS
    if family == codes.FAMILY_REDBLUEDOORS:
        if is_open_door(cells[lane[codes.DOOR_B]]):
            outcome = codes.SUCCESS if red_was_open else codes.FAILURE
        elif is_open_door(cells[lane[codes.DOOR_A]]) and blue_was_open:
            outcome = codes.FAILURE
    return outcome


@kernel
def reward_of(outcome: int, was_on_goal: bool, is_on_goal: bool, steps: int, rules: NDArray[np.int64]) -> float:
    """Return the reward of a step that led to `outcome` and was the episode's `steps`-th.

    The paper's form depends on the two states only; the package's on the number of steps as well.
    """
    limit = np.float64(rules[codes.MAX_STEPS])
    if rules[codes.REWARD_FORM] == codes.REWARD_PACKAGE:
        return 1.0 - 0.9 * (steps / limit) if outcome == codes.SUCCESS else 0.0
    if rules[codes.GOAL_TERMINATES] == 0:
        if was_on_goal and is_on_goal:
            return 0.0
        if is_on_goal:
            return limit
        if was_on_goal or outcome == codes.FAILURE:
            return -limit
        return -1.0
    if outcome == codes.SUCCESS:
        return limit
    if outcome == codes.FAILURE and (
        rules[codes.FAMILY] != codes.FAMILY_REDBLUEDOORS or rules[codes.WRONG_DOOR_COSTS] == 1
    ):
        return -limit
    return -1.0


@kernel
def ends_episode(outcome: int, rules: NDArray[np.int64]) -> bool:
    """Return whether an outcome ends the episode."""
    return outcome == codes.FAILURE or (outcome == codes.SUCCESS and rules[codes.GOAL_TERMINATES] == 1)


@kernel
def draw_cell(
    cells: NDArray[np.uint8], lane: NDArray[np.int64], index: int, width: int, canvas: Canvas, image: NDArray[np.uint8]
) -> None:
    """Copy one cell's tile into the image, with the agent if it is there."""
    tiles, row_pixel, column_pixel = canvas.tiles, canvas.row_pixel, canvas.column_pixel
    y = index // width
    x = index % width
    tile = int(cells[index]) * codes.TILES_PER_CODE
    if lane[codes.X] == x and lane[codes.Y] == y:
        tile += 1 + lane[codes.DIRECTION]
    for row in range(canvas.first_row[y], canvas.first_row[y + 1]):
        for column in range(canvas.first_column[x], canvas.first_column[x + 1]):
            for channel in range(3):
                image[row, column, channel] = tiles[tile, row_pixel[row], column_pixel[column], channel]


@kernel
def draw_lanes(first: int, last: int, chosen: NDArray[np.bool_], grids: Grids, canvas: Canvas) -> None:
    """Paint the whole image of every chosen lane of first..last-1."""
    width, height = grids.rules[codes.WIDTH], grids.rules[codes.HEIGHT]
    for lane in range(first, last):
        if chosen[lane]:
            for index in range(width * height):
                draw_cell(grids.cells[lane], grids.lanes[lane], index, width, canvas, grids.images[lane])


@kernel
def step_lanes(
    first: int,
    last: int,
    actions: NDArray[np.int64],
    resting: NDArray[np.bool_],
    outcomes: Outcomes,
    grids: Grids,
    canvas: Canvas,
) -> None:
    """Move every lane of first..last-1 that is not resting and repaint the cells it changed."""
    rules, chance = grids.rules, grids.chance[0]
    width = rules[codes.WIDTH]
    for index in range(first, last):
        if resting[index]:
            continue
        cell, lane, image = grids.cells[index], grids.lanes[index], grids.images[index]
        action = taken_action(index, actions[index], chance, grids.num_actions[0], outcomes.streams)
        before = lane[codes.Y] * width + lane[codes.X]
        direction_before = lane[codes.DIRECTION]
        front = cell_ahead(lane, width)
        front_before = cell[front]
        outcome = act(cell, lane, action, rules)
        lane[codes.STEPS] += 1
        after = lane[codes.Y] * width + lane[codes.X]
        outcomes.rewards[index] = reward_of(
            outcome, cell[before] == codes.GOAL, cell[after] == codes.GOAL, lane[codes.STEPS], rules
        )
        outcomes.terminated[index] = ends_episode(outcome, rules)
        outcomes.truncated[index] = lane[codes.STEPS] >= rules[codes.MAX_STEPS]
        if after != before or lane[codes.DIRECTION] != direction_before:
            draw_cell(cell, lane, before, width, canvas, image)
        if after != before or cell[front] != front_before:
            draw_cell(cell, lane, front, width, canvas, image)


@kernel
def move_lanes(actions: NDArray[np.int64], resting: NDArray[np.bool_], task: Table) -> None:
    """Move every lane that is not resting and repaint the cells it changed."""
    outcomes, grids = unpack(Outcomes, task[OUTCOMES]), unpack(Grids, task[OWN])
    first, last = range_of(0, 1, actions.size)  # a literal 0 would make numba compile `step_lanes` once more
    step_lanes(first, last, borrow(actions), borrow(resting), outcomes, grids, unpack(Canvas, task[CANVAS]))
