"""The ring of transitions.

A row of the ring holds two observations by number, and its neighbours in its episode:

    rows[slot]    PREVIOUS  NEXT  EPISODE  FLAGS  OBSERVATION  NEXT_OBSERVATION
    values[slot]  REWARD  RETURN (the episode's reward up to and including this row)

PREVIOUS is the slot that was written before in the same episode, -1 for the first step; it is still live if the row is
not its episode's FIRST.

An episode is a chain of rows; it loses its first row when the ring overwrites it:

    episodes[episode]  FIRST  LAST  LENGTH  STATE  POSITION  NUMBER
    live_episodes      the episodes that have rows, in any order; POSITION is an episode's index

A serial number counts rows since the beginning; the row with serial number n is in slot n % capacity.
"""

# In compiled code Python's numbers and numpy's are one and the same.
# mypy: disable-error-code="no-any-return,arg-type,assignment,return-value"

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from backsweep.jit.array_table import (
    Addresses,
    ByteMatrix,
    ByteVector,
    Float64Matrix,
    Float64Vector,
    Int32Matrix,
    Int32Vector,
    Int64Matrix,
    Int64Vector,
    Table,
    WordMatrix,
    WordVector,
    borrow,
    unpack,
    viewed,
)
from backsweep.jit.compilation import inlined, kernel
from backsweep.jit.hash_table_kernels import likely_item, prefetch_home
from backsweep.jit.prefetching import prefetch
from backsweep.jit.streaming import end_streams
from backsweep.store.distinct_kernels import (
    Records,
    are_streamed,
    hash_record,
    intern,
    intern_stack,
    prefetch_if_last_use,
    release,
    release_stack,
    same_record,
)

# Columns of rows.
PREVIOUS, NEXT, EPISODE, FLAGS, OBSERVATION, NEXT_OBSERVATION, ROW_COLUMNS = range(7)
# Columns of values.
REWARD, RETURN, VALUE_COLUMNS = range(3)
# Bits of FLAGS.
TERMINATED = 1
TRUNCATED = 2
STARTS_EPISODE = 4
ENDED = TERMINATED | TRUNCATED
SKIP = 255  # staged flags of a lane that adds nothing
UNSEEN = 32  # the row's successor was never observed: a separate state represents it, see `staging.py`
CONTINUES = 16  # a bit of staged flags: the observation is known to be the lane's last successor, and was not staged
# Columns of episodes.
FIRST, LAST, LENGTH, STATE, POSITION, NUMBER, EPISODE_COLUMNS = range(7)
# Episode states.
RUNNING, HAS_TERMINATED, HAS_TRUNCATED, BROKEN_OFF = range(4)
# Counters of the ring.
TOTAL = 0  # rows ever added: the next serial number
LIVE = 1
EPISODES_HIGH = 2
EPISODES_FREE = 3
EPISODES_LIVE = 4
EPISODES_EVER = 5
EPISODES_BROKEN = 6
FRESH = 7  # of the last add: how many observations were new
CLEARED = 8  # rows below this serial number were removed by a clear
STORE_COUNTERS = 9
# Columns of lanes.
LANE_LAST = 0  # serial number of the lane's last row + 1, or 0
LANE_COLUMNS = 1
# Bundles of a store, in the order of its table.
STAGED, RING, FRAMES, STACKS, STORE_BUNDLES = range(5)
# Bundles that follow in the table of a replay.
GRAPH, KEYS, REPLAY_BUNDLES = range(4, 7)
# And in the table for adding arguments of Python.
FORM = 6
PLACES = 7

LOOK_AHEAD = 4
"""How many rows earlier than it is needed each step of a chain of look-ups is prefetched for rows that are removed."""


class Staged(NamedTuple):
    """The staged transitions of a call of `add`."""

    observations: WordMatrix
    """Observations of all lanes, then their successors, then successors as `add_arguments` keeps them."""
    actions: ByteMatrix
    rewards: Float64Vector
    flags: ByteVector
    fresh: Int32Matrix
    """Out: the staged position and the number of every observation that was not stored before."""
    codes: WordVector
    """Scratch: the hashes of the successors, where observations are no stacks."""
    kept: Int64Vector
    """Of each lane: the serial number + 1 of the row whose successor is kept, 0 for none."""
    numbers: Int64Vector
    """Out: the serial number of each lane's row, -1 for a lane that added nothing."""


class Ring(NamedTuple):
    """The ring of transitions and their episodes."""

    rows: Int32Matrix
    values: Float64Matrix
    actions: ByteMatrix
    episodes: Int64Matrix
    live_episodes: Int32Vector
    lanes: Int64Matrix
    counters: Int64Vector


