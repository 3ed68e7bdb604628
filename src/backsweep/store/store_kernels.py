"""Adding staged transitions to the ring that `ring_kernels.py` describes."""

# In compiled code Python's numbers and numpy's are one and the same.
# mypy: disable-error-code="no-any-return,arg-type,assignment,return-value"

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from backsweep.jit.array_table import Addresses, Table, borrow, unpack, viewed
from backsweep.jit.compilation import inlined, kernel
from backsweep.jit.hash_table_kernels import likely_item, prefetch_home
from backsweep.jit.prefetching import prefetch
from backsweep.jit.streaming import end_streams, stream_row
from backsweep.store.distinct_kernels import (
    WORDS_OF_A_LINE,
    Records,
    are_streamed,
    enter,
    hash_record,
    intern_stack,
    number_or_place,
    prefetch_if_last_use,
    release,
    release_stack,
    same_record,
)
from backsweep.store.ring_kernels import (
    BROKEN_OFF,
    CONTINUES,
    ENDED,
    EPISODE,
    EPISODES_BROKEN,
    FLAGS,
    FRAMES,
    FRESH,
    HAS_TERMINATED,
    HAS_TRUNCATED,
    LANE_LAST,
    LAST,
    LENGTH,
    LIVE,
    NEXT,
    NEXT_OBSERVATION,
    OBSERVATION,
    PREVIOUS,
    RETURN,
    REWARD,
    RING,
    SKIP,
    STACKS,
    STAGED,
    STARTS_EPISODE,
    STATE,
    TERMINATED,
    TOTAL,
    TRUNCATED,
    UNSEEN,
    Ring,
    Staged,
    begin_episode,
    last_slot,
    later_slot,
    shorten_episode,
)

LOOK_AHEAD = 4
"""How many rows earlier than it is needed each step of a chain of look-ups is prefetched for rows that are removed."""


@inlined
def count_use(observation: int, frames: Records, stacks: Records) -> None:
    """Count one more row that holds an observation."""
    if stacks.records.shape[1] == 0:
        frames.uses[observation] += 1
    else:
        stacks.uses[observation] += 1


@kernel
def hash_successors(store: Table) -> None:
    """Hash the staged successors of all lanes that add a row, if they are no stacks of frames."""
    staging, frames = unpack(Staged, store[STAGED]), unpack(Records, store[FRAMES])
    num_envs = staging.codes.shape[0]
    if unpack(Records, store[STACKS]).records.shape[1] > 0:
        return
    for lane in range(num_envs):
        if staging.flags[lane] != SKIP:
            staging.codes[lane] = hash_record(staging.observations[num_envs + lane], frames.weights)
            prefetch_home(staging.codes[lane], frames.table)


@inlined
def prefetch_successors(staging: Staged, frames: Records) -> None:
    """Prefetch the beginnings of the records that the staged successors most likely are."""
    for lane in range(staging.codes.shape[0]):
        if staging.flags[lane] == SKIP:
            continue
        number = likely_item(staging.codes[lane], frames.table)
        if number >= 0:
            prefetch(frames.records, number)
            prefetch(frames.uses, number)


@inlined
def prefetch_successor(lane: int, staging: Staged, frames: Records) -> None:
    """Prefetch all of the record that a lane's staged successor most likely is, while another one is compared."""
    if lane < staging.codes.shape[0] and staging.flags[lane] != SKIP:
        number = likely_item(staging.codes[lane], frames.table)
        if number >= 0:
            for word in range(WORDS_OF_A_LINE, frames.records.shape[1], WORDS_OF_A_LINE):
                prefetch(frames.records, number, word)


@inlined
def prefetch_overwritten(slot: int, ring: Ring, frames: Records) -> None:
    """Prefetch the place of an observation that will be released soon, after that of the row in `slot`."""
    rows, capacity = ring.rows, ring.rows.shape[0]
    soon, later = later_slot(slot, LOOK_AHEAD, capacity), later_slot(slot, 2 * LOOK_AHEAD, capacity)
    prefetch_home(frames.hashes[rows[soon, OBSERVATION]], frames.table)
    prefetch(ring.episodes, rows[soon, EPISODE])
    prefetch(ring.values, soon)
    prefetch(ring.actions, soon)
    observation = rows[later, OBSERVATION]
    prefetch(frames.hashes, observation)
    prefetch(frames.uses, observation)
    prefetch(rows, later_slot(slot, 4 * LOOK_AHEAD, capacity))


