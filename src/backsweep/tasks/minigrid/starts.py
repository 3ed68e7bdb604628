"""Every start of a MiniGrid task with its probability: the distribution that `levels_kernels` draws from."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from backsweep.tasks.minigrid import codes
from backsweep.tasks.minigrid.options import MiniGridOptions

Grid = NDArray[np.uint8]
Start = tuple[Grid, int, int, int, int, float]
"""cells, the agent's cell, its direction, door a, door b, probability"""


@dataclass(frozen=True)
class Starts:
    """All starts of a task, one row each; no two are the same."""

    cells: NDArray[np.uint8]
    lanes: NDArray[np.int64]
    probability: NDArray[np.float64]

    @property
    def num_levels(self) -> int:
        """Number of different grids, without the agent."""
        return len(np.unique(self.cells, axis=0))


def all_starts(options: MiniGridOptions) -> Starts:
    """Return every start of the task."""
    listing = {
        "doorkey": _doorkey_starts,
        "unlock": _unlock_starts,
        "redbluedoors": _redbluedoors_starts,
        "simplecrossing": _crossing_starts,
        "lavacrossing": _crossing_starts,
    }[options.level]
    merged: dict[tuple[bytes, int, int], tuple[Start, float]] = {}
    for start in listing(options):
        key = (start[0].tobytes(), start[1], start[2])
        merged[key] = (start, merged[key][1] + start[5] if key in merged else start[5])
    cells = np.stack([start[0].reshape(-1) for start, _ in merged.values()])
    lanes = np.zeros((len(merged), codes.LANE_COLUMNS), dtype=np.int64)
    for row, (start, _) in zip(lanes, merged.values(), strict=True):
        row[codes.Y], row[codes.X] = divmod(start[1], options.width)
        row[codes.DIRECTION], row[codes.DOOR_A], row[codes.DOOR_B] = start[2:5]
    return Starts(cells, lanes, np.array([probability for _, probability in merged.values()]))


