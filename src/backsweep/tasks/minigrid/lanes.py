"""MiniGrid's lanes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from backsweep.jit.array_table import address_table
from backsweep.jit.compilation import announce_first_compilation
from backsweep.snapshot.contents import need, need_within
from backsweep.tasks.lanes import Bundle, Lanes, need_walls
from backsweep.tasks.minigrid import codes, moves_kernels, tiles
from backsweep.tasks.minigrid.levels_kernels import advance_lanes, advance_share, begin_episodes
from backsweep.tasks.minigrid.options import MiniGridOptions

PICTURE_TILE = 32


class MiniGridLanes(Lanes):
    """Levels of one MiniGrid task, side by side; the observation is the whole grid seen from above."""

    FAMILY = "minigrid"
    SITUATION = ("cells", "lanes")
    LANES_WORTH_THREADS = 512
    ADVANCE = staticmethod(advance_lanes)
    ADVANCE_SHARE = staticmethod(advance_share)

    def __init__(self, options: MiniGridOptions, num_lanes: int) -> None:
        super().__init__(num_lanes)
        announce_first_compilation()
        self.options = options
        self.rules = options.rules()
        size = options.image_size
        self.single_action_space = gymnasium.spaces.Discrete(len(options.action_names))
        self.single_observation_space = gymnasium.spaces.Box(0, 255, (size, size, 3), np.uint8)
        self.cells = np.zeros((num_lanes, options.width * options.height), dtype=np.uint8)
        self.lanes = np.zeros((num_lanes, codes.LANE_COLUMNS), dtype=np.int64)
        self.observations = np.zeros((num_lanes, size, size, 3), dtype=np.uint8)
        self._canvas = tiles.make_canvas(options.width, options.height, size)
        num_actions = np.array([len(options.action_names)], np.int64)
        chance = np.array([options.random_action_chance], np.float64)
        self._grids = moves_kernels.Grids(self.rules, num_actions, chance, self.cells, self.lanes, self.observations)
        self._table = address_table(self.bundles)

    def step(self, actions: NDArray[np.int64], resting: NDArray[np.bool_]) -> None:
        """Move the lanes that are not resting."""
        moves_kernels.move_lanes(actions, resting, self._table)

    def reset(self, chosen: NDArray[np.bool_]) -> None:
        """Draw new levels for the chosen lanes."""
        begin_episodes(chosen, self._table)

    def check_state(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Need known cells inside of a wall, and the agent and the doors among them."""
        options, cells, rows = self.options, arrays["cells"], arrays["lanes"]
        need_within(cells, 0, codes.NUM_CODES, "cells")
        need_walls(cells.reshape(-1, options.height, options.width), codes.WALL, "cells")
        need_within(rows[:, codes.X], 1, options.width - 1, "columns of agents")
        need_within(rows[:, codes.Y], 1, options.height - 1, "rows of agents")
        need_within(rows[:, codes.DIRECTION], 0, 4, "directions")
        need_within(rows[:, codes.STEPS], 0, self.rules[codes.MAX_STEPS] + 1, "steps")
        need_within(rows[:, [codes.DOOR_A, codes.DOOR_B]], -1, cells.shape[1], "doors")
        carried = rows[:, codes.CARRYING]
        key = (carried >= codes.KEY) & (carried < codes.KEY + codes.NUM_COLOURS)
        need((key | (carried == codes.EMPTY)).all(), "an agent carries something that is no key")

    @property
    def bundles(self) -> tuple[Bundle, ...]:
        """The outcomes, the grids and the canvas."""
        return self.outcomes, self._grids, self._canvas

    def picture(self, lane: int) -> NDArray[np.uint8]:
        """Return the lane's grid at 32 pixels per cell."""
        return grid_picture(self.cells[lane], self.lanes[lane], self.options.width, self.options.height)


def grid_picture(
    cells: NDArray[np.uint8], row: NDArray[np.int64], width: int, height: int, tile_pixels: int = PICTURE_TILE
) -> NDArray[np.uint8]:
    """Return an RGB image of a grid without resizing, one tile per cell."""
    table = tiles.paint_all(tile_pixels)
    numbers = cells.astype(np.int64).reshape(height, width) * codes.TILES_PER_CODE
    numbers[row[codes.Y], row[codes.X]] += 1 + row[codes.DIRECTION]
    blocks = table[numbers]
    return np.ascontiguousarray(blocks.transpose(0, 2, 1, 3, 4).reshape(height * tile_pixels, width * tile_pixels, 3))
