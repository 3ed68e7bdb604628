"""Tiles, painted once into a table and then copied into images.

A tile is painted on a fine canvas (three by three points per pixel) as a stack of shapes, each a predicate over points
of the unit square, and averaged down. Every tile equals MiniGrid's own, byte for byte.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from backsweep.tasks.minigrid import codes
from backsweep.tasks.minigrid.moves_kernels import Canvas
from backsweep.tasks.resize import axis_tables

TILE_PIXELS = 8
POINTS_PER_PIXEL = 3
LINE_GREY = (100, 100, 100)
BLACK = (0, 0, 0)
AGENT_RED = (255, 0, 0)
LAVA_ORANGE = (255, 128, 0)
COLOURS = ((255, 0, 0), (0, 255, 0), (0, 0, 255), (112, 39, 195), (255, 255, 0), (100, 100, 100))

Points = NDArray[np.float64]
Shape = Callable[[Points, Points], NDArray[np.bool_]]
Colour = Sequence[float]


def rectangle(left: float, right: float, top: float, bottom: float) -> Shape:
    """Return the predicate of an axis-aligned rectangle, borders included."""
    return lambda x, y: (x >= left) & (x <= right) & (y >= top) & (y <= bottom)


def disc(centre_x: float, centre_y: float, radius: float) -> Shape:
    """Return the predicate of a disc, border included."""
    return lambda x, y: (x - centre_x) * (x - centre_x) + (y - centre_y) * (y - centre_y) <= radius * radius


def stroke(x0: float, y0: float, x1: float, y1: float, radius: float) -> Shape:
    """Return the predicate of the points within `radius` of a segment, in single precision like the original's ends."""
    start = np.array([x0, y0], dtype=np.float32)
    along = np.array([x1, y1], dtype=np.float32) - start
    length = np.linalg.norm(along)
    along = along / length

    def inside(x: Points, y: Points) -> NDArray[np.bool_]:
        near = (x >= min(x0, x1) - radius) & (x <= max(x0, x1) + radius)
        near &= (y >= min(y0, y1) - radius) & (y <= max(y0, y1) + radius)
        share = np.clip((x - start[0]) * along[0] + (y - start[1]) * along[1], 0, length)
        away = np.hypot(x - (start[0] + share * along[0]), y - (start[1] + share * along[1]))
        hit: NDArray[np.bool_] = near & (away <= radius)
        return hit

    return inside


def agent_triangle(direction: int) -> Shape:
    """Return the predicate of the agent's arrowhead, turned by quarter turns about the centre."""
    tip_a, tip_b, tip_c = (np.array(p, dtype=np.float32) for p in ((0.12, 0.19), (0.87, 0.50), (0.12, 0.81)))
    edge_c, edge_b = tip_c - tip_a, tip_b - tip_a
    cc, cb, bb = np.dot(edge_c, edge_c), np.dot(edge_c, edge_b), np.dot(edge_b, edge_b)
    scale = 1 / (cc * bb - cb * cb)
    cosine, sine = math.cos(-0.5 * math.pi * direction), math.sin(-0.5 * math.pi * direction)

    def inside(x: Points, y: Points) -> NDArray[np.bool_]:
        turned_x = 0.5 + (x - 0.5) * cosine - (y - 0.5) * sine - tip_a[0]
        turned_y = 0.5 + (y - 0.5) * cosine + (x - 0.5) * sine - tip_a[1]
        c_dot = edge_c[0] * turned_x + edge_c[1] * turned_y
        b_dot = edge_b[0] * turned_x + edge_b[1] * turned_y
        share_c = (bb * c_dot - cb * b_dot) * scale
        share_b = (cc * b_dot - cb * c_dot) * scale
        hit: NDArray[np.bool_] = (share_c >= 0) & (share_b >= 0) & (share_c + share_b < 1)
        return hit

    return inside


