"""Sokoban's turns, shared out among threads: each part is a run of neighbouring lanes."""

# In compiled code Python's numbers and numpy's are one and the same.
# mypy: disable-error-code="no-any-return,arg-type,assignment,return-value"

from __future__ import annotations

import numpy as np
from numba import prange
from numpy.typing import NDArray

from backsweep.jit.compilation import threaded
from backsweep.tasks.sokoban.generator_kernels import draw_rooms
from backsweep.tasks.sokoban.moves_kernels import ABSENT, draw_lanes, step_lanes


@threaded
def turn(
    parts: int,
    moving: bool,
    beginning: bool,
    actions: NDArray[np.int64],
    resting: NDArray[np.bool_],
    first_action: int,
    num_actions: int,
    random_action_chance: float,
    width: int,
    num_boxes: int,
    max_steps: int,
    streams: NDArray[np.uint64],
    fixed: NDArray[np.uint8],
    rooms: NDArray[np.uint8],
    lanes: NDArray[np.int64],
    colours: NDArray[np.uint8],
    first_row: NDArray[np.int64],
    first_column: NDArray[np.int64],
    images: NDArray[np.uint8],
    rewards: NDArray[np.float64],
    terminated: NDArray[np.bool_],
    truncated: NDArray[np.bool_],
    height: int,
    most_tries: int,
    keys: NDArray[np.int32],
    slots: NDArray[np.int32],
    table: NDArray[np.int32],
    lost: NDArray[np.bool_],
    ended: NDArray[np.bool_],
    numbers: NDArray[np.uint8],
    finals: NDArray[np.uint8],
) -> None:
    """Move the lanes, keep the last images of episodes that end and begin the next (see `Lanes.turn`).

    `numbers` are the images with one row of numbers per lane. `keys`, `slots` and `table` hold a search set for
    each part. `lost` says which lanes found no room.
    """
    for part in prange(parts):
        first, last = part * actions.size // parts, (part + 1) * actions.size // parts
        if moving:
            step_lanes(
                actions[first:last],
                resting[first:last],
                first_action,
                num_actions,
                random_action_chance,
                width,
                num_boxes,
                max_steps,
                streams[first:last],
                fixed[first:last],
                rooms[first:last],
                lanes[first:last],
                colours,
                first_row,
                first_column,
                images[first:last],
                rewards[first:last],
                terminated[first:last],
                truncated[first:last],
            )
        for lane in range(first, last):
            lost[lane] = False
            ended[lane] = not resting[lane] and (not moving or terminated[lane] or truncated[lane])
            if not (ended[lane] and beginning):
                continue
            if moving:
                for place in range(finals.shape[1]):
                    finals[lane, place] = numbers[lane, place]
            # One at a time: a lane that finds no room must not keep those behind it from theirs.
            nobody = draw_rooms(
                ended[lane : lane + 1],
                height,
                width,
                num_boxes,
                most_tries,
                streams[lane : lane + 1],
                fixed[lane : lane + 1],
                rooms[lane : lane + 1],
                lanes[lane : lane + 1],
                keys[part],
                slots[part],
                table[part],
            )
            lost[lane] = nobody != ABSENT
        if beginning:
            draw_lanes(
                ended[first:last],
                width,
                fixed[first:last],
                rooms[first:last],
                colours,
                first_row,
                first_column,
                images[first:last],
            )