@inlined
def remove_oldest(slot: int, ring: Ring, frames: Records, frames_at: Addresses, stacks_at: Addresses) -> None:
    """Remove the oldest row, which is in `slot`."""
    observation, successor = ring.rows[slot, OBSERVATION], ring.rows[slot, NEXT_OBSERVATION]
    shorten_episode(slot, ring)
    if unpack(Records, stacks_at).records.shape[1] == 0:
        prefetch_overwritten(slot, ring, frames)
        release(observation, frames)
        release(successor, frames)
    else:
        release_stack(observation, frames_at, stacks_at)
        release_stack(successor, frames_at, stacks_at)
    ring.counters[LIVE] -= 1


@inlined
def enter_observation(
    place: int, new: int, staging: Staged, frames: Records, frames_at: Addresses, stacks_at: Addresses
) -> int:
    """Find or enter the staged observation in a place; return its number, or -1 - number if it is new.

    The words of a new one, and of the first `new` of `staging.fresh`, are still to be written if it is no stack.
    """
    staged, num_envs = staging.observations[place], staging.codes.shape[0]
    if unpack(Records, stacks_at).records.shape[1] > 0:
        return intern_stack(staged, frames_at, stacks_at)
    if place < num_envs:
        code = hash_record(staged, frames.weights)
    else:
        code = staging.codes[place - (2 * num_envs if place >= 2 * num_envs else num_envs)]
    found = number_or_place(staged, code, frames, staging.observations, staging.fresh[:new])
    return found if found >= 0 else -1 - enter(-1 - found, code, frames)


@kernel
def write_new(first: int, store: Table) -> None:
    """Write the new observations of the last add to where they are kept, from the one in ``fresh[first]`` on.

    `end_streams` must follow.
    """
    staging, ring, frames = unpack(Staged, store[STAGED]), unpack(Ring, store[RING]), unpack(Records, store[FRAMES])
    if unpack(Records, store[STACKS]).records.shape[1] > 0:
        return
    streamed = are_streamed(frames)
    for i in range(first, ring.counters[FRESH]):
        number, observation = np.int64(staging.fresh[i, 1]), staging.observations[staging.fresh[i, 0]]
        if streamed:
            stream_row(frames.records, number, observation)
            continue
        for word in range(observation.shape[0]):
            frames.records[number, word] = observation[word]


@kernel
def add_rows(store: Table) -> int:
    """Add one staged transition for each lane; return how many observations were new.

    A lane whose flags are SKIP adds nothing.
    """
    arrays = borrow(store)
    hash_successors(arrays)
    new = add_hashed_rows(arrays, unpack(Staged, arrays[STAGED]).codes.shape[0])
    write_new(0, arrays)
    end_streams()
    return new


