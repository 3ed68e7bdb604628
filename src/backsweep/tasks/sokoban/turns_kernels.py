"""Sokoban's turns, split among threads by ranges of lanes."""

# In compiled code Python's numbers and numpy's are one and the same.
# mypy: disable-error-code="no-any-return,arg-type,assignment,return-value"

from __future__ import annotations

from numba import prange

from backsweep.jit.array_table import Row, Table, unpack
from backsweep.jit.compilation import kernel, threaded
from backsweep.tasks.lanes_kernels import OUTCOMES, OWN, Outcomes, Turn, end_episode, part_of
from backsweep.tasks.sokoban.generator_kernels import draw_rooms
from backsweep.tasks.sokoban.moves_kernels import ABSENT, SEARCHES, Rooms, Searches, draw_lanes, step_lanes


@kernel
def turn_part(part: int, parts: int, moving: bool, beginning: bool, turn_row: Row, task: Table) -> None:
    """Take the turn of one part of the lanes."""
    outcomes, rooms = unpack(Outcomes, task[OUTCOMES]), unpack(Rooms, task[OWN])
    searches, turn = unpack(Searches, task[SEARCHES]), unpack(Turn, turn_row)
    first, last = part_of(part, parts, turn.actions.size)
    if moving:
        step_lanes(first, last, turn.actions, turn.resting, outcomes, rooms)
    for lane in range(first, last):
        rooms.lost[lane] = False
        if end_episode(lane, moving, beginning, turn, outcomes):
            # One at a time: a lane that finds no room must not stop the others.
            lost = draw_rooms(lane, lane + 1, turn.ended, outcomes.streams, rooms, searches, part)
            rooms.lost[lane] = lost != ABSENT
    if beginning:
        draw_lanes(first, last, turn.ended, rooms)


@threaded
def turn_lanes(parts: int, moving: bool, beginning: bool, turn_row: Row, task: Table) -> None:
    """Take a turn of all lanes, split into parts (see `Lanes.turn`)."""
    for part in prange(parts):
        turn_part(part, parts, moving, beginning, turn_row, task)
