"""Sokoban's lanes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from backsweep.jit.array_table import Addresses, address_table
from backsweep.jit.compilation import announce_first_compilation
from backsweep.snapshot.contents import need, need_within
from backsweep.tasks.lanes import Bundle, Lanes, need_walls
from backsweep.tasks.resize import axis_tables
from backsweep.tasks.sokoban import codes, moves_kernels
from backsweep.tasks.sokoban.generator_kernels import MOST_STATES, advance_lanes, advance_share, begin_episodes
from backsweep.tasks.sokoban.options import SokobanOptions

PICTURE_CELL = 32
# Some sizes have no playable room; any playable size needs fewer tries.
MOST_TRIES = 20_000


class SokobanLanes(Lanes):
    """Rooms of one size and number of boxes, side by side; the observation shows each cell as a block of colour."""

    FAMILY = "sokoban"
    SITUATION = ("fixed", "rooms", "lanes")
    LANES_WORTH_THREADS = 16  # a new room may take a millisecond
    ADVANCE = staticmethod(advance_lanes)
    ADVANCE_SHARE = staticmethod(advance_share)

    def __init__(self, options: SokobanOptions, num_lanes: int) -> None:
        super().__init__(num_lanes)
        announce_first_compilation()
        self.options = options
        size, cells = options.image_size, options.height * options.width
        self.single_action_space = gymnasium.spaces.Discrete(len(options.action_names))
        self.single_observation_space = gymnasium.spaces.Box(0, 255, (size, size, 3), np.uint8)
        self.fixed = np.zeros((num_lanes, cells), dtype=np.uint8)
        self.rooms = np.zeros((num_lanes, cells), dtype=np.uint8)
        self.lanes = np.zeros((num_lanes, codes.LANE_COLUMNS), dtype=np.int64)
        self.observations = np.zeros((num_lanes, size, size, 3), dtype=np.uint8)
        self._lost = np.zeros(num_lanes, dtype=np.bool_)
        settings = (
            len(codes.ACTION_NAMES) - len(options.action_names),
            len(options.action_names),
            options.width,
            options.boxes,
            options.step_limit,
            options.height,
            MOST_TRIES,
        )
        self._rooms = moves_kernels.Rooms(
            np.array(settings, np.int64),
            np.array([options.random_action_chance], np.float64),
            self.fixed,
            self.rooms,
            self.lanes,
            self._lost,
            np.array(codes.COLOURS, dtype=np.uint8),
            axis_tables(options.height, size, 1)[0],
            axis_tables(options.width, size, 1)[0],
            self.observations,
        )
        self._use_searches(1)
        self._refuse_unplayable()

    def step(self, actions: NDArray[np.int64], resting: NDArray[np.bool_]) -> None:
        """Move the lanes that are not resting."""
        moves_kernels.move_lanes(actions, resting, self._table)

    def reset(self, chosen: NDArray[np.bool_]) -> None:
        """Draw new rooms for the chosen lanes."""
        lost = begin_episodes(chosen, self.streams, self._table)
        if lost != moves_kernels.ABSENT:
            raise RuntimeError(f"lane {lost} found no room that can be played in {MOST_TRIES} tries")

    def advance(self, shares: int, moving: bool, beginning: bool, addresses: Addresses) -> NDArray[np.int64]:
        """Make enough sets for searching, then advance."""
        if len(self._searches.keys) < shares:
            self._use_searches(shares)
        super().advance(shares, moving, beginning, addresses)
        return np.flatnonzero(self._lost)

    def check_state(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Need known cells inside of a wall, the player among them, and counts that are those of the boxes."""
        options, fixed, rooms, rows = self.options, arrays["fixed"], arrays["rooms"], arrays["lanes"]
        need_within(fixed, codes.WALL, codes.TARGET + 1, "fixed cells")
        need_within(rooms, codes.WALL, codes.PLAYER + 1, "cells of rooms")
        for cells, what in ((fixed, "fixed cells"), (rooms, "cells of rooms")):
            need_walls(cells.reshape(-1, options.height, options.width), codes.WALL, what)
        need_within(rows[:, codes.STEPS], 0, options.step_limit + 1, "steps")
        players = rows[:, codes.PLAYER_CELL]
        need_within(players, 0, rooms.shape[1], "cells of players")
        need((rooms[np.arange(len(rooms)), players] == codes.PLAYER).all(), "a player is not where the room has it")
        on_target = (rooms == codes.BOX_ON_TARGET).sum(axis=1)
        need((on_target == rows[:, codes.BOXES_ON_TARGET]).all(), "the number of boxes on targets is wrong")

    @property
    def bundles(self) -> tuple[Bundle, ...]:
        """The outcomes, the rooms and the sets for searching."""
        return self.outcomes, self._rooms, self._searches

    def _use_searches(self, shares: int) -> None:
        """Make a set for each share of the lanes that a thread advances."""
        self._searches = searches(self.options, shares)
        self._table = address_table(self.bundles)

    def picture(self, lane: int) -> NDArray[np.uint8]:
        """Return the lane's room at 32 pixels per cell."""
        colours = self.rooms[lane].astype(np.int64)
        colours[(colours == codes.PLAYER) & (self.fixed[lane] == codes.TARGET)] = codes.PLAYER_ON_TARGET
        grid = np.array(codes.COLOURS, dtype=np.uint8)[colours].reshape(self.options.height, self.options.width, 3)
        picture: NDArray[np.uint8] = grid.repeat(PICTURE_CELL, axis=0).repeat(PICTURE_CELL, axis=1)
        return picture

    def _refuse_unplayable(self) -> None:
        """Raise if no room of this size can be played, rather than at the first reset."""
        if begin_episodes(self.only(0), np.zeros(self.num_lanes, dtype=np.uint64), self._table) != moves_kernels.ABSENT:
            options = self.options
            raise ValueError(
                f"no room of {options.height}x{options.width} with {options.boxes} boxes can be played: "
                f"{MOST_TRIES} tries found none; use a larger room or fewer boxes"
            )


def search_set(options: SokobanOptions) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
    """Return an empty set (keys, slots, table) with space for every state that reverse play may visit."""
    inside = (options.height - 2) * (options.width - 2)
    states = min(MOST_STATES, inside * math.comb(inside, options.boxes) * 2**options.boxes)
    table_size = 1 << (2 * states - 1).bit_length()
    keys = np.zeros((states, options.boxes + 1), dtype=np.int32)
    return keys, np.zeros(states, dtype=np.int32), np.zeros(table_size, dtype=np.int32)


def searches(options: SokobanOptions, count: int) -> moves_kernels.Searches:
    """Return several empty sets, stacked."""
    keys, slots, table = search_set(options)
    return moves_kernels.Searches(*(np.repeat(array[None], count, 0) for array in (keys, slots, table)))
