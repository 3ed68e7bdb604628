"""Puts lanes into given situations, which the package itself never does."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from backsweep.tasks.minigrid import MiniGridLanes, enumeration_kernels
from backsweep.tasks.minigrid import codes as minigrid_codes
from backsweep.tasks.minigrid import moves_kernels as minigrid_moves
from backsweep.tasks.minigrid.enumeration import MiniGridStates
from backsweep.tasks.sokoban import SokobanLanes
from backsweep.tasks.sokoban import codes as sokoban_codes
from backsweep.tasks.sokoban import moves_kernels as sokoban_moves


def place_grid(lanes: MiniGridLanes, lane: int, cells: NDArray[np.uint8], row: NDArray[np.int64]) -> None:
    """Give a lane its cells and its row of the lane table, and paint it."""
    lanes.cells[lane] = cells
    lanes.lanes[lane] = row
    minigrid_moves.draw_lanes(0, lanes.num_lanes, lanes.only(lane), lanes._grids, lanes._canvas)


def situation_of(states: MiniGridStates, state: int) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return a state's cells and its row of the lane table, as `place_grid` takes them."""
    cells = np.zeros(states.bases.shape[1], dtype=np.uint8)
    row = np.zeros(minigrid_codes.LANE_COLUMNS, dtype=np.int64)
    layout, number = divmod(int(states.numbers[state]), states.radix)
    enumeration_kernels.decode(
        number, states.bases[layout], states.layouts[layout], states.door_radix, states.options.width, cells, row
    )
    return cells, row


def place_room(lanes: SokobanLanes, lane: int, fixed: NDArray[np.uint8], room: NDArray[np.uint8]) -> None:
    """Give a lane its two grids, which are flat, and paint it; its episode begins there."""
    lanes.fixed[lane] = fixed
    lanes.rooms[lane] = room
    lanes.lanes[lane, sokoban_codes.PLAYER_CELL] = int(np.flatnonzero(room == sokoban_codes.PLAYER)[0])
    lanes.lanes[lane, sokoban_codes.STEPS] = 0
    lanes.lanes[lane, sokoban_codes.BOXES_ON_TARGET] = int((room == sokoban_codes.BOX_ON_TARGET).sum())
    sokoban_moves.draw_lanes(0, lanes.num_lanes, lanes.only(lane), lanes._rooms)
