"""One turn of many lanes: TD errors to priorities, act, move the task, add what came of it, draw the next batch.

Every lane is the plain objects of a run (environments, replay, sampler, generators), which know nothing of this. Their
arrays are used in place through tables, and the few numbers that live in Python objects (generators, the largest
priority, cursors) are borrowed as arrays and handed back. So a lane can be saved, looked at or carried on one by one
whenever it has been handed back, and a turn here leaves it exactly as the plain calls would.

    lanes[lane, bundle]    where the arrays of a bundle lie (see `codes` and `jit.array_table`)

        STAGED RING FRAMES STACKS GRAPH PROJECTION    its replay
        TASK ...                                       its task
        LANE BATCH                                     its own numbers, and what it exchanges with the learner
        PARTS ...                                      its sampler: for each part the part, and a tree or a sweep
"""

# In compiled code Python's numbers and numpy's are one and the same.
# mypy: disable-error-code="no-any-return,arg-type,assignment,return-value"

from __future__ import annotations

import numpy as np
from numba import prange
from numpy.typing import NDArray

from backsweep.agent.fleet.compiled.batch_kernels import apply_lane, draw_lane, part_of, sampler_row
from backsweep.agent.fleet.compiled.codes import (
    APPLY,
    BANK_FULL,
    BATCH,
    DRAW,
    GOING,
    LANE,
    LANE_ACTIONS,
    LANE_BEGAN,
    LANE_BYTES,
    LANE_EPISODES,
    LANE_FAILED_AT,
    LANE_FAMILY,
    LANE_FIRST_ROW,
    LANE_KEY,
    LANE_LENGTH,
    LANE_LOGGED,
    LANE_MOST_ROWS,
    LANE_NEW,
    LANE_PARTS,
    LANE_RETURN,
    LANE_START,
    LANE_STATE,
    NO_LEVEL,
    PART_KIND,
    PART_LARGEST,
    PRIORITIZED,
    STEP,
    TASK,
    Batch,
    Lane,
)
from backsweep.agent.fleet.compiled.task_kernels import move_task, reset_task
from backsweep.jit.array_table import Table, unpack
from backsweep.jit.compilation import inlined, kernel, threaded
from backsweep.jit.random_streams_kernels import next_unit
from backsweep.samplers.sum_tree_kernels import set_range
from backsweep.store.distinct_kernels import Records, find
from backsweep.store.ingest_kernels import add_staged
from backsweep.store.store_kernels import (
    CONTINUES,
    FRAMES,
    NEXT_OBSERVATION,
    RING,
    STAGED,
    TERMINATED,
    TOTAL,
    TRUNCATED,
    Ring,
    Staged,
)
from backsweep.tasks.lanes_kernels import OUTCOMES, TASK_BUNDLES, Outcomes

# -- acting -----------------------------------------------------------------------------------------------------------


@inlined
def choose_action(epsilon: float, greedy: int, num_actions: int, generator: NDArray[np.uint64]) -> int:
    """Return a random action or the greedy one; the generator is asked for two numbers either way."""
    chance = next_unit(generator)
    random_action = int(next_unit(generator) * num_actions)
    return random_action if chance < epsilon else greedy


# -- steps ------------------------------------------------------------------------------------------------------------


@inlined
def copy_bytes(source: NDArray[np.uint8], target: NDArray[np.uint8], size: int) -> None:
    """Copy the first bytes of one row to another."""
    for i in range(size):
        target[i] = source[i]


@kernel
def add_transition(arrays: Table) -> None:
    """Add the staged transition to the lane's replay."""
    lane, ring = unpack(Lane, arrays[LANE]), unpack(Ring, arrays[RING])
    first = ring.counters[TOTAL]
    new = add_staged(lane.ints[LANE_KEY], arrays)
    lane.ints[LANE_NEW] = new if new >= 0 else -1 - new
    for number in range(lane.ints[LANE_PARTS]):
        part = part_of(arrays, number)
        if part.ints[PART_KIND] == PRIORITIZED:
            last, capacity = ring.counters[TOTAL], ring.rows.shape[0]
            set_range(first, last, capacity, part.floats[PART_LARGEST], sampler_row(arrays, number))


