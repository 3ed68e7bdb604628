"""EBU's targets for many lanes: which episodes a batch begins to walk through, and what their steps are pulled towards.

A lane's walk is a list of rows, newest first, with their targets, and how far it has come:

    rows      [ row of the last step | the one before | ... ]      position  [ PLACE | COUNT ]
    targets   [ its target           | ...                  ]
    left_out  [ whether it is among an episode's first steps, which are left out ]

A batch goes on with the walk and may begin others. First `find_episodes` lists those, so that their next states can be
evaluated together; then `walk_through` works out their targets and hands them to the batch's rows.

    steps     rows of the episodes found, one episode after another, each in time order
    lengths   how many steps each has
"""

# In compiled code Python's numbers and numpy's are one and the same.
# mypy: disable-error-code="no-any-return,arg-type,assignment,return-value"

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from backsweep.agent.fleet.compiled.batch_kernels import stops
from backsweep.agent.fleet.compiled.codes import (
    BATCH,
    GOING,
    LANE,
    LANE_BOOTSTRAP,
    LANE_DISCOUNT,
    LANE_FIRST_ROW,
    LANE_STATE,
    Batch,
    Lane,
)
from backsweep.jit.array_table import BoolVector, Float64Vector, Int64Vector, Row, Table, unpack
from backsweep.jit.compilation import kernel
from backsweep.samplers.episodic_backward_kernels import episode_rows
from backsweep.store.store_kernels import EPISODE, FLAGS, LENGTH, NEXT_OBSERVATION, REWARD, RING, Ring

PLACE = 0
COUNT = 1
WALK_COLUMNS = 2


class Walk(NamedTuple):
    """One lane's walk, and what its batch begins."""

    position: Int64Vector
    rows: Int64Vector
    targets: Float64Vector
    left_out: BoolVector
    walked: BoolVector
    """Which rows of the batch are part of a walk."""
    steps: Int64Vector
    next_places: Int64Vector
    """The bank's rows of what comes after the steps."""
    lengths: Int64Vector


@kernel
def find_lane_episodes(arrays: Table, walk: Walk) -> int:
    """List the episodes that a batch of one lane begins; return how many."""
    lane, row, ring = unpack(Lane, arrays[LANE]), unpack(Batch, arrays[BATCH]).row, unpack(Ring, arrays[RING])
    rows, steps, first_row = ring.rows, walk.steps, lane.ints[LANE_FIRST_ROW]
    capacity = rows.shape[0]
    # Where the walk is: in the lane's own list, or in the episode that begins at `start` of `steps`, from its end.
    place, count, start, own = walk.position[PLACE], walk.position[COUNT], 0, True
    used, found = 0, 0
    for i in range(row.shape[0]):
        if not walk.walked[i]:
            continue
        fits = place < count and (walk.rows[place] if own else steps[start + count - 1 - place]) == row[i]
        if not fits:
            length = ring.episodes[rows[row[i] % capacity, EPISODE], LENGTH]
            episode_rows(row[i], arrays[RING], steps[used : used + length])
            if steps[used + length - 1] != row[i]:
                place, count = 0, 0
                continue
            for step in range(used, used + length):
                walk.next_places[step] = first_row + rows[steps[step] % capacity, NEXT_OBSERVATION]
            walk.lengths[found] = length
            found += 1
            place, count, start, own = 0, length, used, False
            used += length
        place += 1
    return found


@kernel
def find_episodes(lanes: NDArray[np.int64], walks: NDArray[np.int64], found: NDArray[np.int64]) -> None:
    """List the episodes that the batches of all lanes begin, and write how many each lane's does."""
    for lane in range(lanes.shape[0]):
        found[lane] = 0
        if unpack(Lane, lanes[lane, LANE]).ints[LANE_STATE] == GOING:
            found[lane] = find_lane_episodes(lanes[lane], unpack(Walk, walks[lane]))


