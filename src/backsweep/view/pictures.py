"""Observations as small pictures, stored as tiles so that a hundred thousand of them fit into a page.

A picture is cut into tiles of 8 x 8 pixels. Equal tiles are stored once, and a picture is a list of their numbers. Grid
worlds need little space; in others, such as Atari, only some states have a picture.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from backsweep.store.store import Store
from backsweep.view.minigrid_pictures import draw_encoded, is_encoded

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


def picture_leaf(space: gym.Space[Any]) -> list[Any] | None:
    """Return the path to the first image in a space, as keys of Dicts and Tuples; None without one."""
    items: list[tuple[Any, gym.Space[Any]]]
    if isinstance(space, gym.spaces.Dict):
        items = list(space.spaces.items())
    elif isinstance(space, gym.spaces.Tuple):
        items = list(enumerate(space.spaces))
    else:
        return [] if isinstance(space, gym.spaces.Box) and _image_axes(space) is not None else None
    for key, inner in items:
        rest = picture_leaf(inner)
        if rest is not None:
            return [key, *rest]
    return None


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
    way = picture_leaf(space)
    shown = np.flatnonzero(observation >= 0)
    if way is None or not len(shown):
        return None
    leaf: Any = space
    for key in way:
        leaf = leaf[key]

    def batches() -> Iterator[tuple[NDArray[np.int64], NDArray[np.uint8]]]:
        for first in range(0, len(shown), BATCH):
            places = shown[first : first + BATCH]
            views = store.observations(observation[places])
            for key in way:
                views = views[key]
            yield places, np.asarray(views)

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
