"""The shortest solution of a Sokoban room."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from backsweep.tasks.sokoban import codes, solver_kernels
from backsweep.tasks.sokoban.moves_kernels import ABSENT, write_key

FIRST_SPACE = 1 << 14


def solve(
    fixed: NDArray[np.uint8], room: NDArray[np.uint8], *, most_states: int = 20_000_000
) -> NDArray[np.int64] | None:
    """Return a shortest list of pushes that solves a room, None if there is none.

    Parameters
    ----------
    fixed, room
        The room's two grids of shape (height, width), as in `SokobanLanes`.
    most_states
        A search that visits more states than this raises MemoryError.

    Returns
    -------
    Directions 0..3 (up, down, left, right), which are also the paper's action numbers of the pushes.
    """
    if fixed.ndim != 2 or fixed.shape != room.shape:
        raise ValueError(f"fixed and room must be two grids of one shape, got {fixed.shape} and {room.shape}")
    players = np.flatnonzero(room == codes.PLAYER)
    boxes = np.flatnonzero((room == codes.BOX) | (room == codes.BOX_ON_TARGET)).astype(np.int64)
    if players.size != 1:
        raise ValueError(f"room must hold one player, got {players.size}")
    if boxes.size != int((fixed == codes.TARGET).sum()):
        raise ValueError(f"room must hold a box per target, got {boxes.size} boxes")
    start = np.zeros(boxes.size + 1, dtype=np.int32)
    write_key(start, int(players[0]), boxes)
    flat = np.ascontiguousarray(fixed, dtype=np.uint8).reshape(-1)
    space = FIRST_SPACE
    while True:
        keys = np.zeros((space, start.size), dtype=np.int32)
        parents = np.zeros(space, dtype=np.int32)
        moves = np.zeros(space, dtype=np.int8)
        table = np.zeros(2 * space, dtype=np.int32)
        found = solver_kernels.search(flat, start, fixed.shape[1], keys, np.zeros_like(parents), table, parents, moves)
        if found != solver_kernels.OUT_OF_SPACE:
            break
        if space >= most_states:
            raise MemoryError(f"more than {most_states} states met without a solution")
        space *= 4
    if found == solver_kernels.UNSOLVABLE:
        return None
    path = []
    while parents[found] != ABSENT:
        path.append(int(moves[found]))
        found = int(parents[found])
    return np.array(path[::-1], dtype=np.int64)