@kernel
def episode_targets(
    ring: Ring,
    gamma: float,
    bootstrap: bool,
    steps: NDArray[np.int64],
    next_target: NDArray[np.floating],
    next_online: NDArray[np.floating],
    double: bool,
    diffusion: float,
    targets: NDArray[np.float64],
) -> None:
    """Work out the targets of an episode, in time order, by EBU's temporary table."""
    rows, values, actions = ring.rows, ring.values, ring.actions.view(np.int64)
    capacity, count = rows.shape[0], steps.shape[0]
    table = np.empty((count, next_target.shape[1]), np.float64)
    for step in range(count):
        for action in range(table.shape[1]):
            table[step, action] = next_target[step, action]
    for step in range(count - 1, -1, -1):
        slot = steps[step] % capacity
        best = 0
        for action in range(1, table.shape[1]):
            if double:
                if next_online[step, action] > next_online[step, best]:
                    best = action
            elif table[step, action] > table[step, best]:
                best = action
        discount = np.float64(np.float32(0.0 if stops(rows[slot, FLAGS], bootstrap) else gamma))
        target = np.float64(np.float32(values[slot, REWARD])) + discount * table[step, best]
        targets[step] = target
        if step:
            taken = actions[slot, 0]
            table[step - 1, taken] = diffusion * target + (1.0 - diffusion) * table[step - 1, taken]


@kernel
def walk_through_lane(
    arrays: Table,
    walk_row: Row,
    double: bool,
    diffusion: float,
    skipped: int,
    next_target: NDArray[np.floating],
    next_online: NDArray[np.floating],
    known: NDArray[np.floating],
    weight: NDArray[np.floating],
) -> None:
    """Give each walked row of a batch its target; rows that are left out lose their weight."""
    lane, row, walk = unpack(Lane, arrays[LANE]), unpack(Batch, arrays[BATCH]).row, unpack(Walk, walk_row)
    position, steps = walk.position, walk.steps
    episode, used = 0, 0
    for i in range(row.shape[0]):
        known[i] = np.nan
        if not walk.walked[i]:
            continue
        if not (position[PLACE] < position[COUNT] and walk.rows[position[PLACE]] == row[i]):
            length = walk.lengths[episode]
            if used + length > steps.shape[0] or length == 0 or steps[used + length - 1] != row[i]:
                position[PLACE], position[COUNT] = 0, 0
                continue
            targets = np.empty(length, np.float64)
            episode_targets(
                unpack(Ring, arrays[RING]),
                lane.floats[LANE_DISCOUNT],
                lane.ints[LANE_BOOTSTRAP] != 0,
                steps[used : used + length],
                next_target[used : used + length],
                next_online[used : used + length],
                double,
                diffusion,
                targets,
            )
            for step in range(length):
                newest_first = length - 1 - step
                walk.rows[newest_first] = steps[used + step]
                walk.targets[newest_first] = targets[step]
                walk.left_out[newest_first] = step < skipped
            position[PLACE], position[COUNT] = 0, length
            used += length
            episode += 1
        known[i] = walk.targets[position[PLACE]]
        if walk.left_out[position[PLACE]]:
            weight[i] = 0.0
        position[PLACE] += 1


@kernel
def walk_through(
    lanes: NDArray[np.int64],
    walks: NDArray[np.int64],
    double: bool,
    diffusion: float,
    skipped: int,
    starts: NDArray[np.int64],
    next_target: NDArray[np.floating],
    next_online: NDArray[np.floating],
    known: NDArray[np.floating],
    weight: NDArray[np.floating],
) -> None:
    """Go through the batches of all lanes; the values of a lane's steps begin at `starts[lane]` of the values given."""
    for lane in range(lanes.shape[0]):
        if unpack(Lane, lanes[lane, LANE]).ints[LANE_STATE] == GOING:
            walk_through_lane(
                lanes[lane],
                walks[lane],
                double,
                diffusion,
                skipped,
                next_target[starts[lane] :],
                next_online[starts[lane] :],
                known[lane],
                weight[lane],
            )
