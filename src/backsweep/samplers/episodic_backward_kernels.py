"""Walks backwards through episodes."""

# In compiled code Python's numbers and numpy's are one and the same.
# mypy: disable-error-code="no-any-return,arg-type,assignment,return-value"

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from backsweep.jit.array_table import Addresses, unpack
from backsweep.jit.compilation import kernel
from backsweep.jit.random_streams_kernels import draw_below
from backsweep.store.ring_kernels import (
    EPISODE,
    EPISODES_LIVE,
    FIRST,
    HAS_TRUNCATED,
    LAST,
    LIVE,
    PREVIOUS,
    RUNNING,
    STATE,
    TOTAL,
    Ring,
)

TRIES = 64


@kernel
def is_eligible(episode: int, timeouts: bool, running: bool, episodes: NDArray[np.int64]) -> bool:
    """Return whether an episode may be drawn."""
    state = episodes[episode, STATE]
    return (timeouts or state != HAS_TRUNCATED) and (running or state != RUNNING)


@kernel
def draw_episode(state: NDArray[np.uint64], timeouts: bool, running: bool, ring: Ring) -> int:
    """Draw one of the eligible episodes uniformly; return -1 if there is none.

    A few random draws nearly always find one. If eligible episodes are rare, they are counted and one is picked.
    """
    episodes, live_episodes = ring.episodes, ring.live_episodes
    count = ring.counters[EPISODES_LIVE]
    for _ in range(TRIES):
        episode = live_episodes[draw_below(state, count)]
        if is_eligible(episode, timeouts, running, episodes):
            return episode
    eligible = 0
    for i in range(count):
        if is_eligible(live_episodes[i], timeouts, running, episodes):
            eligible += 1
    if eligible == 0:
        return -1
    wanted = draw_below(state, eligible)
    for i in range(count):
        if is_eligible(live_episodes[i], timeouts, running, episodes):
            if wanted == 0:
                return live_episodes[i]
            wanted -= 1
    return -1


@kernel
def walk_back(
    seed: np.uint64, cursor: int, timeouts: bool, running: bool, ring_at: Addresses, out: NDArray[np.int64]
) -> tuple[int, int]:
    """Fill `out` with rows of one episode after another, each from its last step backwards.

    `cursor` is the serial number of the next row, or -1. Returns the number of rows written and the new cursor.
    """
    ring = unpack(Ring, ring_at)
    rows, episodes = ring.rows, ring.episodes
    state = np.empty(1, np.uint64)
    state[0] = seed
    capacity = rows.shape[0]
    oldest = ring.counters[TOTAL] - ring.counters[LIVE]
    filled = 0
    while filled < out.shape[0]:
        if cursor < oldest:
            episode = draw_episode(state, timeouts, running, ring)
            if episode < 0:
                return filled, -1
            cursor = oldest + (episodes[episode, LAST] - oldest) % capacity
        out[filled] = cursor
        filled += 1
        slot = cursor % capacity
        if episodes[rows[slot, EPISODE], FIRST] == slot:
            cursor = -1
        else:
            cursor = oldest + (np.int64(rows[slot, PREVIOUS]) - oldest) % capacity
    return filled, cursor


@kernel
def episode_rows(row: int, ring_at: Addresses, out: NDArray[np.int64]) -> None:
    """Fill `out` with the live rows of the row's episode, in time order."""
    ring = unpack(Ring, ring_at)
    rows = ring.rows
    capacity = rows.shape[0]
    oldest = ring.counters[TOTAL] - ring.counters[LIVE]
    slot = ring.episodes[rows[row % capacity, EPISODE], LAST]
    for i in range(out.shape[0] - 1, -1, -1):
        out[i] = oldest + (slot - oldest) % capacity
        slot = np.int64(rows[slot, PREVIOUS])
