"""MiniGrid's lanes, advanced by several threads, each with its share."""

# In compiled code Python's numbers and numpy's are one and the same.
# mypy: disable-error-code="no-any-return,arg-type,assignment,return-value"

from __future__ import annotations

from numba import prange

from backsweep.jit.array_table import Addresses, Table, unpack
from backsweep.jit.compilation import kernel, threaded
from backsweep.tasks.lanes_kernels import OUTCOMES, OWN, Advance, Outcomes, end_episode, range_of
from backsweep.tasks.minigrid.levels_kernels import draw_levels
from backsweep.tasks.minigrid.moves_kernels import CANVAS, Canvas, Grids, draw_lanes, step_lanes


@kernel
def advance_share(share: int, shares: int, moving: bool, beginning: bool, addresses: Addresses, task: Table) -> None:
    """Advance one share of the lanes."""
    outcomes, grids = unpack(Outcomes, task[OUTCOMES]), unpack(Grids, task[OWN])
    canvas, arrays = unpack(Canvas, task[CANVAS]), unpack(Advance, addresses)
    first, last = range_of(share, shares, arrays.actions.size)
    if moving:
        step_lanes(first, last, arrays.actions, arrays.resting, outcomes, grids, canvas)
    for lane in range(first, last):
        end_episode(lane, moving, beginning, arrays, outcomes)
    if beginning:
        draw_levels(first, last, arrays.ended, outcomes.streams, grids)
        draw_lanes(first, last, arrays.ended, grids, canvas)


@threaded
def advance_lanes(shares: int, moving: bool, beginning: bool, addresses: Addresses, task: Table) -> None:
    """Advance all lanes, in shares for the threads (see `Lanes.advance`)."""
    for share in prange(shares):
        advance_share(share, shares, moving, beginning, addresses, task)
