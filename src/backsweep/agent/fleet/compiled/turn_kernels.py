"""One turn of many runs: set priorities from TD errors, act, step the task, add the transition, draw the next batch.

A run's plain objects (environments, replay, sampler, generators) are used in place: tables hold the addresses of their
arrays. The few numbers that are not in arrays (generators, the largest priority, cursors) are copied into arrays and
handed back afterwards. A turn leaves a run exactly as the plain calls would, so a run that was handed back can be
saved, inspected or continued alone.

    runs[run, bundle]    the addresses of a bundle's arrays (see `codes` and `jit.array_table`)

        STAGED RING FRAMES STACKS GRAPH KEYS          its replay
        TASK ...                                       its task
        RUN BATCH                                     its own numbers, and what it exchanges with the learner
        MODEL EXPERIENCE                              its graph values
        PARTS ...                                      its sampler: for each part the part, and a tree or a sweep
"""

# In compiled code Python's numbers and numpy's are one and the same.
# mypy: disable-error-code="no-any-return,arg-type,assignment,return-value"

from __future__ import annotations

import numpy as np
from numba import prange
from numpy.typing import NDArray

from backsweep.agent.fleet.compiled import codes
from backsweep.agent.fleet.compiled.batch_kernels import apply_run, draw_run, part_of, sampler_addresses
from backsweep.agent.fleet.compiled.codes import CHAIN, MINIGRID, RunArrays
from backsweep.jit.array_table import Table, unpack, viewed
from backsweep.jit.compilation import inlined, kernel, threaded
from backsweep.jit.random_streams_kernels import next_unit
from backsweep.planning.exploration_kernels import follow_and_explore
from backsweep.samplers.sum_tree_kernels import set_range
from backsweep.store.distinct_kernels import Records
from backsweep.store.ingest_kernels import add_staged
from backsweep.store.reading_kernels import number_of
from backsweep.store.ring_kernels import (
    CONTINUES,
    FRAMES,
    LIVE,
    NEXT_OBSERVATION,
    RING,
    STACKS,
    STAGED,
    TERMINATED,
    TOTAL,
    TRUNCATED,
    Ring,
    Staged,
)
from backsweep.tasks.chain import moves_kernels as chain
from backsweep.tasks.lanes_kernels import OUTCOMES, TASK_BUNDLES, Outcomes
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


# -- acting -----------------------------------------------------------------------------------------------------------


@kernel
def choose_action(epsilon: float, greedy: int, arrays: Table) -> int:
    """Return a random action or the greedy one; the generator is asked for two numbers either way."""
    run = unpack(codes.RunArrays, arrays[codes.RUN])
    ints, num_actions = run.ints, run.ints[codes.RUN_ACTIONS]
    chance, unit = next_unit(run.explorer), next_unit(run.explorer)
    if chance >= epsilon:
        return greedy
    if not ints[codes.RUN_EXPLORES]:
        return int(unit * num_actions)
    ring = unpack(Ring, arrays[RING])
    total = ring.counters[TOTAL]
    slot = (total - 1) % ring.rows.shape[0]
    number = ints[codes.RUN_START] if ints[codes.RUN_BEGAN] else np.int64(ring.rows[slot, NEXT_OBSERVATION])
    oldest = total - ring.counters[LIVE]
    return follow_and_explore(unit, number, num_actions, oldest, total, arrays[codes.EXPERIENCE], arrays[codes.MODEL])


# -- steps ------------------------------------------------------------------------------------------------------------


@inlined
def copy_bytes(source: NDArray[np.uint8], target: NDArray[np.uint8], size: int) -> None:
    """Copy the first bytes of one row to another."""
    for i in range(size):
        target[i] = source[i]


@kernel
def add_transition(arrays: Table) -> None:
    """Add the staged transition to the run's replay."""
    run, ring = unpack(codes.RunArrays, arrays[codes.RUN]), unpack(Ring, arrays[RING])
    first = ring.counters[TOTAL]
    new = add_staged(run.ints[codes.RUN_KEY], arrays)
    run.ints[codes.RUN_NEW] = new if new >= 0 else -1 - new
    for number in range(run.ints[codes.RUN_PARTS]):
        part = part_of(arrays, number)
        if part.ints[codes.PART_KIND] == codes.PRIORITIZED:
            last, capacity = ring.counters[TOTAL], ring.rows.shape[0]
            set_range(first, last, capacity, part.floats[codes.PART_LARGEST], sampler_addresses(arrays, number))


