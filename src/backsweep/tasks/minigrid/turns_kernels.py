"""MiniGrid's turns, split among threads by ranges of lanes."""

# In compiled code Python's numbers and numpy's are one and the same.
# mypy: disable-error-code="no-any-return,arg-type,assignment,return-value"

from __future__ import annotations

from numba import prange

from backsweep.jit.array_table import Row, Table, unpack
from backsweep.jit.compilation import kernel, threaded
from backsweep.tasks.lanes_kernels import OUTCOMES, OWN, Outcomes, Turn, end_episode, part_of
from backsweep.tasks.minigrid.levels_kernels import draw_levels
from backsweep.tasks.minigrid.moves_kernels import CANVAS, Canvas, Grids, draw_lanes, step_lanes


@kernel
def turn_part(part: int, parts: int, moving: bool, beginning: bool, turn_row: Row, task: Table) -> None:
    """Take the turn of one part of the lanes."""
    outcomes, grids = unpack(Outcomes, task[OUTCOMES]), unpack(Grids, task[OWN])
    canvas, turn = unpack(Canvas, task[CANVAS]), unpack(Turn, turn_row)
    first, last = part_of(part, parts, turn.actions.size)
    if moving:
        step_lanes(first, last, turn.actions, turn.resting, outcomes, grids, canvas)
    for lane in range(first, last):
        end_episode(lane, moving, beginning, turn, outcomes)
    if beginning:
        draw_levels(first, last, turn.ended, outcomes.streams, grids)
        draw_lanes(first, last, turn.ended, grids, canvas)


@threaded
def turn_lanes(parts: int, moving: bool, beginning: bool, turn_row: Row, task: Table) -> None:
    """Take a turn of all lanes, split into parts (see `Lanes.turn`)."""
    for part in prange(parts):
        turn_part(part, parts, moving, beginning, turn_row, task)
