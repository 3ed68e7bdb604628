"""The original MiniGrid beside ours: the same level in both, the same actions, everything compared."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
from minigrid.core.grid import Grid
from minigrid.core.world_object import Door, Goal, Key, Lava, Wall, WorldObj
from minigrid.envs import CrossingEnv, DoorKeyEnv, RedBlueDoorEnv, UnlockEnv
from numpy.typing import NDArray
from placing import place_grid

from backsweep.tasks.minigrid import MiniGridLanes, MiniGridOptions, codes

COLOUR_NAMES = ("red", "green", "blue", "purple", "yellow", "grey")


def original(options: MiniGridOptions) -> Any:
    """Return the original environment that `options` stand for."""
    if options.level == "doorkey":
        return DoorKeyEnv(size=options.size, max_steps=options.max_steps)
    if options.level == "unlock":
        return UnlockEnv(max_steps=options.max_steps)
    if options.level == "redbluedoors":
        return RedBlueDoorEnv(size=options.size, max_steps=options.max_steps)
    obstacle = Lava if options.level == "lavacrossing" else Wall
    return CrossingEnv(
        size=options.size, num_crossings=options.crossings, obstacle_type=obstacle, max_steps=options.max_steps
    )


def to_object(code: int) -> WorldObj | None:
    """Return the original's object for a cell code."""
    if code == codes.EMPTY:
        return None
    if code in (codes.WALL, codes.GOAL, codes.LAVA):
        return {codes.WALL: Wall, codes.GOAL: Goal, codes.LAVA: Lava}[code]()
    colour = COLOUR_NAMES[(code - codes.KEY) % codes.NUM_COLOURS]
    if code < codes.DOOR_OPEN:
        return Key(colour)
    return Door(colour, is_open=code < codes.DOOR_CLOSED, is_locked=code >= codes.DOOR_LOCKED)


def to_code(thing: WorldObj | None) -> int:
    """Return the cell code of an original's object."""
    if thing is None:
        return codes.EMPTY
    if isinstance(thing, (Wall, Goal, Lava)):
        return {"wall": codes.WALL, "goal": codes.GOAL, "lava": codes.LAVA}[thing.type]
    colour = COLOUR_NAMES.index(thing.color)
    if isinstance(thing, Key):
        return codes.KEY + colour
    assert isinstance(thing, Door)
    base = codes.DOOR_OPEN if thing.is_open else codes.DOOR_LOCKED if thing.is_locked else codes.DOOR_CLOSED
    return base + colour


def cells_of(env: Any) -> NDArray[np.uint8]:
    """Return the original's grid as cell codes."""
    return np.array([to_code(thing) for thing in env.grid.grid], dtype=np.uint8)


def row_of(env: Any) -> NDArray[np.int64]:
    """Return the original's agent as a row of the lane table."""
    row = np.zeros(codes.LANE_COLUMNS, dtype=np.int64)
    row[codes.X], row[codes.Y] = env.agent_pos
    row[codes.DIRECTION] = env.agent_dir
    row[codes.CARRYING] = to_code(env.carrying)
    row[codes.STEPS] = env.step_count
    row[codes.DOOR_A] = row[codes.DOOR_B] = -1
    places = {id(thing): index for index, thing in enumerate(env.grid.grid) if isinstance(thing, Door)}
    for column, name in ((codes.DOOR_A, "door"), (codes.DOOR_A, "red_door"), (codes.DOOR_B, "blue_door")):
        if hasattr(env, name):
            row[column] = places[id(getattr(env, name))]
    return row


def copy_level(env: Any, lanes: MiniGridLanes, lane: int = 0) -> None:
    """Put the original's situation into one of our lanes."""
    place_grid(lanes, lane, cells_of(env), row_of(env))


def put_into_original(cells: NDArray[np.uint8], row: NDArray[np.int64], env: Any) -> None:
    """Put one of our situations into the original."""
    env.grid = Grid(env.width, env.height)
    env.grid.grid = [to_object(int(code)) for code in cells]
    env.agent_pos, env.agent_dir = (int(row[codes.X]), int(row[codes.Y])), int(row[codes.DIRECTION])
    env.carrying, env.step_count = to_object(int(row[codes.CARRYING])), int(row[codes.STEPS])
    for column, names in ((codes.DOOR_A, ("door", "red_door")), (codes.DOOR_B, ("blue_door",))):
        for name in names:
            if hasattr(env, name):
                setattr(env, name, env.grid.grid[int(row[column])])


def original_image(env: Any, size: int = 40) -> NDArray[np.uint8]:
    """Return the original's full picture, resized by the image library.

    `get_frame(highlight=False)` gives the same picture more slowly: it works the agent's view out and drops it.
    """
    frame = env.grid.render(8, env.agent_pos, env.agent_dir)
    return cv2.resize(frame, (size, size), interpolation=cv2.INTER_NEAREST)


def original_tile(code: int, direction: int | None, tile_pixels: int) -> NDArray[np.uint8]:
    """Return the original's tile as bytes."""
    tile = np.zeros((tile_pixels, tile_pixels, 3), dtype=np.uint8)
    tile[:] = Grid.render_tile(to_object(code), direction, False, tile_pixels)
    return tile