def count_layouts(options: MiniGridOptions) -> int:
    """Return an upper bound of the number of grids without their keys, without listing them."""
    size = options.size
    if options.level == "doorkey":
        return (size - 4) * (size - 3)
    if options.level == "unlock":
        return (size - 2) * codes.NUM_COLOURS
    if options.level == "redbluedoors":
        return (size - 2) * (size - 2)
    # Rivers, ways through them, and an opening in each; no room is longer than the grid's inside.
    places, count = 2 * len(range(2, size - 2, 2)), options.crossings or 0
    openings: int = (size - 2) ** count
    return math.comb(places, count) * math.comb(count, count // 2) * openings


def _room(grid: Grid, left: int, width: int) -> None:
    """Draw the outline of a room over the whole height."""
    grid[[0, -1], left : left + width] = codes.WALL
    grid[:, [left, left + width - 1]] = codes.WALL


def _free_cells(grid: Grid, left: int, width: int) -> list[int]:
    """Return the empty cells in a block of columns."""
    rows, columns = np.nonzero(grid[:, left : left + width] == codes.EMPTY)
    return [int(row) * grid.shape[1] + int(column) + left for row, column in zip(rows, columns, strict=True)]


def _doorkey_starts(options: MiniGridOptions) -> Iterator[Start]:
    size = options.size
    splits, doors = range(2, size - 2), range(1, size - 2)
    for split, door in itertools.product(splits, doors):
        grid = np.zeros((size, size), dtype=np.uint8)
        _room(grid, 0, size)
        grid[size - 2, size - 2] = codes.GOAL
        grid[:, split] = codes.WALL
        grid[door, split] = codes.DOOR_LOCKED + codes.YELLOW
        free = _free_cells(grid, 0, split)
        chance = 1.0 / (len(splits) * len(doors) * len(free) * 4 * (len(free) - 1))
        for key in free:
            level = grid.copy()
            level.flat[key] = codes.KEY + codes.YELLOW
            for agent, direction in itertools.product(free, range(4)):
                if agent != key:
                    yield level, agent, direction, door * size + split, -1, chance


def _unlock_starts(options: MiniGridOptions) -> Iterator[Start]:
    room, width = options.size, options.width
    doors = range(1, room - 1)
    for door, colour in itertools.product(doors, range(codes.NUM_COLOURS)):
        grid = np.zeros((room, width), dtype=np.uint8)
        _room(grid, 0, room)
        _room(grid, room - 1, room)
        grid[door, room - 1] = codes.DOOR_LOCKED + colour
        free = _free_cells(grid, 0, room)
        chance = 1.0 / (len(doors) * codes.NUM_COLOURS * len(free))
        for key in free:
            level = grid.copy()
            level.flat[key] = codes.KEY + colour
            offsets = (1, width, -1, -width)
            agents = [
                (agent, direction)
                for agent, direction in itertools.product(free, range(4))
                if agent != key and level.flat[agent + offsets[direction]] in (codes.EMPTY, codes.WALL)
            ]
            for agent, direction in agents:
                yield level, agent, direction, door * width + room - 1, -1, chance / len(agents)


def _redbluedoors_starts(options: MiniGridOptions) -> Iterator[Start]:
    size, width = options.size, options.width
    left = size // 2
    rows = range(1, size - 1)
    for red, blue in itertools.product(rows, rows):
        grid = np.zeros((size, width), dtype=np.uint8)
        _room(grid, 0, width)
        _room(grid, left, size)
        free = _free_cells(grid, left, size)
        grid[red, left] = codes.DOOR_CLOSED + codes.RED
        grid[blue, left + size - 1] = codes.DOOR_CLOSED + codes.BLUE
        chance = 1.0 / (len(rows) ** 2 * len(free) * 4)
        for agent, direction in itertools.product(free, range(4)):
            yield grid, agent, direction, red * width + left, blue * width + left + size - 1, chance


def _crossing_starts(options: MiniGridOptions) -> Iterator[Start]:
    size, count = options.size, options.crossings or 0
    obstacle = codes.LAVA if options.level == "lavacrossing" else codes.WALL
    places = [(vertical, place) for vertical in (True, False) for place in range(2, size - 2, 2)]
    for rivers in itertools.combinations(places, count):
        columns = [0, *(place for vertical, place in rivers if vertical), size - 1]
        rows = [0, *(place for vertical, place in rivers if not vertical), size - 1]
        grid = np.zeros((size, size), dtype=np.uint8)
        _room(grid, 0, size)
        grid[size - 2, size - 2] = codes.GOAL
        grid[1 : size - 1, columns[1:-1]] = obstacle
        grid[rows[1:-1], 1 : size - 1] = obstacle
        # A way is a choice of the moves that cross vertical rivers; all ways are equally likely.
        ways = list(itertools.combinations(range(count), len(columns) - 2))
        for way in ways:
            openings = list(_openings(columns, rows, [move in way for move in range(count)]))
            chance = 1.0 / (math.comb(len(places), count) * len(ways) * math.prod(map(len, openings)))
            for opened in itertools.product(*openings):
                level = grid.copy()
                for row, column in opened:
                    level[row, column] = codes.EMPTY
                yield level, size + 1, codes.RIGHT, -1, -1, chance


def _openings(columns: list[int], rows: list[int], way: list[bool]) -> Iterator[list[tuple[int, int]]]:
    """Yield the (row, column) cells where the river of each move may be opened."""
    room_column, room_row = 0, 0
    for through_vertical in way:
        if through_vertical:
            yield [(row, columns[room_column + 1]) for row in range(rows[room_row] + 1, rows[room_row + 1])]
            room_column += 1
        else:
            yield [(rows[room_row + 1], column) for column in range(columns[room_column] + 1, columns[room_column + 1])]
            room_row += 1
