"""Observations as small pictures, stored as tiles so that a hundred thousand of them fit into a page.

A picture is cut into tiles of 8 x 8 pixels. Equal tiles are stored once, and a picture is a list of their numbers. Grid
worlds need little space; in others, such as Atari, only some states have a picture.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from backsweep.store.store import Store
from backsweep.tasks.minigrid import codes
from backsweep.tasks.minigrid.tiles import COLOURS, TILE_PIXELS, paint_all
from backsweep.trees import leaves

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


TILE = 8
LARGEST_SIDE = 96
"""Larger pictures are shown with every second, third ... pixel."""
MOST_BYTES = 24_000_000
"""Of tiles and their numbers, before compression."""
BATCH = 2_000
SMALLEST_SIDE = 3

Images = NDArray[np.uint8]


@dataclass(frozen=True)
class Pictures:
    """Pictures of states."""

    tiles: Images
    """Every tile once, (tiles, 8, 8, 3); the first is not used."""
    numbers: NDArray[np.uint32]
    """Of each state: its tiles, row by row; all 0 for a state without a picture."""
    height: int
    width: int

    @property
    def count(self) -> int:
        """The number of states with a picture."""
        return int((self.numbers[:, 0] > 0).sum())


def picture_leaf(space: gym.Space[Any]) -> int | None:
    """Return which leaf of a space is its first image; None without one."""
    images = (isinstance(leaf, gym.spaces.Box) and _image_axes(leaf) is not None for leaf in leaves(space))
    return next((place for place, is_image in enumerate(images) if is_image), None)


def _image_axes(space: gym.spaces.Box) -> tuple[int, ...] | None:
    """Return the axes of height and width of an image space, None for other spaces."""
    shape = space.shape
    if space.dtype != np.uint8 or not 2 <= len(shape) <= 3:
        return None
    if len(shape) == 2:
        axes: tuple[int, ...] = (0, 1)
    else:
        # Channels or stacked frames are on the shorter of the first and the last axis.
        axes = (0, 1) if shape[2] <= shape[0] else (1, 2)
    return axes if min(shape[axis] for axis in axes) >= SMALLEST_SIDE else None


def _to_rgb(batch: NDArray[np.uint8], space: gym.spaces.Box) -> Images:
    """Return images (n, height, width, 3); of stacked grey frames the newest."""
    axes = _image_axes(space)
    assert axes is not None
    if batch.ndim == 3:
        batch = batch[..., None]
    elif axes == (1, 2):
        batch = np.moveaxis(batch, 1, -1)
    channels = batch.shape[-1]
    if channels == 3 or (channels > 4 and channels % 3 == 0):
        return batch[..., -3:]
    return np.repeat(batch[..., -1:], 3, axis=-1)


def make_pictures(store: Store, space: gym.Space[Any], observation: NDArray[np.int64]) -> Pictures | None:
    """Return pictures of observations by number (-1: none), None if observations are not images.

    If not all fit, the first ones have a picture.
    """
    place = picture_leaf(space)
    shown = np.flatnonzero(observation >= 0)
    if place is None or not len(shown):
        return None
    leaf = list(leaves(space))[place]

    def batches() -> Iterator[tuple[NDArray[np.int64], NDArray[np.uint8]]]:
        for first in range(0, len(shown), BATCH):
            places = shown[first : first + BATCH]
            yield places, np.asarray(list(leaves(store.observations(observation[places])))[place])

    encoded = leaf.shape[-1:] == (3,) and all(is_encoded(batch) for _, batch in batches())
    collector: _Tiles | None = None
    for places, batch in batches():
        images = draw_encoded(batch) if encoded else _to_rgb(batch, leaf)
        if collector is None:
            collector = _Tiles(len(observation), images.shape[1], images.shape[2])
        if not collector.add(places, images):
            break
    assert collector is not None
    return collector.finish()


class _Tiles:
    """Collects pictures as numbers of tiles, until the space is used up."""

    def __init__(self, count: int, height: int, width: int) -> None:
        self._stride = max(1, -(-max(height, width) // LARGEST_SIDE))
        self.height, self.width = -(-height // self._stride), -(-width // self._stride)
        self._rows, self._columns = -(-self.height // TILE), -(-self.width // TILE)
        self._numbers = np.zeros((count, self._rows * self._columns), np.uint32)
        self._known: dict[int, int] = {}
        self._tiles: list[Images] = [np.zeros((1, TILE, TILE, 3), np.uint8)]
        self._room = MOST_BYTES - self._numbers.nbytes // 2  # numbers compress well
        # Tiles are identified by a hash: a sum of their words times odd factors.
        generator = np.random.Generator(np.random.PCG64(0))
        self._factors = generator.integers(1 << 63, size=TILE * TILE * 3 // 8, dtype=np.uint64) * np.uint64(2)
        self._factors += np.uint64(1)

    def add(self, places: NDArray[np.int64], images: Images) -> bool:
        """Add the pictures of some states; return False if they do not fit."""
        small = images[:, :: self._stride, :: self._stride]
        padded = np.zeros((len(small), self._rows * TILE, self._columns * TILE, 3), np.uint8)
        padded[:, : self.height, : self.width] = small
        cut = padded.reshape(len(small), self._rows, TILE, self._columns, TILE, 3).transpose(0, 1, 3, 2, 4, 5)
        tiles = np.ascontiguousarray(cut).reshape(-1, TILE, TILE, 3)
        codes = (tiles.reshape(len(tiles), -1).view(np.uint64) * self._factors).sum(axis=1, dtype=np.uint64)
        distinct, first, which = np.unique(codes, return_index=True, return_inverse=True)
        fresh = [place for place, code in enumerate(distinct.tolist()) if code not in self._known]
        self._room -= len(fresh) * TILE * TILE * 3
        if self._room < 0:
            return False
        for place in fresh:
            self._known[int(distinct[place])] = len(self._known) + 1
        self._tiles.append(tiles[first[fresh]])
        numbers = np.array([self._known[code] for code in distinct.tolist()], np.uint32)
        self._numbers[places] = numbers[which.reshape(-1)].reshape(len(places), -1)
        return True

    def finish(self) -> Pictures:
        """Return all pictures."""
        return Pictures(np.concatenate(self._tiles), self._numbers, self.height, self.width)
