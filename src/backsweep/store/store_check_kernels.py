"""The check of a loaded store in one pass over its rows; `tests/twins/store_check.py` is its twin."""

# In compiled code Python's numbers and numpy's are one and the same.
# mypy: disable-error-code="no-any-return,arg-type,assignment,return-value"

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from backsweep.jit.array_table import Addresses, unpack
from backsweep.jit.compilation import inlined, kernel
from backsweep.snapshot.contents_kernels import FREE, LIVE, free_list_fits
from backsweep.store.ring_kernels import (
    ENDED,
    EPISODE,
    EPISODES_FREE,
    EPISODES_HIGH,
    EPISODES_LIVE,
    FIRST,
    FLAGS,
    HAS_TERMINATED,
    HAS_TRUNCATED,
    LAST,
    LENGTH,
    NEXT,
    NEXT_OBSERVATION,
    OBSERVATION,
    POSITION,
    PREVIOUS,
    REWARD,
    RUNNING,
    STARTS_EPISODE,
    STATE,
    TERMINATED,
    TOTAL,
    TRUNCATED,
    UNSEEN,
    Ring,
)
from backsweep.store.ring_kernels import LIVE as LIVE_ROWS

ALL_FLAGS = ENDED | STARTS_EPISODE | UNSEEN


@inlined
def age_of(slot: int, oldest_slot: int, capacity: int) -> int:
    """Return how many rows are older than the one in `slot`; as many as are live, or more, if it is not."""
    ahead = slot - oldest_slot
    return ahead if ahead >= 0 else ahead + capacity


@inlined
def episode_fits(episode: int, used: int, oldest_slot: int, ring: Ring) -> bool:
    """Check an episode's first and last row and how it ended."""
    rows, episodes, live = ring.rows, ring.episodes, ring.counters[LIVE_ROWS]
    first, last = episodes[episode, FIRST], episodes[episode, LAST]
    if episodes[episode, LENGTH] <= 0 or first < 0 or first >= used or last < 0 or last >= used:
        return False
    capacity = rows.shape[0]
    if age_of(first, oldest_slot, capacity) >= live or age_of(last, oldest_slot, capacity) >= live:
        return False
    if rows[first, EPISODE] != episode or rows[last, EPISODE] != episode or rows[last, NEXT] != -1:
        return False
    state, end = episodes[episode, STATE], rows[last, FLAGS]
    if state < RUNNING or state > HAS_TRUNCATED + 1:
        return False
    terminated, truncated = (end & TERMINATED) != 0, (end & ENDED) == TRUNCATED
    return (state == HAS_TERMINATED) == terminated and (state == HAS_TRUNCATED) == truncated


@kernel
def episodes_fit(ring: Ring) -> bool:
    """Check episodes, except for the links between their rows."""
    counters, high = ring.counters, ring.counters[EPISODES_HIGH]
    capacity = ring.rows.shape[0]
    used, oldest_slot = min(counters[TOTAL], capacity), (counters[TOTAL] - counters[LIVE_ROWS]) % capacity
    state = np.zeros(high, np.uint8)
    for place in range(counters[EPISODES_LIVE]):
        episode = ring.live_episodes[place]
        if episode < 0 or episode >= high or ring.episodes[episode, POSITION] != place or state[episode] != FREE:
            return False
        if not episode_fits(episode, used, oldest_slot, ring):
            return False
        state[episode] = LIVE
    return free_list_fits(counters[EPISODES_FREE], ring.episodes[:high, FIRST], state)


