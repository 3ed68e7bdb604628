"""One run's task: carry out an action, begin the next episode."""

# In compiled code Python's numbers and numpy's are one and the same.
# mypy: disable-error-code="no-any-return,arg-type,assignment,return-value"

from __future__ import annotations

from backsweep.agent.fleet.compiled.codes import CHAIN, MINIGRID, RunArrays
from backsweep.jit.array_table import Table, unpack
from backsweep.jit.compilation import inlined
from backsweep.tasks.chain import moves_kernels as chain
from backsweep.tasks.lanes_kernels import OUTCOMES, Outcomes
from backsweep.tasks.minigrid import levels_kernels as minigrid_levels
from backsweep.tasks.minigrid import moves_kernels as minigrid
from backsweep.tasks.sokoban import generator_kernels as sokoban_rooms
from backsweep.tasks.sokoban import moves_kernels as sokoban


@inlined
def move_task(family: int, run: RunArrays, task: Table) -> None:
    """Carry out the run's action."""
    if family == MINIGRID:
        minigrid.move_lanes(run.action, run.resting, task)
    elif family == CHAIN:
        chain.move_lanes(run.action, run.resting, task)
    else:
        sokoban.move_lanes(run.action, run.resting, task)


@inlined
def reset_task(family: int, run: RunArrays, task: Table) -> bool:
    """Begin the run's next episode; return False if there is no level for it."""
    if family == MINIGRID:
        minigrid_levels.begin_episodes(run.chosen, task)
        return True
    if family == CHAIN:
        chain.begin_episodes(run.chosen, task)
        return True
    streams = unpack(Outcomes, task[OUTCOMES]).streams
    return sokoban_rooms.begin_episodes(run.chosen, streams, task) == sokoban.ABSENT
