"""Sokoban's lanes."""

from __future__ import annotations

import math
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from backsweep.jit.compilation import announce_first_compilation
from backsweep.tasks.lanes import Lanes, Machinery
from backsweep.tasks.resize import axis_tables
from backsweep.tasks.sokoban import codes, moves_kernels
from backsweep.tasks.sokoban.generator_kernels import MOST_STATES, draw_rooms
from backsweep.tasks.sokoban.options import SokobanOptions
from backsweep.tasks.sokoban.turns_kernels import turn

PICTURE_CELL = 32
# Some rooms have space but can never be played backwards far enough; more tries than any playable size ever needs.
MOST_TRIES = 20_000


class SokobanLanes(Lanes):
    """Rooms of one size and number of boxes, side by side; the observation shows each cell as a block of colour."""

    SITUATION = ("fixed", "rooms", "lanes")
    LANES_WORTH_THREADS = 16  # for the sake of those that begin: a room may take a millisecond

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
        self._numbers = self.observations.reshape(num_lanes, -1)
        self._search_set = search_set(options)
        self._search_sets = search_sets(options, 0)  # made when the first turn says how many it wants
        self._lost = np.zeros(num_lanes, dtype=np.bool_)
        self._canvas = (
            np.array(codes.COLOURS, dtype=np.uint8),
            axis_tables(options.height, size, 1)[0],
            axis_tables(options.width, size, 1)[0],
        )
        self._everything = (
            len(codes.ACTION_NAMES) - len(options.action_names),
            len(options.action_names),
            options.random_action_chance,
            options.width,
            options.boxes,
            options.max_steps,
            self.streams,
            self.fixed,
            self.rooms,
            self.lanes,
            *self._canvas,
            self.observations,
            self.rewards,
            self.terminated,
            self.truncated,
        )
        self._refuse_unplayable()

    def step(self, actions: NDArray[np.int64], resting: NDArray[np.bool_]) -> None:
        """Move the lanes that are not resting."""
        moves_kernels.step_lanes(actions, resting, *self._everything)

    def reset(self, chosen: NDArray[np.bool_]) -> None:
        """Draw new rooms for the chosen lanes."""
        lost = self._draw_rooms(chosen, self.streams)
        if lost != moves_kernels.ABSENT:
            raise RuntimeError(f"lane {lost} found no room that can be played in {MOST_TRIES} tries")
        self.draw(chosen)

    def turn(
        self,
        parts: int,
        moving: bool,
        beginning: bool,
        actions: NDArray[np.int64],
        resting: NDArray[np.bool_],
        ended: NDArray[np.bool_],
        finals: NDArray[Any],
    ) -> NDArray[np.int64]:
        """Move, copy and begin in one threaded call."""
        if len(self._search_sets[0]) < parts:
            self._search_sets = search_sets(self.options, parts)
        turn(
            parts,
            moving,
            beginning,
            actions,
            resting,
            *self._everything,
            self.options.height,
            MOST_TRIES,
            *self._search_sets,
            self._lost,
            ended,
            self._numbers,
            finals,
        )
        return np.flatnonzero(self._lost)

    def draw(self, chosen: NDArray[np.bool_]) -> None:
        """Paint the chosen lanes' observations from their rooms."""
        moves_kernels.draw_lanes(chosen, self.options.width, self.fixed, self.rooms, *self._canvas, self.observations)

    def place(self, lane: int, fixed: NDArray[np.uint8], room: NDArray[np.uint8], steps: int = 0) -> None:
        """Put a lane into a given situation; both grids are flat, in the codes of `codes`."""
        self.fixed[lane] = fixed
        self.rooms[lane] = room
        self.lanes[lane, codes.PLAYER_CELL] = int(np.flatnonzero(room == codes.PLAYER)[0])
        self.lanes[lane, codes.STEPS] = steps
        self.lanes[lane, codes.BOXES_ON_TARGET] = int((room == codes.BOX_ON_TARGET).sum())
        chosen = np.zeros(self.num_lanes, dtype=np.bool_)
        chosen[lane] = True
        self.draw(chosen)

    def machinery(self) -> Machinery:
        """Return what `step_lanes`, `draw_rooms` and `draw_lanes` take."""
        options = self.options
        first_action = len(codes.ACTION_NAMES) - len(options.action_names)
        arrays = (self.fixed, self.rooms, self.lanes, *self._canvas, self.observations, *self._search_set)
        ints = (
            first_action,
            len(options.action_names),
            options.width,
            options.boxes,
            options.max_steps,
            options.height,
            MOST_TRIES,
        )
        return Machinery("sokoban", arrays, ints, (options.random_action_chance,))

    def picture(self, lane: int) -> NDArray[np.uint8]:
        """Return the lane's room at 32 pixels per cell."""
        colours = self.rooms[lane].astype(np.int64)
        colours[(colours == codes.PLAYER) & (self.fixed[lane] == codes.TARGET)] = codes.PLAYER_ON_TARGET
        grid = np.array(codes.COLOURS, dtype=np.uint8)[colours].reshape(self.options.height, self.options.width, 3)
        picture: NDArray[np.uint8] = grid.repeat(PICTURE_CELL, axis=0).repeat(PICTURE_CELL, axis=1)
        return picture

    def _draw_rooms(self, chosen: NDArray[np.bool_], streams: NDArray[np.uint64]) -> int:
        options = self.options
        return int(
            draw_rooms(
                chosen,
                options.height,
                options.width,
                options.boxes,
                MOST_TRIES,
                streams,
                self.fixed,
                self.rooms,
                self.lanes,
                *self._search_set,
            )
        )

    def _refuse_unplayable(self) -> None:
        """Try to draw one room, so that a size that has none is refused here and not at the first reset."""
        first = np.zeros(self.num_lanes, dtype=np.bool_)
        first[0] = True
        if self._draw_rooms(first, np.zeros(self.num_lanes, dtype=np.uint64)) != moves_kernels.ABSENT:
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
    return keys, np.zeros(states, dtype=np.int32), np.full(table_size, moves_kernels.ABSENT, dtype=np.int32)


def search_sets(options: SokobanOptions, count: int) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
    """Return several empty sets, stacked: one for each part of a turn, since a search needs one to itself."""
    keys, slots, table = search_set(options)
    return np.repeat(keys[None], count, 0), np.repeat(slots[None], count, 0), np.repeat(table[None], count, 0)
