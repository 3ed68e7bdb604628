"""Checks that a loaded store is consistent, before any kernel follows its indices.

The kernels in `store_check_kernels.py` decide.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from backsweep.snapshot.contents import ContentsError, need, need_lengths, need_within
from backsweep.snapshot.saved_component import CheckStep
from backsweep.store import store_check_kernels as kernels
from backsweep.store.distinct_kernels import RECORDS_FREE, RECORDS_HIGH, RECORDS_LIVE
from backsweep.store.ring_kernels import (
    CLEARED,
    EPISODES_BROKEN,
    EPISODES_EVER,
    EPISODES_HIGH,
    EPISODES_LIVE,
    FRESH,
    LIVE,
    NEXT,
    RING,
    TOTAL,
)
from backsweep.store.staging import LARGEST_REWARD

if TYPE_CHECKING:
    from backsweep.store.store import Store

MOST_ROWS_EVER = 2**62
CHUNK = 1 << 20


class StoreCheck:
    """The check of a loaded store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._uses = np.zeros(0, np.int32)
        """How often each observation is held by rows."""
        self._seen = np.zeros(0, np.bool_)
        """Which observations were really observed, as the rows say."""

    def steps(self) -> tuple[CheckStep, ...]:
        """Return the steps: sizes, then rows, then the tables of observations, then what rows hold."""
        records = ("stacks", "frame_uses", "frame_hashes", "stack_uses", "stack_hashes")
        return (
            CheckStep(("counters", "record_counters"), self._check_sizes),
            CheckStep(("lanes", "rows", "episodes", "live_episodes"), self._check_rows),
            CheckStep(records, self._check_records),
            CheckStep(("values", "actions", "frames"), self._check_contents),
        )

    def _check_sizes(self, loaded: Mapping[str, NDArray[Any]]) -> None:
        _check_counters(self._store)
        need_lengths(loaded, self._store.all_arrays())

    def _check_rows(self, _: Mapping[str, NDArray[Any]]) -> None:
        store = self._store
        high = store.observations_high
        self._uses, self._seen = np.zeros(high, np.int32), np.zeros(high, np.bool_)
        if not kernels.rows_fit(store.table[RING], high, self._uses, self._seen):
            raise ContentsError("its rows and episodes do not fit together")
        _check_lanes(store)

    def _check_records(self, _: Mapping[str, NDArray[Any]]) -> None:
        if not records_fit(self._store, self._uses):
            raise ContentsError("its rows, episodes and observations do not fit together")

    def _check_contents(self, _: Mapping[str, NDArray[Any]]) -> None:
        store, used = self._store, min(self._store.total, self._store.capacity)
        need(kernels.values_fit(store.values[:used], LARGEST_REWARD), "a reward or return is out of range")
        words = store.action_words[:used] if len(store) == used else store.action_words[store.live_slots()]
        if len(words):
            store.action_layout.check(store.action_layout.views(words), len(words), "action")
        _check_observations(store, np.flatnonzero(self._seen))


def records_fit(store: Store, uses: NDArray[np.int32]) -> bool:
    """Say whether the tables of observations are those of rows that hold them as often as `uses` says."""
    (frames, own), (stacks, stack_counters) = store.record_tables()
    frames_high, stacks_high = int(own[RECORDS_HIGH]), int(stack_counters[RECORDS_HIGH])
    frame_uses, stack_uses = uses, np.zeros(stacks_high, np.int32)
    if store.frame_stack > 1:
        frame_uses, stack_uses = np.zeros(frames_high, np.int32), uses
        if not kernels.count_frames(stacks.records, stack_uses, frame_uses):
            return False
    for table, counters, expected in ((frames, own, frame_uses), (stacks, stack_counters, stack_uses)):
        high, live, free = (int(counters[place]) for place in (RECORDS_HIGH, RECORDS_LIVE, RECORDS_FREE))
        if not kernels.records_fit(expected, table.uses[:high], table.hashes[:high], live, free):
            return False
    return True


def _check_counters(store: Store) -> None:
    counters, capacity = store.counters, store.capacity
    need(0 <= counters[TOTAL] < MOST_ROWS_EVER, "the number of rows ever added is out of range")
    need(0 <= counters[CLEARED] <= counters[TOTAL], "the number of rows that were cleared is out of range")
    expected = min(counters[TOTAL] - counters[CLEARED], capacity)
    need(counters[LIVE] == expected, "the number of live rows is not what follows from all rows")
    need(
        0 <= counters[EPISODES_LIVE] <= counters[EPISODES_HIGH] <= capacity,
        "the numbers of episodes are out of range",
    )
    need(counters[EPISODES_LIVE] <= counters[EPISODES_EVER] <= counters[TOTAL], "the number of episodes ever is wrong")
    need(0 <= counters[EPISODES_BROKEN] <= counters[EPISODES_EVER], "the number of broken episodes is out of range")
    need(0 <= counters[FRESH] <= 2 * store.num_envs, "the number of fresh observations is out of range")
    for table, own in store.record_tables():
        need(
            0 <= own[RECORDS_LIVE] <= own[RECORDS_HIGH] <= len(table.records), "the numbers of records are out of range"
        )


def _check_lanes(store: Store) -> None:
    last = store.lane_ends
    need_within(last, 0, store.total + 1, "last rows of lanes")
    own = last[last > 0]
    need(len(np.unique(own)) == len(own), "two lanes have the same last row")
    slots = (own[own > store.oldest] - 1) % store.capacity
    need((store.rows[slots, NEXT] == -1).all(), "the last row of a lane is followed by another")


def _check_observations(store: Store, seen: NDArray[np.int64]) -> None:
    """Check values where the space says more than that any byte will do."""
    layout = store.layout
    if layout.is_checked:
        step = max(CHUNK // layout.words, 2)
        for start in range(0, len(seen), step):
            words = store.observation_words(seen[start : start + step])
            layout.check(layout.views(words), len(words), "observation")
