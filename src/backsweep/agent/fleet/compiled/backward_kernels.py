"""EBU's targets for many lanes: which episodes a batch begins to walk through, and what their steps are pulled towards.

A lane's walk is a list of rows, newest first, with their targets, and how far it has come:

    walk_rows[lane]     [ row of the last step | the one before | ... ]      walk[lane]  [ PLACE | COUNT ]
    walk_targets[lane]  [ its target           | ...                  ]
    walk_left_out[lane] [ whether it is among an episode's first steps, which are left out ]

A batch goes on with the walk and may begin others. First `find_episodes` lists those, so that their next states can be
evaluated together; then `walk_through` works out their targets and hands them to the batch's rows.

    steps[lane]   rows of the episodes found, one episode after another, each in time order
    found[lane]   how many episodes;   lengths[lane, episode]   how many steps of each
"""

# In compiled code Python's numbers and numpy's are one and the same.
# mypy: disable-error-code="no-any-return,arg-type,assignment,return-value"

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from backsweep.agent.fleet.compiled.codes import GOING, LANE_BOOTSTRAP, LANE_DISCOUNT, LANE_FIRST_ROW, LANE_STATE
from backsweep.jit.array_table import float_matrix, int32_matrix, int64_matrix, int64_of_bytes, int64_vector
from backsweep.jit.compilation import kernel
from backsweep.samplers.episodic_backward_kernels import episode_rows
from backsweep.store.ingest_kernels import STORE_ACTIONS, STORE_COUNTERS, STORE_EPISODES, STORE_ROWS, STORE_VALUES
from backsweep.store.store_kernels import EPISODE, FLAGS, LENGTH, NEXT_OBSERVATION, REWARD, TERMINATED, TRUNCATED

PLACE = 0
COUNT = 1
WALK_COLUMNS = 2

Entry = NDArray[np.int64]


@kernel
def find_lane_episodes(
    first_row: int,
    store: Entry,
    row: NDArray[np.int64],
    walked: NDArray[np.bool_],
    walk: NDArray[np.int64],
    walk_rows: NDArray[np.int64],
    steps: NDArray[np.int64],
    next_places: NDArray[np.int64],
    lengths: NDArray[np.int64],
) -> int:
    """List the episodes that a batch of one lane begins; return how many."""
    rows, episodes = int32_matrix(store, STORE_ROWS), int64_matrix(store, STORE_EPISODES)
    counters = int64_vector(store, STORE_COUNTERS)
    capacity = rows.shape[0]
    # Where the walk is: in the lane's own list, or in the episode that begins at `start` of `steps`, from its end.
    place, count, start, own = walk[PLACE], walk[COUNT], 0, True
    used, found = 0, 0
    for i in range(row.shape[0]):
        if not walked[i]:
            continue
        fits = place < count and (walk_rows[place] if own else steps[start + count - 1 - place]) == row[i]
        if not fits:
            length = episodes[rows[row[i] % capacity, EPISODE], LENGTH]
            episode_rows(row[i], rows, episodes, counters, steps[used : used + length])
            if steps[used + length - 1] != row[i]:
                place, count = 0, 0
                continue
            for step in range(used, used + length):
                next_places[step] = first_row + rows[steps[step] % capacity, NEXT_OBSERVATION]
            lengths[found] = length
            found += 1
            place, count, start, own = 0, length, used, False
            used += length
        place += 1
    return found


@kernel
def find_episodes(
    ints: NDArray[np.int64],
    store: NDArray[np.int64],
    row: NDArray[np.int64],
    walked: NDArray[np.bool_],
    walk: NDArray[np.int64],
    walk_rows: NDArray[np.int64],
    steps: NDArray[np.int64],
    next_places: NDArray[np.int64],
    lengths: NDArray[np.int64],
    found: NDArray[np.int64],
) -> None:
    """List the episodes that the batches of all lanes begin."""
    for lane in range(row.shape[0]):
        found[lane] = 0
        if ints[lane, LANE_STATE] == GOING:
            found[lane] = find_lane_episodes(
                ints[lane, LANE_FIRST_ROW],
                store[lane],
                row[lane],
                walked[lane],
                walk[lane],
                walk_rows[lane],
                steps[lane],
                next_places[lane],
                lengths[lane],
            )


