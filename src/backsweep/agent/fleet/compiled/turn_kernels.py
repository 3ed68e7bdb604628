"""One turn of many lanes: TD errors to priorities, act, move the task, remember, draw the next batch.

Every lane is the plain objects of a run (environments, replay, sampler, generators), which know nothing of this. Their
arrays are used in place through tables of addresses, and the few numbers that live in Python objects (generators, the
largest priority, cursors) are borrowed as arrays and handed back. So a lane can be saved, looked at or carried on one
by one whenever it has been handed back, and a turn here leaves it exactly as the plain calls would.

    store[lane]    the arguments of store.add_rows                    ints[lane], floats[lane]          see codes.py
    graph[lane]    those of graph.add_rows                            explorers[lane]   words of its PCG64 stream
    keys[lane]     the matrix of the projection                       parts...[lane, part]   the sampler's parts
    tasks[lane]    the task's arrays
    log[lane]      returns and lengths of the episodes that ended since the last hand-over
"""

# In compiled code Python's numbers and numpy's are one and the same.
# mypy: disable-error-code="no-any-return,arg-type,assignment,return-value"

from __future__ import annotations

import numpy as np
from numba import prange
from numpy.typing import NDArray

from backsweep.agent.fleet.compiled.batch_kernels import apply_lane, draw_lane
from backsweep.agent.fleet.compiled.codes import (
    APPLY,
    BANK_FULL,
    DRAW,
    EPSILON_END,
    EPSILON_RANDOM_STEPS,
    EPSILON_START,
    EPSILON_STEPS,
    GOING,
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
    TASK_ACTION,
    TASK_OBSERVATION,
    TASK_REWARDS,
    TASK_TERMINATED,
    TASK_TRUNCATED,
    TREE_LEVELS,
    TREE_MINIMA,
    TREE_SUMS,
)
from backsweep.agent.fleet.compiled.task_kernels import move_task, reset_task
from backsweep.jit.array_table import (
    SIZE_1,
    Entry,
    bool_vector,
    byte_vector,
    bytes_at,
    float_vector,
    int32_matrix,
    int32_vector,
    int64_of_bytes,
    int64_vector,
    word_matrix,
    word_vector,
)
from backsweep.jit.compilation import inlined, kernel, threaded
from backsweep.jit.random_streams_kernels import next_unit
from backsweep.samplers.sum_tree_kernels import set_range
from backsweep.store.distinct_kernels import find
from backsweep.store.ingest_kernels import (
    STORE_COUNTERS,
    STORE_FRAMES,
    STORE_FRESH,
    STORE_ROWS,
    STORE_STAGED,
    STORE_STAGED_ACTIONS,
    STORE_STAGED_FLAGS,
    STORE_STAGED_REWARDS,
    STORE_WEIGHTS,
    WORD_BYTES,
    add_staged,
)
from backsweep.store.store_kernels import CONTINUES, NEXT_OBSERVATION, TERMINATED, TOTAL, TRUNCATED

# -- acting -----------------------------------------------------------------------------------------------------------


@inlined
def epsilon_at(step: int, exploration: NDArray[np.float64]) -> float:
    """Return the chance of a random action at an environment step."""
    if step < exploration[EPSILON_RANDOM_STEPS]:
        return 1.0
    if step >= exploration[EPSILON_STEPS]:
        return exploration[EPSILON_END]
    start, end = exploration[EPSILON_START], exploration[EPSILON_END]
    return start + (end - start) * (step / exploration[EPSILON_STEPS])


@inlined
def choose_action(epsilon: float, greedy: int, num_actions: int, generator: NDArray[np.uint64]) -> int:
    """Return a random action or the greedy one; the generator is asked for two numbers either way."""
    chance = next_unit(generator)
    random_action = int(next_unit(generator) * num_actions)
    return random_action if chance < epsilon else greedy


# -- remembering ------------------------------------------------------------------------------------------------------


@inlined
def copy_bytes(source: NDArray[np.uint8], target: NDArray[np.uint8]) -> None:
    """Copy one row of bytes."""
    for i in range(source.shape[1]):
        target[0, i] = source[0, i]


