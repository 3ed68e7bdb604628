"""What a consistent store is, in plain numpy: the twin of `store_check_kernels`; it says what is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from backsweep.snapshot.contents import need, need_finite, need_within
from backsweep.store.distinct_kernels import RECORDS_FREE, RECORDS_HIGH, RECORDS_LIVE
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
    TRUNCATED,
    UNSEEN,
)
from backsweep.store.staging import LARGEST_REWARD
from backsweep.store.store_check_kernels import ALL_FLAGS
from twins.contents import ages, count_of, need_equal, need_list

if TYPE_CHECKING:
    from backsweep.store.store import RecordTable, Store


def explain_store(store: Store) -> None:
    """Raise a ContentsError that says what is wrong with the rows, episodes and records of a store, if anything is."""
    slots, age = store.live_slots(), ages(store)
    rows = store.rows[slots]
    _check_episodes(store, rows, slots, age)
    _check_records(store, rows)
    values = store.values[: len(age)]
    need_finite(values, "values")
    need((np.abs(values[:, REWARD]) <= LARGEST_REWARD).all(), "a reward is too large")


def _check_episodes(store: Store, rows: NDArray[np.int32], slots: NDArray[np.int64], age: NDArray[np.int64]) -> None:
    """Check episodes and the links between rows; `rows` are the live ones, oldest first."""
    used, high = len(age), int(store.counters[EPISODES_HIGH])
    episodes, live = store.episodes[:high], store.live_episodes[: store.counters[EPISODES_LIVE]]
    need_within(live, 0, high, "live episodes")
    need_equal(episodes[live, POSITION], np.arange(len(live)), "the places of episodes")
    alive = np.zeros(high, np.bool_)
    alive[live] = True
    need_list(int(store.counters[EPISODES_FREE]), episodes[:, FIRST], ~alive, "the list of free episodes")
    episode = rows[:, EPISODE]
    need_within(episode, 0, high, "episodes of rows")
    need_equal(count_of(episode, high)[live], episodes[live, LENGTH], "the lengths of episodes")
    need(alive[episode].all() and (episodes[live, LENGTH] > 0).all(), "a row's episode is free, or one has no rows")
    need_within(episodes[live, FIRST], 0, used, "first rows of episodes")
    need_within(episodes[live, LAST], 0, used, "last rows of episodes")
    first, last = age[episodes[live, FIRST]], age[episodes[live, LAST]]
    need_equal(episode[first], live, "the first rows of episodes")
    need_equal(episode[last], live, "the last rows of episodes")

    is_first, is_last = np.zeros(len(rows), np.bool_), np.zeros(len(rows), np.bool_)
    is_first[first], is_last[last] = True, True
    need_within(rows[:, PREVIOUS], -1, store.capacity, "previous rows")
    need((rows[last, NEXT] == -1).all(), "the last row of an episode is followed by another")
    # Each row but the last links to a later one of its episode, which links back, so there are no cycles.
    going_on = np.flatnonzero(~is_last)
    need_within(rows[going_on, NEXT], 0, used, "next rows")
    following = age[rows[going_on, NEXT]]
    need((following > going_on).all(), "a row comes before the one that it follows")
    need_equal(rows[following, PREVIOUS], slots[going_on], "the links between rows")
    need_equal(episode[following], episode[going_on], "the episodes of neighbours")
    need(not is_first[following].any(), "the first row of an episode follows another")

    flags = rows[:, FLAGS]
    need(((flags & ~ALL_FLAGS) == 0).all(), "a row has flags that mean nothing")
    need(((flags & (ENDED | UNSEEN)) != UNSEEN).all(), "an episode continues in a state that was never observed")
    need(((flags[going_on] & ENDED) == 0).all(), "an episode continues after its end")
    need(is_first[(flags & STARTS_EPISODE) != 0].all(), "an episode starts in its middle")
    state, end = episodes[live, STATE], flags[last]
    need_within(state, RUNNING, HAS_TRUNCATED + 2, "states of episodes")
    need_equal(state == HAS_TERMINATED, (end & TERMINATED) != 0, "the ends of episodes")
    need_equal(state == HAS_TRUNCATED, (end & ENDED) == TRUNCATED, "the ends of episodes")


def _check_records(store: Store, rows: NDArray[np.int32]) -> None:
    held = rows[:, OBSERVATION : NEXT_OBSERVATION + 1]
    tables = [(table, own[RECORDS_HIGH], own) for table, own in store.record_tables()]
    (frames, frames_high, _), (stacks, stacks_high, _) = tables
    if store.frame_stack > 1:
        need_within(held, 0, stacks_high, "observations of rows")
        need_equal(stacks.uses[:stacks_high], count_of(held.reshape(-1), stacks_high), "the uses of stacks")
        in_use = stacks.records[:stacks_high][stacks.uses[:stacks_high] > 0]
        need(not in_use.size or in_use.max() < frames_high, "a stack has a frame that is not there")
        need_equal(frames.uses[:frames_high], count_of(in_use.reshape(-1).astype(np.int64), frames_high), "frame uses")
    else:
        need_within(held, 0, frames_high, "observations of rows")
        need_equal(frames.uses[:frames_high], count_of(held.reshape(-1), frames_high), "the uses of observations")
    for table, high, own in tables:
        _check_free_records(table, int(high), own)


def _check_free_records(table: RecordTable, high: int, counters: NDArray[np.int64]) -> None:
    free = table.uses[:high] == 0
    need(high - np.count_nonzero(free) == counters[RECORDS_LIVE], "the number of live records is wrong")
    links = table.hashes[:high]
    need(not free.any() or links[free].max() <= high, "the list of free records is broken")
    need_list(int(counters[RECORDS_FREE]), np.where(free, links, 0).astype(np.int64), free, "the list of free records")