@kernel
def step_lane(step: int, epsilon: float, arrays: Table) -> None:
    """Act, move the task and add what came of it."""
    lane, staging, ring = unpack(Lane, arrays[LANE]), unpack(Staged, arrays[STAGED]), unpack(Ring, arrays[RING])
    task = arrays[TASK : TASK + TASK_BUNDLES]
    outcomes = unpack(Outcomes, task[OUTCOMES])
    ints, floats, staged = lane.ints, lane.floats, staging.observations.view(np.uint8)
    family, size = ints[LANE_FAMILY], ints[LANE_BYTES]
    # What a lane sees within an episode is its last successor, which the store has; the last of one row it has not.
    known = not ints[LANE_BEGAN] and ring.rows.shape[0] > 1
    if not known:
        copy_bytes(lane.observation, staged[0], size)
    greedy = unpack(Batch, arrays[BATCH]).best[0]
    action = choose_action(epsilon, greedy, ints[LANE_ACTIONS], lane.explorer)
    lane.action[0] = action
    move_task(family, lane, task)
    copy_bytes(lane.observation, staged[1], size)
    reward, terminated, truncated = outcomes.rewards[0], outcomes.terminated[0], outcomes.truncated[0]
    staging.actions.view(np.int64)[0, 0] = action
    staging.rewards[0] = reward
    staging.flags[0] = (TERMINATED if terminated else 0) | (TRUNCATED if truncated else 0) | (CONTINUES if known else 0)
    add_transition(arrays)
    floats[LANE_RETURN] += reward
    floats[LANE_LENGTH] += 1
    ints[LANE_BEGAN] = 0
    if terminated or truncated:
        logged = ints[LANE_LOGGED]
        lane.log[logged, 0] = floats[LANE_RETURN]
        lane.log[logged, 1] = floats[LANE_LENGTH]
        ints[LANE_LOGGED] += 1
        ints[LANE_EPISODES] += 1
        ints[LANE_BEGAN] = 1
        floats[LANE_RETURN] = 0.0
        floats[LANE_LENGTH] = 0.0
        if not reset_task(family, lane, task):
            ints[LANE_STATE] = NO_LEVEL
            ints[LANE_FAILED_AT] = step + 1
        copy_bytes(lane.observation, staged[0], size)
        ints[LANE_START] = find(staging.observations[0], unpack(Records, arrays[FRAMES]))


@kernel
def current_row(arrays: Table) -> int:
    """Return the bank's row of what the lane sees now: its last successor, or the first observation of an episode."""
    ints, ring = unpack(Lane, arrays[LANE]).ints, unpack(Ring, arrays[RING])
    if ints[LANE_BEGAN]:
        return ints[LANE_FIRST_ROW] + (ints[LANE_MOST_ROWS] if ints[LANE_START] < 0 else ints[LANE_START])
    slot = (ring.counters[TOTAL] - 1) % ring.rows.shape[0]
    return ints[LANE_FIRST_ROW] + ring.rows[slot, NEXT_OBSERVATION]


@inlined
def check_bank(step: int, arrays: Table) -> None:
    """Stop the lane if an observation has a number that the bank has no row for."""
    ints, fresh = unpack(Lane, arrays[LANE]).ints, unpack(Staged, arrays[STAGED]).fresh
    for i in range(ints[LANE_NEW]):
        if fresh[i, 1] >= ints[LANE_MOST_ROWS]:
            ints[LANE_STATE] = BANK_FULL
            ints[LANE_FAILED_AT] = step + 1


# -- all lanes --------------------------------------------------------------------------------------------------------


@kernel
def turn_lane(what: int, step: int, steps: int, epsilon: float, arrays: Table) -> None:
    """Take a turn with one lane, unless it has failed."""
    ints = unpack(Lane, arrays[LANE]).ints
    if ints[LANE_STATE] == GOING and what & APPLY:
        apply_lane(step, arrays)
    if what & STEP:
        for ahead in range(steps):
            if ints[LANE_STATE] == GOING:
                step_lane(step + ahead, epsilon, arrays)
                check_bank(step + ahead, arrays)
        if ints[LANE_STATE] == GOING:
            unpack(Batch, arrays[BATCH]).current[0] = current_row(arrays)
    if ints[LANE_STATE] == GOING and what & DRAW:
        draw_lane(arrays)


@threaded
def turn_lanes(what: int, step: int, steps: int, epsilon: float, lanes: NDArray[np.int64]) -> None:
    """Take a turn with every lane that is still going, lanes shared out among threads.

    `what` adds up APPLY, STEP and DRAW, which are done in that order. With STEP, `steps` steps are taken, the first of
    them number `step`, with random actions by chance `epsilon`; more than one only while all actions are random.
    """
    for lane in prange(lanes.shape[0]):
        turn_lane(what, step, steps, epsilon, lanes[lane])


@kernel
def collect_new(lanes: NDArray[np.int64], places: NDArray[np.int64], observations: NDArray[np.uint8]) -> int:
    """Gather what the bank does not have yet: observations stored for the first time, and first ones not stored yet.

    Returns how many there are: at most three for each lane.
    """
    count = 0
    for number in range(lanes.shape[0]):
        arrays = lanes[number]
        lane, fresh = unpack(Lane, arrays[LANE]), unpack(Staged, arrays[STAGED]).fresh
        ints = lane.ints
        if ints[LANE_STATE] != GOING:
            continue
        size, offset = ints[LANE_BYTES], ints[LANE_FIRST_ROW]
        stored = unpack(Records, arrays[FRAMES]).records.view(np.uint8)
        for i in range(ints[LANE_NEW]):
            places[count] = offset + fresh[i, 1]
            copy_bytes(stored[fresh[i, 1]], observations[count], size)
            count += 1
        if ints[LANE_BEGAN] and ints[LANE_START] < 0:
            places[count] = offset + ints[LANE_MOST_ROWS]
            copy_bytes(lane.observation, observations[count], size)
            count += 1
    return count