@inlined
def begin_episode(slot: int, ring: Ring) -> int:
    """Open an episode whose first row is `slot` and return it."""
    episodes, counters = ring.episodes, ring.counters
    if counters[EPISODES_FREE] != 0:
        episode = counters[EPISODES_FREE] - 1
        counters[EPISODES_FREE] = episodes[episode, FIRST]
    else:
        episode = counters[EPISODES_HIGH]
        counters[EPISODES_HIGH] += 1
    episodes[episode, FIRST] = slot
    episodes[episode, LENGTH] = 0
    episodes[episode, STATE] = RUNNING
    episodes[episode, POSITION] = counters[EPISODES_LIVE]
    episodes[episode, NUMBER] = counters[EPISODES_EVER]
    ring.live_episodes[counters[EPISODES_LIVE]] = episode
    counters[EPISODES_LIVE] += 1
    counters[EPISODES_EVER] += 1
    return episode


@inlined
def shorten_episode(slot: int, ring: Ring) -> None:
    """Drop the first row of an episode, which is in `slot`; release an episode without rows."""
    episodes, counters = ring.episodes, ring.counters
    episode = ring.rows[slot, EPISODE]
    episodes[episode, LENGTH] -= 1
    if episodes[episode, LENGTH] > 0:
        episodes[episode, FIRST] = ring.rows[slot, NEXT]
        return
    position = episodes[episode, POSITION]
    counters[EPISODES_LIVE] -= 1
    moved = ring.live_episodes[counters[EPISODES_LIVE]]
    ring.live_episodes[position] = moved
    episodes[moved, POSITION] = position
    episodes[episode, FIRST] = counters[EPISODES_FREE]
    episodes[episode, LAST] = -1
    counters[EPISODES_FREE] = episode + 1


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
    """Prefetch the records that the staged successors most likely are."""
    for lane in range(staging.codes.shape[0]):
        if staging.flags[lane] == SKIP:
            continue
        number = likely_item(staging.codes[lane], frames.table)
        if number >= 0:
            prefetch(frames.records, number)
            prefetch(frames.uses, number)


@inlined
def later_slot(slot: int, rows: int, capacity: int) -> int:
    """Return the slot that is written `rows` rows later; a division takes too long here."""
    later = slot + rows
    return later if later < capacity else later % capacity


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
def intern_observation(place: int, staging: Staged, frames: Records, frames_at: Addresses, stacks_at: Addresses) -> int:
    """Find or store the staged observation in a place; return its number, or -1 - number if it is new."""
    staged, num_envs = staging.observations[place], staging.codes.shape[0]
    if unpack(Records, stacks_at).records.shape[1] > 0:
        return intern_stack(staged, frames_at, stacks_at)
    kept = place >= 2 * num_envs
    if place < num_envs:
        code = hash_record(staged, frames.weights)
    else:
        code = staging.codes[place - (2 * num_envs if kept else num_envs)]
    return intern(staged, code, frames, kept and are_streamed(frames))


@kernel
def add_rows(store: Table) -> int:
    """Add one staged transition for each lane; return how many observations were new.

    A lane whose flags are SKIP adds nothing.
    """
    arrays = borrow(store)
    hash_successors(arrays)
    return add_hashed_rows(arrays, unpack(Staged, arrays[STAGED]).codes.shape[0])


@kernel
def add_hashed_rows(arrays: Table, successors: int) -> int:
    """Do what `add_rows` does where the successors have been hashed and are staged from place `successors` on."""
    frames_at, stacks_at = arrays[FRAMES], arrays[STACKS]
    staging, ring = unpack(Staged, arrays[STAGED]), unpack(Ring, arrays[RING])
    frames, stacks = unpack(Records, frames_at), unpack(Records, stacks_at)
    rows, values, counters = ring.rows, ring.values, ring.counters
    actions, staged_actions = viewed(ring.actions, np.uint64), viewed(staging.actions, np.uint64)
    capacity = rows.shape[0]
    num_envs = ring.lanes.shape[0]
    streamed = successors > num_envs and are_streamed(frames)
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
            observation = intern_observation(lane, staging, frames, frames_at, stacks_at)
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
        successor = intern_observation(successors + lane, staging, frames, frames_at, stacks_at)
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
    if streamed:
        end_streams()
    return new


@inlined
def last_slot(lane: int, slot: int, ring: Ring) -> int:
    """Return where a lane's last row is if it is still there, else -1; the lane's next row goes to `slot`."""
    counters = ring.counters
    serial = ring.lanes[lane, LANE_LAST] - 1
    ago = counters[TOTAL] - serial
    if serial < 0 or ago > counters[LIVE]:
        return -1
    return slot - ago if slot >= ago else slot - ago + ring.rows.shape[0]


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
