"""Sokoban's turns, split among threads by ranges of lanes."""

# In compiled code Python's numbers and numpy's are one and the same.
# mypy: disable-error-code="no-any-return,arg-type,assignment,return-value"

from __future__ import annotations

import numpy as np
from numba import prange
from numpy.typing import NDArray

from backsweep.jit.array_table import Table, unpack
from backsweep.jit.compilation import kernel, threaded
from backsweep.tasks.lanes_kernels import OUTCOMES, OWN, Outcomes, end_episode, part_of
from backsweep.tasks.sokoban.generator_kernels import draw_rooms
from backsweep.tasks.sokoban.moves_kernels import ABSENT, SEARCHES, Rooms, Searches, draw_lanes, step_lanes


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
    outcomes, rooms = unpack(Outcomes, task[OUTCOMES]), unpack(Rooms, task[OWN])
    searches = unpack(Searches, task[SEARCHES])
    first, last = part_of(part, parts, actions.size)
    if moving:
        step_lanes(first, last, actions, resting, outcomes, rooms)
    for lane in range(first, last):
        rooms.lost[lane] = False
        if end_episode(lane, moving, beginning, resting, outcomes, ended, numbers, finals):
            # One at a time: a lane that finds no room must not stop the others.
            rooms.lost[lane] = draw_rooms(lane, lane + 1, ended, outcomes.streams, rooms, searches, part) != ABSENT
    if beginning:
        draw_lanes(first, last, ended, rooms)


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
