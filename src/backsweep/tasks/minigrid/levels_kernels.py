"""Drawing MiniGrid levels from the originals' distributions.

    DoorKey             Unlock                    RedBlueDoors              Crossing
    ######              ###########               ############              #########
    #  # #              #    #    #               #  #    #  #              #> ~    #
    # >D #              # k  D    #               #  R >  #  #              #  ~    #
    #k #G#              #   ^#    #               #  #    B  #              #       #
    ######              ###########               ############              #  ~   G#

Cells are drawn as in the originals, by rejection sampling.
"""

# In compiled code Python's numbers and numpy's are one and the same.
# mypy: disable-error-code="no-any-return,arg-type,assignment,return-value"

from __future__ import annotations

import numpy as np
from numba import prange
from numpy.typing import NDArray

from backsweep.jit.array_table import Addresses, Table, borrow, unpack
from backsweep.jit.compilation import kernel, threaded
from backsweep.jit.random_streams_kernels import draw_below
from backsweep.tasks.lanes_kernels import OUTCOMES, OWN, Advance, Outcomes, end_episode, range_of
from backsweep.tasks.minigrid import codes
from backsweep.tasks.minigrid.moves_kernels import CANVAS, Canvas, Grids, cell_ahead, draw_lanes, step_lanes

HORIZONTAL_MOVE = 0  # through a vertical river
VERTICAL_MOVE = 1  # through a horizontal river


@kernel
def build_walls(cells: NDArray[np.uint8], grid_width: int, left: int, width: int, height: int) -> None:
    """Draw the outline of a room that starts at column `left` and row 0."""
    for x in range(left, left + width):
        cells[x] = codes.WALL
        cells[(height - 1) * grid_width + x] = codes.WALL
    for y in range(height):
        cells[y * grid_width + left] = codes.WALL
        cells[y * grid_width + left + width - 1] = codes.WALL


@kernel
def draw_free_cell(
    cells: NDArray[np.uint8], grid_width: int, left: int, width: int, height: int, stream: NDArray[np.uint64]
) -> int:
    """Return an empty cell of a block of columns, uniformly."""
    while True:
        x = left + draw_below(stream, width)
        y = draw_below(stream, height)
        if cells[y * grid_width + x] == codes.EMPTY:
            return y * grid_width + x


@kernel
def place_agent(lane: NDArray[np.int64], index: int, grid_width: int, direction: int) -> None:
    """Put the agent on a cell."""
    lane[codes.X] = index % grid_width
    lane[codes.Y] = index // grid_width
    lane[codes.DIRECTION] = direction


@kernel
def draw_doorkey(
    cells: NDArray[np.uint8], lane: NDArray[np.int64], rules: NDArray[np.int64], stream: NDArray[np.uint64]
) -> None:
    """Split the room by a wall with a locked door; agent and key are on the left, the goal at the bottom right."""
    width, height = rules[codes.WIDTH], rules[codes.HEIGHT]
    build_walls(cells, width, 0, width, height)
    cells[(height - 2) * width + width - 2] = codes.GOAL
    split = 2 + draw_below(stream, width - 4)
    for y in range(height):
        cells[y * width + split] = codes.WALL
    agent = draw_free_cell(cells, width, 0, split, height, stream)
    place_agent(lane, agent, width, draw_below(stream, 4))
    lane[codes.DOOR_A] = (1 + draw_below(stream, height - 3)) * width + split
    cells[lane[codes.DOOR_A]] = codes.DOOR_LOCKED + codes.YELLOW
    key = agent
    while key == agent:
        key = draw_free_cell(cells, width, 0, split, height, stream)
    cells[key] = codes.KEY + codes.YELLOW


@kernel
def draw_unlock(
    cells: NDArray[np.uint8], lane: NDArray[np.int64], rules: NDArray[np.int64], stream: NDArray[np.uint64]
) -> None:
    """Build two rooms with a locked door between them; the agent is in the left one with the key, facing no object."""
    width, room = rules[codes.WIDTH], rules[codes.HEIGHT]
    build_walls(cells, width, 0, room, room)
    build_walls(cells, width, room - 1, room, room)
    lane[codes.DOOR_A] = (1 + draw_below(stream, room - 2)) * width + room - 1
    colour = draw_below(stream, codes.NUM_COLOURS)
    cells[lane[codes.DOOR_A]] = codes.DOOR_LOCKED + colour
    cells[draw_free_cell(cells, width, 0, room, room, stream)] = codes.KEY + colour
    while True:
        agent = draw_free_cell(cells, width, 0, room, room, stream)
        place_agent(lane, agent, width, draw_below(stream, 4))
        ahead = cells[cell_ahead(lane, width)]
        if ahead in (codes.EMPTY, codes.WALL):
            return


@kernel
def draw_redbluedoors(
    cells: NDArray[np.uint8], lane: NDArray[np.int64], rules: NDArray[np.int64], stream: NDArray[np.uint64]
) -> None:
    """Build a room in the middle with a red door in its left wall and a blue one in its right wall."""
    width, size = rules[codes.WIDTH], rules[codes.HEIGHT]
    left = size // 2
    build_walls(cells, width, 0, width, size)
    build_walls(cells, width, left, size, size)
    agent = draw_free_cell(cells, width, left, size, size, stream)
    place_agent(lane, agent, width, draw_below(stream, 4))
    lane[codes.DOOR_A] = (1 + draw_below(stream, size - 2)) * width + left
    lane[codes.DOOR_B] = (1 + draw_below(stream, size - 2)) * width + left + size - 1
    cells[lane[codes.DOOR_A]] = codes.DOOR_CLOSED + codes.RED
    cells[lane[codes.DOOR_B]] = codes.DOOR_CLOSED + codes.BLUE