@kernel
def remember(
    ints: NDArray[np.int64],
    store: Entry,
    graph: Entry,
    matrix: Entry,
    part_ints: NDArray[np.int64],
    part_floats: NDArray[np.float64],
    part_arrays: NDArray[np.int64],
) -> None:
    """Add the staged transition to the lane's replay."""
    counters = int64_vector(store, STORE_COUNTERS)
    first = counters[TOTAL]
    ints[LANE_NEW] = add_staged(ints[LANE_KEY], store, graph, matrix)
    capacity = int32_matrix(store, STORE_ROWS).shape[0]
    for part in range(ints[LANE_PARTS]):
        if part_ints[part, PART_KIND] == PRIORITIZED:
            arrays = part_arrays[part]
            set_range(
                first,
                counters[TOTAL],
                capacity,
                part_floats[part, PART_LARGEST],
                int64_vector(arrays, TREE_LEVELS),
                float_vector(arrays, TREE_SUMS),
                float_vector(arrays, TREE_MINIMA),
            )


@kernel
def step_lane(
    step: int,
    greedy: int,
    exploration: NDArray[np.float64],
    ints: NDArray[np.int64],
    floats: NDArray[np.float64],
    task_ints: NDArray[np.int64],
    task_floats: NDArray[np.float64],
    task: Entry,
    store: Entry,
    graph: Entry,
    matrix: Entry,
    explorer: NDArray[np.uint64],
    part_ints: NDArray[np.int64],
    part_floats: NDArray[np.float64],
    part_arrays: NDArray[np.int64],
    log: NDArray[np.float64],
) -> None:
    """Act, move the task and remember what came of it."""
    family, size = ints[LANE_FAMILY], ints[LANE_BYTES]
    stride = WORD_BYTES * store[STORE_STAGED, SIZE_1]
    observation = bytes_at(task, TASK_OBSERVATION, 0, size)
    # What a lane sees within an episode is its last successor, which the store has; the last of one row it has not.
    known = not ints[LANE_BEGAN] and int32_matrix(store, STORE_ROWS).shape[0] > 1
    if not known:
        copy_bytes(observation, bytes_at(store, STORE_STAGED, 0, size))
    action = choose_action(epsilon_at(step, exploration), greedy, ints[LANE_ACTIONS], explorer)
    int64_vector(task, TASK_ACTION)[0] = action
    move_task(family, task, task_ints, task_floats)
    copy_bytes(observation, bytes_at(store, STORE_STAGED, stride, size))
    reward = float_vector(task, TASK_REWARDS)[0]
    terminated, truncated = bool_vector(task, TASK_TERMINATED)[0], bool_vector(task, TASK_TRUNCATED)[0]
    int64_of_bytes(store, STORE_STAGED_ACTIONS)[0] = action
    float_vector(store, STORE_STAGED_REWARDS)[0] = reward
    flags = (TERMINATED if terminated else 0) | (TRUNCATED if truncated else 0) | (CONTINUES if known else 0)
    byte_vector(store, STORE_STAGED_FLAGS)[0] = flags
    remember(ints, store, graph, matrix, part_ints, part_floats, part_arrays)
    floats[LANE_RETURN] += reward
    floats[LANE_LENGTH] += 1
    ints[LANE_BEGAN] = 0
    if terminated or truncated:
        logged = ints[LANE_LOGGED]
        log[logged, 0] = floats[LANE_RETURN]
        log[logged, 1] = floats[LANE_LENGTH]
        ints[LANE_LOGGED] += 1
        ints[LANE_EPISODES] += 1
        ints[LANE_BEGAN] = 1
        floats[LANE_RETURN] = 0.0
        floats[LANE_LENGTH] = 0.0
        if not reset_task(family, task, task_ints):
            ints[LANE_STATE] = NO_LEVEL
            ints[LANE_FAILED_AT] = step + 1
        copy_bytes(observation, bytes_at(store, STORE_STAGED, 0, size))
        ints[LANE_START] = find(
            word_matrix(store, STORE_STAGED)[0],
            word_matrix(store, STORE_FRAMES),
            word_vector(store, STORE_FRAMES + 2),
            int32_vector(store, STORE_FRAMES + 3),
            word_vector(store, STORE_WEIGHTS),
        )


@inlined
def current_row(ints: NDArray[np.int64], store: Entry) -> int:
    """Return the bank's row of what the lane sees now: its last successor, or the first observation of an episode."""
    if ints[LANE_BEGAN]:
        return ints[LANE_FIRST_ROW] + (ints[LANE_MOST_ROWS] if ints[LANE_START] < 0 else ints[LANE_START])
    rows = int32_matrix(store, STORE_ROWS)
    slot = (int64_vector(store, STORE_COUNTERS)[TOTAL] - 1) % rows.shape[0]
    return ints[LANE_FIRST_ROW] + rows[slot, NEXT_OBSERVATION]