def shapes_of(code: int) -> list[tuple[Shape, Colour]]:
    """Return what is painted for a cell code, bottom first."""
    whole = rectangle(0, 1, 0, 1)
    if code == codes.EMPTY:
        return []
    if code == codes.WALL:
        return [(whole, LINE_GREY)]
    if code == codes.GOAL:
        return [(whole, COLOURS[codes.GREEN])]
    if code == codes.LAVA:
        waves: list[tuple[Shape, Colour]] = [(whole, LAVA_ORANGE)]
        for wave in range(3):
            low, high = 0.3 + 0.2 * wave, 0.4 + 0.2 * wave
            crests = ((0.1, low), (0.3, high), (0.5, low), (0.7, high), (0.9, low))
            waves += [(stroke(*here, *there, 0.03), BLACK) for here, there in itertools.pairwise(crests)]
        return waves
    colour = COLOURS[(code - codes.KEY) % codes.NUM_COLOURS]
    if code < codes.DOOR_OPEN:
        return [
            (rectangle(0.50, 0.63, 0.31, 0.88), colour),
            (rectangle(0.38, 0.50, 0.59, 0.66), colour),
            (rectangle(0.38, 0.50, 0.81, 0.88), colour),
            (disc(0.56, 0.28, 0.190), colour),
            (disc(0.56, 0.28, 0.064), BLACK),
        ]
    if code < codes.DOOR_CLOSED:
        return [(rectangle(0.88, 1.00, 0.00, 1.00), colour), (rectangle(0.92, 0.96, 0.04, 0.96), BLACK)]
    if code < codes.DOOR_LOCKED:
        return [
            (whole, colour),
            (rectangle(0.04, 0.96, 0.04, 0.96), BLACK),
            (rectangle(0.08, 0.92, 0.08, 0.92), colour),
            (rectangle(0.12, 0.88, 0.12, 0.88), BLACK),
            (disc(0.75, 0.50, 0.08), colour),
        ]
    return [
        (whole, colour),
        (rectangle(0.06, 0.94, 0.06, 0.94), [0.45 * channel for channel in colour]),
        (rectangle(0.52, 0.75, 0.50, 0.56), colour),
    ]


def paint_tile(code: int, direction: int | None, tile_pixels: int = TILE_PIXELS) -> NDArray[np.uint8]:
    """Return one tile, (tile_pixels, tile_pixels, 3); `direction` is the agent's, None where there is no agent."""
    side = tile_pixels * POINTS_PER_PIXEL
    centres = (np.arange(side) + 0.5) / side
    x, y = np.meshgrid(centres, centres)
    grid_lines: list[tuple[Shape, Colour]] = [
        (rectangle(0, 0.031, 0, 1), LINE_GREY),
        (rectangle(0, 1, 0, 0.031), LINE_GREY),
    ]
    agent = [] if direction is None else [(agent_triangle(direction), AGENT_RED)]
    canvas = np.zeros((side, side, 3), dtype=np.uint8)
    for shape, colour in [*grid_lines, *shapes_of(code), *agent]:
        canvas[shape(x, y)] = np.array(colour).astype(np.uint8)
    points = canvas.reshape(tile_pixels, POINTS_PER_PIXEL, tile_pixels, POINTS_PER_PIXEL, 3)
    # The order of the two averages and the truncation to bytes decide the last bit of a colour.
    tile: NDArray[np.uint8] = points.mean(axis=3).mean(axis=1).astype(np.uint8)
    return tile


@functools.cache
def paint_all(tile_pixels: int = TILE_PIXELS) -> NDArray[np.uint8]:
    """Return every tile: row code * 5 without the agent, then one row per direction of the agent."""
    directions = (None, codes.RIGHT, codes.DOWN, codes.LEFT, codes.UP)
    table = np.stack(
        [paint_tile(code, direction, tile_pixels) for code in range(codes.NUM_CODES) for direction in directions]
    )
    table.flags.writeable = False  # shared by every canvas
    return table


def make_canvas(width: int, height: int, image_size: int, tile_pixels: int = TILE_PIXELS) -> Canvas:
    """Return the tables for square images of a width x height grid."""
    first_row, row_pixel = axis_tables(height, image_size, tile_pixels)
    first_column, column_pixel = axis_tables(width, image_size, tile_pixels)
    return Canvas(paint_all(tile_pixels), first_row, row_pixel, first_column, column_pixel)
