"""MiniGrid's turns, split among threads by ranges of lanes."""

# In compiled code Python's numbers and numpy's are one and the same.
# mypy: disable-error-code="no-any-return,arg-type,assignment,return-value"

from __future__ import annotations

import numpy as np
from numba import prange
from numpy.typing import NDArray

from backsweep.jit.array_table import Table, unpack
from backsweep.jit.compilation import kernel, threaded
from backsweep.tasks.lanes_kernels import OUTCOMES, OWN, Outcomes, end_episode, part_of
from backsweep.tasks.minigrid.levels_kernels import draw_levels
from backsweep.tasks.minigrid.moves_kernels import CANVAS, Canvas, Grids, draw_lanes, step_lanes


@kernel
def turn_part(
    part: int,
    parts: int,
    moving: bool,
    beginning: bool,
    actions: NDArray[np.int64],
    resting: NDArray[np.bool_],
    ended: NDArray[np.bool_],
    numbers: NDArray[np.uint8],
    finals: NDArray[np.uint8],
    task: Table,
) -> None:
    """Take the turn of one part of the lanes."""
    outcomes, grids = unpack(Outcomes, task[OUTCOMES]), unpack(Grids, task[OWN])
    canvas = unpack(Canvas, task[CANVAS])
    first, last = part_of(part, parts, actions.size)
    if moving:
        step_lanes(first, last, actions, resting, outcomes, grids, canvas)
    for lane in range(first, last):
        end_episode(lane, moving, beginning, resting, outcomes, ended, numbers, finals)
    if beginning:
        draw_levels(first, last, ended, outcomes.streams, grids)
        draw_lanes(first, last, ended, grids, canvas)


@threaded
def turn(
    parts: int,
    moving: bool,
    beginning: bool,
    actions: NDArray[np.int64],
    resting: NDArray[np.bool_],
    ended: NDArray[np.bool_],
    numbers: NDArray[np.uint8],
    finals: NDArray[np.uint8],
    task: Table,
) -> None:
    """Move the lanes, keep the last images of episodes that end and begin the next (see `Lanes.turn`).

    `numbers` are the images with one row of numbers per lane.
    """
    for part in prange(parts):
        turn_part(part, parts, moving, beginning, actions, resting, ended, numbers, finals, task)