@kernel
def add_hashed_rows(arrays: Table, successors: int) -> int:
    """Do what `add_rows` does where the successors have been hashed and are staged from place `successors` on.

    The words of new observations are not written yet: `write_new` does it, or who can do something else meanwhile.
    """
    frames_at, stacks_at = arrays[FRAMES], arrays[STACKS]
    staging, ring = unpack(Staged, arrays[STAGED]), unpack(Ring, arrays[RING])
    frames, stacks = unpack(Records, frames_at), unpack(Records, stacks_at)
    rows, values, counters = ring.rows, ring.values, ring.counters
    actions, staged_actions = viewed(ring.actions, np.uint64), viewed(staging.actions, np.uint64)
    capacity = rows.shape[0]
    num_envs, streamed = ring.lanes.shape[0], are_streamed(frames)
    if stacks.records.shape[1] == 0:
        prefetch_successors(staging, frames)
    new = 0
    next_slot = counters[TOTAL] % capacity
    for lane in range(num_envs):
        flags = staging.flags[lane]
        staging.numbers[lane] = -1
        if flags == SKIP:
            continue
        staging.numbers[lane] = counters[TOTAL]
        slot = next_slot
        next_slot = later_slot(slot, 1, capacity)
        if counters[LIVE] == capacity:
            remove_oldest(slot, ring, frames, frames_at, stacks_at)

        last = last_slot(lane, slot, ring)
        known = (flags & CONTINUES) != 0
        observation = find_continuation(last, staging.observations[lane], known, ring, frames, stacks)
        if observation >= 0:
            episode = np.int64(rows[last, EPISODE])
            rows[last, NEXT] = slot
            rows[slot, PREVIOUS] = last
            values[slot, RETURN] = values[last, RETURN] + staging.rewards[lane]
            starts = 0
        else:
            observation = enter_observation(lane, new, staging, frames, frames_at, stacks_at)
            if observation < 0:
                observation = -1 - observation
                staging.fresh[new, 0] = lane
                staging.fresh[new, 1] = observation
                new += 1
            episode = begin_episode(slot, ring)
            rows[slot, PREVIOUS] = -1
            values[slot, RETURN] = staging.rewards[lane]
            starts = STARTS_EPISODE
        count_use(observation, frames, stacks)
        if stacks.records.shape[1] == 0:
            prefetch_successor(lane + 1, staging, frames)
        successor = enter_observation(successors + lane, new, staging, frames, frames_at, stacks_at)
        if successor < 0:
            successor = -1 - successor
            staging.fresh[new, 0] = successors + lane
            staging.fresh[new, 1] = successor
            new += 1
            if counters[LIVE] == capacity - 1 and stacks.records.shape[1] == 0 and not streamed:
                prefetch_if_last_use(rows[next_slot, OBSERVATION], frames)  # where the next new one goes
        count_use(successor, frames, stacks)

        rows[slot, NEXT] = -1
        rows[slot, EPISODE] = episode
        rows[slot, FLAGS] = (flags & (ENDED | UNSEEN)) | starts
        rows[slot, OBSERVATION] = observation
        rows[slot, NEXT_OBSERVATION] = successor
        values[slot, REWARD] = staging.rewards[lane]
        for i in range(actions.shape[1]):
            actions[slot, i] = staged_actions[lane, i]
        ring.episodes[episode, LAST] = slot
        ring.episodes[episode, LENGTH] += 1
        if flags & TERMINATED:
            ring.episodes[episode, STATE] = HAS_TERMINATED
        elif flags & TRUNCATED:
            ring.episodes[episode, STATE] = HAS_TRUNCATED
        ring.lanes[lane, LANE_LAST] = counters[TOTAL] + 1
        counters[TOTAL] += 1
        counters[LIVE] += 1
    counters[FRESH] = new
    return new


@inlined
def find_continuation(
    last: int, staged: NDArray[np.uint64], known: bool, ring: Ring, frames: Records, stacks: Records
) -> int:
    """Return the number of a lane's last successor if the staged observation continues from it, else -1.

    `last` is the slot of the lane's last row, -1 if there is none. If the continuation is `known`, nothing is compared,
    unless the ring has overwritten the last row.

    An unfinished episode that is not continued (the caller skipped steps) is marked as broken off.
    """
    rows, counters = ring.rows, ring.counters
    if last < 0:
        return -1
    if rows[last, FLAGS] & ENDED:
        return -1
    number = rows[last, NEXT_OBSERVATION]
    size, depth = frames.records.shape[1], stacks.records.shape[1]
    matches = True
    if known:
        pass
    elif depth == 0:
        matches = same_record(frames.records[number], staged)
    else:
        for i in range(depth):
            frame = np.int64(stacks.records[number, i])
            if not same_record(frames.records[frame], staged[i * size : (i + 1) * size]):
                matches = False
                break
    if matches:
        return number
    ring.episodes[rows[last, EPISODE], STATE] = BROKEN_OFF
    counters[EPISODES_BROKEN] += 1
    return -1
