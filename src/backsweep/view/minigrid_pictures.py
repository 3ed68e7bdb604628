"""MiniGrid's encoded observations, drawn with its tiles.

A cell is (object, colour, state); the first axis goes to the right and the second down.
"""

from __future__ import annotations

import functools

import numpy as np
from numpy.typing import NDArray

from backsweep.tasks.minigrid import codes
from backsweep.tasks.minigrid.tiles import COLOURS, TILE_PIXELS, paint_all

UNSEEN, EMPTY, WALL, FLOOR, DOOR, KEY, BALL, BOX, GOAL, LAVA, AGENT = range(11)
LARGEST_CODES = np.array([AGENT, codes.NUM_COLOURS - 1, 3], np.uint8)
LARGEST_GRID = 32

Codes = NDArray[np.uint8]


def is_encoded(batch: Codes) -> bool:
    """Return whether observations look like MiniGrid's codes: all numbers are in range, and some cells are visible."""
    fits = max(batch.shape[1:3]) <= LARGEST_GRID and bool((batch <= LARGEST_CODES).all())
    return fits and bool((batch[..., 0] > UNSEEN).any())


@functools.cache
def _table() -> Codes:
    """Return a tile for each object, colour and state."""
    known = paint_all()
    tiles = np.zeros((AGENT + 1, codes.NUM_COLOURS, 4, TILE_PIXELS, TILE_PIXELS, 3), np.uint8)

    def tile(code: int, direction: int | None = None) -> Codes:
        found: Codes = known[code * codes.TILES_PER_CODE + (0 if direction is None else 1 + direction)]
        return found

    tiles[UNSEEN] = 30
    for object_, code in ((EMPTY, codes.EMPTY), (WALL, codes.WALL), (GOAL, codes.GOAL), (LAVA, codes.LAVA)):
        tiles[object_] = tile(code)
    doors = (codes.DOOR_OPEN, codes.DOOR_CLOSED, codes.DOOR_LOCKED, codes.DOOR_LOCKED)
    centre = np.hypot(*np.meshgrid(*[np.arange(TILE_PIXELS) - (TILE_PIXELS - 1) / 2] * 2))
    for colour in range(codes.NUM_COLOURS):
        tiles[KEY, colour] = tile(codes.KEY + colour)
        for state, door in enumerate(doors):
            tiles[DOOR, colour, state] = tile(door + colour)
            tiles[AGENT, colour, state] = tile(codes.EMPTY, state)
        paint = np.array(COLOURS[colour], np.uint8)
        tiles[FLOOR, colour] = paint // 2
        for object_, shape in ((BALL, centre <= 0.4 * TILE_PIXELS), (BOX, np.ones_like(centre, np.bool_))):
            tiles[object_, colour] = tile(codes.EMPTY)
            tiles[object_, colour][:, shape] = paint
        tiles[BOX, colour, :, 2:-2, 2:-2] = 0
    tiles.flags.writeable = False
    return tiles


def draw_encoded(batch: Codes) -> Codes:
    """Return pictures (n, 8 x height, 8 x width, 3) of grids (n, width, height, 3).

    A partial view does not show the agent, which is in the middle of the lowest row; it is added.
    """
    tiles = _table()[batch[..., 0], batch[..., 1], batch[..., 2]]
    width, height = batch.shape[1:3]
    if width == height and width % 2 and not (batch[..., 0] == AGENT).any():
        tiles[:, width // 2, height - 1] = _table()[AGENT, 0, codes.UP]
    ordered = tiles.transpose(0, 2, 3, 1, 4, 5)
    return np.ascontiguousarray(ordered).reshape(len(batch), height * TILE_PIXELS, width * TILE_PIXELS, 3)