@kernel
def shuffle_front(items: NDArray[np.int64], count: int, stream: NDArray[np.uint64]) -> None:
    """Move a uniformly chosen ordered sample of `count` items to the front."""
    for place in range(count):
        other = place + draw_below(stream, items.size - place)
        items[place], items[other] = items[other], items[place]


@kernel
def draw_crossing(
    cells: NDArray[np.uint8], lane: NDArray[np.int64], rules: NDArray[np.int64], stream: NDArray[np.uint64]
) -> None:
    """Lay rivers across the room and open one crossing in each, along a random way from room to room.

    River r is vertical at column 2 + 2 r, or from `per_axis` on horizontal at row 2 + 2 (r - per_axis).
    """
    size, count = rules[codes.WIDTH], rules[codes.CROSSINGS]
    build_walls(cells, size, 0, size, size)
    place_agent(lane, size + 1, size, codes.RIGHT)
    cells[(size - 2) * size + size - 2] = codes.GOAL
    per_axis = max((size - 3) // 2, 0)
    rivers = np.arange(2 * per_axis)
    shuffle_front(rivers, count, stream)
    chosen = np.zeros(rivers.size, dtype=np.bool_)
    for place in range(count):
        chosen[rivers[place]] = True
    # Limits of the rooms along each axis: the outer walls and the rivers between them.
    columns = np.zeros(count + 2, dtype=np.int64)
    rows = np.zeros(count + 2, dtype=np.int64)
    vertical, horizontal = 0, 0
    for river in range(rivers.size):
        if not chosen[river]:
            continue
        if river < per_axis:
            vertical += 1
            columns[vertical] = 2 + 2 * river
        else:
            horizontal += 1
            rows[horizontal] = 2 + 2 * (river - per_axis)
    columns[vertical + 1] = size - 1
    rows[horizontal + 1] = size - 1
    for place in range(1, size - 1):
        for number in range(1, vertical + 1):
            cells[place * size + columns[number]] = rules[codes.OBSTACLE]
        for number in range(1, horizontal + 1):
            cells[rows[number] * size + place] = rules[codes.OBSTACLE]
    way = np.zeros(count, dtype=np.int64)
    for move in range(vertical, count):
        way[move] = VERTICAL_MOVE
    shuffle_front(way, count, stream)
    room_column, room_row = 0, 0
    for number in range(count):
        if way[number] == HORIZONTAL_MOVE:
            x = columns[room_column + 1]
            y = rows[room_row] + 1 + draw_below(stream, rows[room_row + 1] - rows[room_row] - 1)
            room_column += 1
        else:
            x = columns[room_column] + 1 + draw_below(stream, columns[room_column + 1] - columns[room_column] - 1)
            y = rows[room_row + 1]
            room_row += 1
        cells[y * size + x] = codes.EMPTY


@kernel
def draw_levels(first: int, last: int, chosen: NDArray[np.bool_], streams: NDArray[np.uint64], grids: Grids) -> None:
    """Draw a new level for every chosen lane of first..last-1 from its own stream."""
    rules = grids.rules
    for index in range(first, last):
        if not chosen[index]:
            continue
        cell, lane, stream = grids.cells[index], grids.lanes[index], streams[index : index + 1]
        cell[:] = codes.EMPTY
        lane[codes.CARRYING] = codes.EMPTY
        lane[codes.STEPS] = 0
        lane[codes.DOOR_A] = -1
        lane[codes.DOOR_B] = -1
        if rules[codes.FAMILY] == codes.FAMILY_DOORKEY:
            draw_doorkey(cell, lane, rules, stream)
        elif rules[codes.FAMILY] == codes.FAMILY_UNLOCK:
            draw_unlock(cell, lane, rules, stream)
        elif rules[codes.FAMILY] == codes.FAMILY_REDBLUEDOORS:
            draw_redbluedoors(cell, lane, rules, stream)
        else:
            draw_crossing(cell, lane, rules, stream)


@kernel
def begin_episodes(chosen: NDArray[np.bool_], task: Table) -> None:
    """Draw a new level for every chosen lane and paint it."""
    grids, chosen = unpack(Grids, task[OWN]), borrow(chosen)
    # Not from a literal 0, for which numba would compile both once more than `advance_share` needs.
    first, last = range_of(0, 1, chosen.size)
    draw_levels(first, last, chosen, unpack(Outcomes, task[OUTCOMES]).streams, grids)
    draw_lanes(first, last, chosen, grids, unpack(Canvas, task[CANVAS]))


@kernel
def advance_share(share: int, shares: int, moving: bool, beginning: bool, addresses: Addresses, task: Table) -> None:
    """Advance one share of the lanes."""
    outcomes, grids = unpack(Outcomes, task[OUTCOMES]), unpack(Grids, task[OWN])
    canvas, arrays = unpack(Canvas, task[CANVAS]), unpack(Advance, addresses)
    first, last = range_of(share, shares, arrays.actions.size)
    if moving:
        step_lanes(first, last, arrays.actions, arrays.resting, outcomes, grids, canvas)
    for lane in range(first, last):
        end_episode(lane, moving, beginning, arrays, outcomes)
    if beginning:
        draw_levels(first, last, arrays.ended, outcomes.streams, grids)
        draw_lanes(first, last, arrays.ended, grids, canvas)


@threaded
def advance_lanes(shares: int, moving: bool, beginning: bool, addresses: Addresses, task: Table) -> None:
    """Advance all lanes, in shares for the threads (see `Lanes.advance`)."""
    for share in prange(shares):
        advance_share(share, shares, moving, beginning, addresses, task)