@inlined
def row_fits(slot: int, age: int, used: int, oldest_slot: int, ring: Ring) -> bool:
    """Check the flags of a row and its links to its neighbours; its episode is known to be there."""
    rows, episodes = ring.rows, ring.episodes
    episode, flags, previous = rows[slot, EPISODE], rows[slot, FLAGS], rows[slot, PREVIOUS]
    capacity = rows.shape[0]
    if previous < -1 or previous >= capacity or flags & ~ALL_FLAGS != 0 or flags & (ENDED | UNSEEN) == UNSEEN:
        return False
    if flags & STARTS_EPISODE != 0 and episodes[episode, FIRST] != slot:
        return False
    if episodes[episode, LAST] == slot:
        return True
    following = rows[slot, NEXT]
    if flags & ENDED != 0 or following < 0 or following >= used:
        return False
    # It links to a later row of its episode, which links back, so there are no cycles.
    later = age_of(following, oldest_slot, capacity)
    if later <= age or later >= ring.counters[LIVE_ROWS] or episodes[episode, FIRST] == following:
        return False
    return rows[following, PREVIOUS] == slot and rows[following, EPISODE] == episode


@kernel
def rows_fit(ring_at: Addresses, observations: int, uses: NDArray[np.int32], seen: NDArray[np.bool_]) -> bool:
    """Check all rows and their episodes, and count in `uses` how often each observation is held.

    `seen` tells the observations from the stand-ins for what was never observed. The counters have been checked.
    """
    ring = unpack(Ring, ring_at)
    rows, episodes, counters = ring.rows, ring.episodes, ring.counters
    if not episodes_fit(ring):
        return False
    capacity, live = rows.shape[0], counters[LIVE_ROWS]
    used, oldest_slot = min(counters[TOTAL], capacity), (counters[TOTAL] - live) % capacity
    high = counters[EPISODES_HIGH]
    lengths = np.zeros(high, np.int64)
    for age in range(live):
        slot = oldest_slot + age
        slot = slot if slot < capacity else slot - capacity
        episode, first, second = rows[slot, EPISODE], rows[slot, OBSERVATION], rows[slot, NEXT_OBSERVATION]
        if episode < 0 or episode >= high or first < 0 or first >= observations or second < 0 or second >= observations:
            return False
        if not row_fits(slot, age, used, oldest_slot, ring):
            return False
        lengths[episode] += 1
        uses[first] += 1
        uses[second] += 1
        seen[first] = True
        if rows[slot, FLAGS] & UNSEEN == 0:
            seen[second] = True
    # Every live episode has as many rows as it says; a free one has none.
    held = 0
    for place in range(counters[EPISODES_LIVE]):
        episode = ring.live_episodes[place]
        if lengths[episode] != episodes[episode, LENGTH]:
            return False
        held += lengths[episode]
    return held == live


@kernel
def values_fit(values: NDArray[np.float64], largest_reward: float) -> bool:
    """Check that rewards and returns are finite, and rewards not too large."""
    fits = True
    for slot in range(values.shape[0]):
        for column in range(values.shape[1]):
            fits &= np.isfinite(values[slot, column])
        fits &= abs(values[slot, REWARD]) <= largest_reward
    return fits


@kernel
def records_fit(
    expected: NDArray[np.int32], uses: NDArray[np.int32], links: NDArray[np.uint64], live: int, head: int
) -> bool:
    """Check how often records are used, how many are, and the list of those that are not."""
    high = np.uint64(uses.shape[0])
    state = np.zeros(uses.shape[0], np.uint8)
    for record in range(uses.shape[0]):
        if uses[record] != expected[record]:
            return False
        if uses[record] != 0:
            state[record] = LIVE
            live -= 1
        elif links[record] > high:
            return False
    return live == 0 and free_list_fits(head, links, state)


@kernel
def count_frames(stacks: NDArray[np.uint64], stack_uses: NDArray[np.int32], uses: NDArray[np.int32]) -> bool:
    """Count in `uses` how often each frame is in a stack that is used; say whether all of them are there."""
    for stack in range(stack_uses.shape[0]):
        if stack_uses[stack] > 0:
            for i in range(stacks.shape[1]):
                if stacks[stack, i] >= np.uint64(uses.shape[0]):
                    return False
                uses[np.int64(stacks[stack, i])] += 1
    return True
