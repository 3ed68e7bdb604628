"""MiniGrid's turns, shared out among threads: each part is a run of neighbouring lanes."""

# In compiled code Python's numbers and numpy's are one and the same.
# mypy: disable-error-code="no-any-return,arg-type,assignment,return-value"

from __future__ import annotations

import numpy as np
from numba import prange
from numpy.typing import NDArray

from backsweep.jit.compilation import threaded
from backsweep.tasks.minigrid.levels_kernels import draw_levels
from backsweep.tasks.minigrid.moves_kernels import draw_lanes, step_lanes


@threaded
def turn(
    parts: int,
    moving: bool,
    beginning: bool,
    actions: NDArray[np.int64],
    resting: NDArray[np.bool_],
    num_actions: int,
    random_action_chance: float,
    rules: NDArray[np.int64],
    streams: NDArray[np.uint64],
    cells: NDArray[np.uint8],
    lanes: NDArray[np.int64],
    tiles: NDArray[np.uint8],
    first_row: NDArray[np.int64],
    row_pixel: NDArray[np.int64],
    first_column: NDArray[np.int64],
    column_pixel: NDArray[np.int64],
    images: NDArray[np.uint8],
    rewards: NDArray[np.float64],
    terminated: NDArray[np.bool_],
    truncated: NDArray[np.bool_],
    ended: NDArray[np.bool_],
    numbers: NDArray[np.uint8],
    finals: NDArray[np.uint8],
) -> None:
    """Move the lanes, keep the last images of episodes that end and begin the next (see `Lanes.turn`).

    `numbers` are the images with one row of numbers per lane.
    """
    for part in prange(parts):
        first, last = part * actions.size // parts, (part + 1) * actions.size // parts
        if moving:
            step_lanes(
                actions[first:last],
                resting[first:last],
                num_actions,
                random_action_chance,
                rules,
                streams[first:last],
                cells[first:last],
                lanes[first:last],
                tiles,
                first_row,
                row_pixel,
                first_column,
                column_pixel,
                images[first:last],
                rewards[first:last],
                terminated[first:last],
                truncated[first:last],
            )
        for lane in range(first, last):
            ended[lane] = not resting[lane] and (not moving or terminated[lane] or truncated[lane])
            if ended[lane] and moving and beginning:
                for place in range(finals.shape[1]):
                    finals[lane, place] = numbers[lane, place]
        if beginning:
            draw_levels(ended[first:last], rules, streams[first:last], cells[first:last], lanes[first:last])
            draw_lanes(
                ended[first:last],
                rules,
                cells[first:last],
                lanes[first:last],
                tiles,
                first_row,
                row_pixel,
                first_column,
                column_pixel,
                images[first:last],
            )
