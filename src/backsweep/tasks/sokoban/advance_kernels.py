"""Sokoban's lanes, advanced by several threads, each with its share."""

# In compiled code Python's numbers and numpy's are one and the same.
# mypy: disable-error-code="no-any-return,arg-type,assignment,return-value"

from __future__ import annotations

from numba import prange

from backsweep.jit.array_table import Addresses, Table, unpack
from backsweep.jit.compilation import kernel, threaded
from backsweep.tasks.lanes_kernels import OUTCOMES, OWN, Advance, Outcomes, end_episode, range_of
from backsweep.tasks.sokoban.generator_kernels import draw_rooms
from backsweep.tasks.sokoban.moves_kernels import ABSENT, SEARCHES, Rooms, Searches, draw_lanes, step_lanes


@kernel
def advance_share(share: int, shares: int, moving: bool, beginning: bool, addresses: Addresses, task: Table) -> None:
    """Advance one share of the lanes."""
    outcomes, rooms = unpack(Outcomes, task[OUTCOMES]), unpack(Rooms, task[OWN])
    searches, arrays = unpack(Searches, task[SEARCHES]), unpack(Advance, addresses)
    first, last = range_of(share, shares, arrays.actions.size)
    if moving:
        step_lanes(first, last, arrays.actions, arrays.resting, outcomes, rooms)
    for lane in range(first, last):
        rooms.lost[lane] = False
        if end_episode(lane, moving, beginning, arrays, outcomes):
            # One at a time: a lane that finds no room must not stop the others.
            lost = draw_rooms(lane, lane + 1, arrays.ended, outcomes.streams, rooms, searches, share)
            rooms.lost[lane] = lost != ABSENT
    if beginning:
        draw_lanes(first, last, arrays.ended, rooms)


@threaded
def advance_lanes(shares: int, moving: bool, beginning: bool, addresses: Addresses, task: Table) -> None:
    """Advance all lanes, in shares for the threads (see `Lanes.advance`)."""
    for share in prange(shares):
        advance_share(share, shares, moving, beginning, addresses, task)