@kernel
def episode_targets(
    store: Entry,
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
    rows, values = int32_matrix(store, STORE_ROWS), float_matrix(store, STORE_VALUES)
    actions = int64_of_bytes(store, STORE_ACTIONS)
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
        flags = rows[slot, FLAGS]
        ends = (flags & TERMINATED) != 0 or (not bootstrap and (flags & TRUNCATED) != 0)
        discount = np.float64(np.float32(0.0 if ends else gamma))
        target = np.float64(np.float32(values[slot, REWARD])) + discount * table[step, best]
        targets[step] = target
        if step:
            taken = actions[slot]
            table[step - 1, taken] = diffusion * target + (1.0 - diffusion) * table[step - 1, taken]


@kernel
def walk_through_lane(
    ints: NDArray[np.int64],
    floats: NDArray[np.float64],
    store: Entry,
    row: NDArray[np.int64],
    walked: NDArray[np.bool_],
    double: bool,
    diffusion: float,
    skipped: int,
    steps: NDArray[np.int64],
    lengths: NDArray[np.int64],
    next_target: NDArray[np.floating],
    next_online: NDArray[np.floating],
    walk: NDArray[np.int64],
    walk_rows: NDArray[np.int64],
    walk_targets: NDArray[np.float64],
    walk_left_out: NDArray[np.bool_],
    known: NDArray[np.floating],
    weight: NDArray[np.floating],
) -> None:
    """Give each walked row of a batch its target; rows that are left out lose their weight."""
    episode, used = 0, 0
    for i in range(row.shape[0]):
        known[i] = np.nan
        if not walked[i]:
            continue
        if not (walk[PLACE] < walk[COUNT] and walk_rows[walk[PLACE]] == row[i]):
            length = lengths[episode]
            if used + length > steps.shape[0] or length == 0 or steps[used + length - 1] != row[i]:
                walk[PLACE], walk[COUNT] = 0, 0
                continue
            targets = np.empty(length, np.float64)
            episode_targets(
                store,
                floats[LANE_DISCOUNT],
                ints[LANE_BOOTSTRAP] != 0,
                steps[used : used + length],
                next_target[used : used + length],
                next_online[used : used + length],
                double,
                diffusion,
                targets,
            )
            for step in range(length):
                newest_first = length - 1 - step
                walk_rows[newest_first] = steps[used + step]
                walk_targets[newest_first] = targets[step]
                walk_left_out[newest_first] = step < skipped
            walk[PLACE], walk[COUNT] = 0, length
            used += length
            episode += 1
        known[i] = walk_targets[walk[PLACE]]
        if walk_left_out[walk[PLACE]]:
            weight[i] = 0.0
        walk[PLACE] += 1


@kernel
def walk_through(
    ints: NDArray[np.int64],
    floats: NDArray[np.float64],
    store: NDArray[np.int64],
    row: NDArray[np.int64],
    walked: NDArray[np.bool_],
    double: bool,
    diffusion: float,
    skipped: int,
    steps: NDArray[np.int64],
    lengths: NDArray[np.int64],
    starts: NDArray[np.int64],
    next_target: NDArray[np.floating],
    next_online: NDArray[np.floating],
    walk: NDArray[np.int64],
    walk_rows: NDArray[np.int64],
    walk_targets: NDArray[np.float64],
    walk_left_out: NDArray[np.bool_],
    known: NDArray[np.floating],
    weight: NDArray[np.floating],
) -> None:
    """Go through the batches of all lanes; the values of a lane's steps begin at `starts[lane]` of the values given."""
    for lane in range(row.shape[0]):
        if ints[lane, LANE_STATE] == GOING:
            walk_through_lane(
                ints[lane],
                floats[lane],
                store[lane],
                row[lane],
                walked[lane],
                double,
                diffusion,
                skipped,
                steps[lane],
                lengths[lane],
                next_target[starts[lane] :],
                next_online[starts[lane] :],
                walk[lane],
                walk_rows[lane],
                walk_targets[lane],
                walk_left_out[lane],
                known[lane],
                weight[lane],
            )
