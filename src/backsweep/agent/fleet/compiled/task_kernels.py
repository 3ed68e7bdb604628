"""One lane's task: carry out an action, begin the next episode. The arrays are the family's `Machinery`."""

# In compiled code Python's numbers and numpy's are one and the same.
# mypy: disable-error-code="no-any-return,arg-type,assignment,return-value"

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from backsweep.agent.fleet.compiled.codes import (
    CHAIN,
    MINIGRID,
    TASK_ACTION,
    TASK_CHOSEN,
    TASK_OWN,
    TASK_RESTING,
    TASK_REWARDS,
    TASK_STREAMS,
    TASK_TERMINATED,
    TASK_TRUNCATED,
)
from backsweep.jit.array_table import (
    Entry,
    bool_vector,
    byte_images,
    byte_matrix,
    float_vector,
    int32_matrix,
    int32_vector,
    int64_matrix,
    int64_vector,
    word_vector,
)
from backsweep.jit.compilation import inlined, kernel
from backsweep.tasks.chain import moves_kernels as chain
from backsweep.tasks.minigrid import moves_kernels as minigrid
from backsweep.tasks.minigrid.levels_kernels import draw_levels
from backsweep.tasks.sokoban import moves_kernels as sokoban
from backsweep.tasks.sokoban.generator_kernels import draw_rooms


@kernel
def move_minigrid(task: Entry, ints: NDArray[np.int64], floats: NDArray[np.float64]) -> None:
    """Move one lane."""
    minigrid.step_lanes(
        int64_vector(task, TASK_ACTION),
        bool_vector(task, TASK_RESTING),
        ints[0],
        floats[0],
        int64_vector(task, TASK_OWN),
        word_vector(task, TASK_STREAMS),
        byte_matrix(task, TASK_OWN + 1),
        int64_matrix(task, TASK_OWN + 2),
        byte_images(task, TASK_OWN + 3),
        int64_vector(task, TASK_OWN + 4),
        int64_vector(task, TASK_OWN + 5),
        int64_vector(task, TASK_OWN + 6),
        int64_vector(task, TASK_OWN + 7),
        byte_images(task, TASK_OWN + 8),
        float_vector(task, TASK_REWARDS),
        bool_vector(task, TASK_TERMINATED),
        bool_vector(task, TASK_TRUNCATED),
    )


@kernel
def reset_minigrid(task: Entry) -> None:
    """Draw one lane's next level."""
    chosen, rules = bool_vector(task, TASK_CHOSEN), int64_vector(task, TASK_OWN)
    cells, lanes = byte_matrix(task, TASK_OWN + 1), int64_matrix(task, TASK_OWN + 2)
    draw_levels(chosen, rules, word_vector(task, TASK_STREAMS), cells, lanes)
    minigrid.draw_lanes(
        chosen,
        rules,
        cells,
        lanes,
        byte_images(task, TASK_OWN + 3),
        int64_vector(task, TASK_OWN + 4),
        int64_vector(task, TASK_OWN + 5),
        int64_vector(task, TASK_OWN + 6),
        int64_vector(task, TASK_OWN + 7),
        byte_images(task, TASK_OWN + 8),
    )


@kernel
def move_sokoban(task: Entry, ints: NDArray[np.int64], floats: NDArray[np.float64]) -> None:
    """Move one lane."""
    sokoban.step_lanes(
        int64_vector(task, TASK_ACTION),
        bool_vector(task, TASK_RESTING),
        ints[0],
        ints[1],
        floats[0],
        ints[2],
        ints[3],
        ints[4],
        word_vector(task, TASK_STREAMS),
        byte_matrix(task, TASK_OWN),
        byte_matrix(task, TASK_OWN + 1),
        int64_matrix(task, TASK_OWN + 2),
        byte_matrix(task, TASK_OWN + 3),
        int64_vector(task, TASK_OWN + 4),
        int64_vector(task, TASK_OWN + 5),
        byte_images(task, TASK_OWN + 6),
        float_vector(task, TASK_REWARDS),
        bool_vector(task, TASK_TERMINATED),
        bool_vector(task, TASK_TRUNCATED),
    )


@kernel
def reset_sokoban(task: Entry, ints: NDArray[np.int64]) -> bool:
    """Draw one lane's next room; return False if none was found."""
    chosen = bool_vector(task, TASK_CHOSEN)
    fixed, rooms = byte_matrix(task, TASK_OWN), byte_matrix(task, TASK_OWN + 1)
    lost = draw_rooms(
        chosen,
        ints[5],
        ints[2],
        ints[3],
        ints[6],
        word_vector(task, TASK_STREAMS),
        fixed,
        rooms,
        int64_matrix(task, TASK_OWN + 2),
        int32_matrix(task, TASK_OWN + 7),
        int32_vector(task, TASK_OWN + 8),
        int32_vector(task, TASK_OWN + 9),
    )
    if lost != sokoban.ABSENT:
        return False
    sokoban.draw_lanes(
        chosen,
        ints[2],
        fixed,
        rooms,
        byte_matrix(task, TASK_OWN + 3),
        int64_vector(task, TASK_OWN + 4),
        int64_vector(task, TASK_OWN + 5),
        byte_images(task, TASK_OWN + 6),
    )
    return True


@kernel
def move_chain(task: Entry, ints: NDArray[np.int64], floats: NDArray[np.float64]) -> None:
    """Move one lane."""
    chain.step_lanes(
        int64_vector(task, TASK_ACTION),
        bool_vector(task, TASK_RESTING),
        floats[0],
        ints[0],
        ints[1],
        word_vector(task, TASK_STREAMS),
        int64_vector(task, TASK_OWN),
        int64_vector(task, TASK_OWN + 1),
        float_vector(task, TASK_REWARDS),
        bool_vector(task, TASK_TERMINATED),
        bool_vector(task, TASK_TRUNCATED),
    )


@inlined
def move_task(family: int, task: Entry, ints: NDArray[np.int64], floats: NDArray[np.float64]) -> None:
    """Carry out the lane's action."""
    if family == MINIGRID:
        move_minigrid(task, ints, floats)
    elif family == CHAIN:
        move_chain(task, ints, floats)
    else:
        move_sokoban(task, ints, floats)


@inlined
def reset_task(family: int, task: Entry, ints: NDArray[np.int64]) -> bool:
    """Begin the lane's next episode; return False if there is no level for it."""
    if family == MINIGRID:
        reset_minigrid(task)
        return True
    if family == CHAIN:
        int64_vector(task, TASK_OWN)[0] = 0
        int64_vector(task, TASK_OWN + 1)[0] = 0
        return True
    return reset_sokoban(task, ints)