@inlined
def check_bank(step: int, ints: NDArray[np.int64], store: Entry) -> None:
    """Stop the lane if an observation has a number that the bank has no row for."""
    fresh = int32_matrix(store, STORE_FRESH)
    for i in range(ints[LANE_NEW]):
        if fresh[i, 1] >= ints[LANE_MOST_ROWS]:
            ints[LANE_STATE] = BANK_FULL
            ints[LANE_FAILED_AT] = step + 1


# -- all lanes --------------------------------------------------------------------------------------------------------


@threaded
def turn_lanes(
    what: int,
    step: int,
    steps: int,
    exploration: NDArray[np.float64],
    shares: NDArray[np.int64],
    ints: NDArray[np.int64],
    floats: NDArray[np.float64],
    task_ints: NDArray[np.int64],
    task_floats: NDArray[np.float64],
    tasks: NDArray[np.int64],
    store: NDArray[np.int64],
    graph: NDArray[np.int64],
    matrices: NDArray[np.int64],
    explorers: NDArray[np.uint64],
    part_ints: NDArray[np.int64],
    part_floats: NDArray[np.float64],
    part_generators: NDArray[np.uint64],
    part_arrays: NDArray[np.int64],
    log: NDArray[np.float64],
    best: NDArray[np.int64],
    current: NDArray[np.int64],
    row: NDArray[np.int64],
    bank_rows: NDArray[np.int64],
    action: NDArray[np.int64],
    reward: NDArray[np.float32],
    discount: NDArray[np.float32],
    weight: NDArray[np.float32],
    td_error: NDArray[np.float64],
) -> None:
    """Take a turn with every lane that is still going, lanes shared out among threads.

    `what` adds up APPLY, STEP and DRAW, which are done in that order. With STEP, `steps` steps are taken, the first of
    them number `step`; more than one only while all actions are random.
    """
    for lane in prange(ints.shape[0]):
        if ints[lane, LANE_STATE] == GOING and what & APPLY:
            apply_lane(
                step,
                ints[lane],
                store[lane],
                part_ints[lane],
                part_floats[lane],
                part_arrays[lane],
                row[lane],
                td_error[lane],
            )
        if what & STEP:
            for ahead in range(steps):
                if ints[lane, LANE_STATE] == GOING:
                    step_lane(
                        step + ahead,
                        best[lane],
                        exploration,
                        ints[lane],
                        floats[lane],
                        task_ints[lane],
                        task_floats[lane],
                        tasks[lane],
                        store[lane],
                        graph[lane],
                        matrices[lane],
                        explorers[lane],
                        part_ints[lane],
                        part_floats[lane],
                        part_arrays[lane],
                        log[lane],
                    )
                    check_bank(step + ahead, ints[lane], store[lane])
            if ints[lane, LANE_STATE] == GOING:
                current[lane] = current_row(ints[lane], store[lane])
        if ints[lane, LANE_STATE] == GOING and what & DRAW:
            draw_lane(
                shares[lane],
                ints[lane],
                floats[lane],
                store[lane],
                graph[lane],
                part_ints[lane],
                part_floats[lane],
                part_generators[lane],
                part_arrays[lane],
                row[lane],
                bank_rows[lane, 0],
                bank_rows[lane, 1],
                action[lane],
                reward[lane],
                discount[lane],
                weight[lane],
            )


@kernel
def collect_new(
    ints: NDArray[np.int64],
    tasks: NDArray[np.int64],
    store: NDArray[np.int64],
    places: NDArray[np.int64],
    observations: NDArray[np.uint8],
) -> int:
    """Gather what the bank does not have yet: observations stored for the first time, and first ones not stored yet.

    Returns how many there are: at most three for each lane.
    """
    count = 0
    for lane in range(ints.shape[0]):
        if ints[lane, LANE_STATE] != GOING:
            continue
        size, offset = ints[lane, LANE_BYTES], ints[lane, LANE_FIRST_ROW]
        frames = word_matrix(store[lane], STORE_FRAMES)
        fresh = int32_matrix(store[lane], STORE_FRESH)
        for i in range(ints[lane, LANE_NEW]):
            places[count] = offset + fresh[i, 1]
            stored = bytes_at(store[lane], STORE_FRAMES, WORD_BYTES * frames.shape[1] * fresh[i, 1], size)
            copy_bytes(stored, observations[count : count + 1, :size])
            count += 1
        if ints[lane, LANE_BEGAN] and ints[lane, LANE_START] < 0:
            places[count] = offset + ints[lane, LANE_MOST_ROWS]
            copy_bytes(bytes_at(tasks[lane], TASK_OBSERVATION, 0, size), observations[count : count + 1, :size])
            count += 1
    return count