@kernel
def step_run(step: int, epsilon: float, arrays: Table) -> None:
    """Act, step the task and add the transition."""
    run, staging, ring = (
        unpack(codes.RunArrays, arrays[codes.RUN]),
        unpack(Staged, arrays[STAGED]),
        unpack(Ring, arrays[RING]),
    )
    task = arrays[codes.TASK : codes.TASK + TASK_BUNDLES]
    outcomes = unpack(Outcomes, task[OUTCOMES])
    ints, floats, staged = run.ints, run.floats, viewed(staging.observations, np.uint8)
    family, size = ints[codes.RUN_FAMILY], ints[codes.RUN_BYTES]
    # Within an episode the observation is the last successor, which is stored, unless the store has a single row.
    known = not ints[codes.RUN_BEGAN] and ring.rows.shape[0] > 1
    if not known:
        copy_bytes(run.observation, staged[0], size)
    greedy = unpack(codes.Batch, arrays[codes.BATCH]).best[0]
    action = choose_action(epsilon, greedy, arrays)
    run.action[0] = action
    move_task(family, run, task)
    copy_bytes(run.observation, staged[1], size)
    reward, terminated, truncated = outcomes.rewards[0], outcomes.terminated[0], outcomes.truncated[0]
    viewed(staging.actions, np.int64)[0, 0] = action
    staging.rewards[0] = reward
    staging.flags[0] = (TERMINATED if terminated else 0) | (TRUNCATED if truncated else 0) | (CONTINUES if known else 0)
    add_transition(arrays)
    floats[codes.RUN_RETURN] += reward
    floats[codes.RUN_LENGTH] += 1
    ints[codes.RUN_BEGAN] = 0
    if terminated or truncated:
        logged = ints[codes.RUN_LOGGED]
        run.log[logged, 0] = floats[codes.RUN_RETURN]
        run.log[logged, 1] = floats[codes.RUN_LENGTH]
        ints[codes.RUN_LOGGED] += 1
        ints[codes.RUN_EPISODES] += 1
        ints[codes.RUN_BEGAN] = 1
        floats[codes.RUN_RETURN] = 0.0
        floats[codes.RUN_LENGTH] = 0.0
        if not reset_task(family, run, task):
            ints[codes.RUN_STATE] = codes.NO_LEVEL
            ints[codes.RUN_FAILED_AT] = step + 1
        copy_bytes(run.observation, staged[0], size)
        ints[codes.RUN_START] = number_of(staging.observations[0], arrays)


@kernel
def current_row(arrays: Table) -> int:
    """Return the device row of what the run sees now: its last successor, or the first observation of an episode."""
    ints, ring = unpack(codes.RunArrays, arrays[codes.RUN]).ints, unpack(Ring, arrays[RING])
    if ints[codes.RUN_BEGAN]:
        return ints[codes.RUN_FIRST_ROW] + (
            ints[codes.RUN_MOST_ROWS] if ints[codes.RUN_START] < 0 else ints[codes.RUN_START]
        )
    slot = (ring.counters[TOTAL] - 1) % ring.rows.shape[0]
    return ints[codes.RUN_FIRST_ROW] + ring.rows[slot, NEXT_OBSERVATION]


@inlined
def check_device_rows(step: int, arrays: Table) -> None:
    """Stop the run if an observation has a number that the device has no row for."""
    ints, fresh = unpack(codes.RunArrays, arrays[codes.RUN]).ints, unpack(Staged, arrays[STAGED]).fresh
    for i in range(ints[codes.RUN_NEW]):
        if fresh[i, 1] >= ints[codes.RUN_MOST_ROWS]:
            ints[codes.RUN_STATE] = codes.DEVICE_FULL
            ints[codes.RUN_FAILED_AT] = step + 1


# -- all runs --------------------------------------------------------------------------------------------------------


@kernel
def turn_run(what: int, step: int, steps: int, epsilon: float, arrays: Table) -> None:
    """Take a turn with one run, unless it has failed."""
    ints = unpack(codes.RunArrays, arrays[codes.RUN]).ints
    if ints[codes.RUN_STATE] == codes.GOING and what & codes.APPLY:
        apply_run(step, arrays)
    if what & codes.STEP:
        for ahead in range(steps):
            if ints[codes.RUN_STATE] == codes.GOING:
                step_run(step + ahead, epsilon, arrays)
                check_device_rows(step + ahead, arrays)
        if ints[codes.RUN_STATE] == codes.GOING:
            unpack(codes.Batch, arrays[codes.BATCH]).current[0] = current_row(arrays)
    if ints[codes.RUN_STATE] == codes.GOING and what & codes.DRAW:
        draw_run(arrays)


@threaded
def turn_runs(what: int, step: int, steps: int, epsilon: float, runs: NDArray[np.int64]) -> None:
    """Take a turn with every run that has not failed, on several threads.

    `what` adds up APPLY, STEP and DRAW, which are done in that order. With STEP, `steps` steps are taken, the first of
    them number `step`, with random actions by chance `epsilon`; more than one only while all actions are random.
    """
    for run in prange(runs.shape[0]):
        turn_run(what, step, steps, epsilon, runs[run])


@inlined
def copy_stored(
    number: int, frames: NDArray[np.uint8], stacks: NDArray[np.uint64], target: NDArray[np.uint8], size: int
) -> None:
    """Copy a stored observation of `size` bytes, whole or made of several frames."""
    if stacks.shape[1] == 0:
        copy_bytes(frames[number], target, size)
        return
    part = frames.shape[1]
    for k in range(stacks.shape[1]):
        copy_bytes(frames[np.int64(stacks[number, k])], target[k * part :], part)


@kernel
def collect_new(runs: NDArray[np.int64], places: NDArray[np.int64], observations: NDArray[np.uint8]) -> int:
    """Gather what the device does not have yet: observations stored for the first time, and first ones not stored yet.

    Returns how many there are: at most three for each run.
    """
    count = 0
    for number in range(runs.shape[0]):
        arrays = runs[number]
        run, fresh = unpack(codes.RunArrays, arrays[codes.RUN]), unpack(Staged, arrays[STAGED]).fresh
        ints = run.ints
        if ints[codes.RUN_STATE] != codes.GOING:
            continue
        size, offset = ints[codes.RUN_BYTES], ints[codes.RUN_FIRST_ROW]
        frames, stacks = unpack(Records, arrays[FRAMES]).records, unpack(Records, arrays[STACKS]).records
        for i in range(ints[codes.RUN_NEW]):
            places[count] = offset + fresh[i, 1]
            copy_stored(fresh[i, 1], viewed(frames, np.uint8), stacks, observations[count], size)
            count += 1
        if ints[codes.RUN_BEGAN] and ints[codes.RUN_START] < 0:
            places[count] = offset + ints[codes.RUN_MOST_ROWS]
            copy_bytes(run.observation, observations[count], size)
            count += 1
    return count
