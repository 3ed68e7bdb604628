"""Kernels of the samplers: the sum tree, and the walk through episodes from their ends.

A sum tree over `size` leaves (a power of two) is one array; the leaf of slot i is tree[size + i]:

                 tree[1] = total
            tree[2]           tree[3]
        tree[4] tree[5]   tree[6] tree[7]      <- leaves, size = 4

A parent is always computed as left + right, never adjusted by differences, so the tree is an exact function of its
leaves and rounding errors cannot build up. A second tree of the same shape holds minima; its empty leaves are infinite.
"""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

from backsweep.seeding.kernels import draw_below, draw_unit
from backsweep.store.kernels import (
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
)

TRIES = 64


@numba.njit(cache=True, nogil=True)
def set_leaf(slot: int, value: float, sums: NDArray[np.float64], minima: NDArray[np.float64]) -> None:
    """Set one priority and the nodes above it. Without minima (an empty array) only sums are kept."""
    node = sums.shape[0] // 2 + slot
    sums[node] = value
    with_minima = minima.shape[0] > 0
    if with_minima:
        minima[node] = value
    node //= 2
    while node > 0:
        sums[node] = sums[2 * node] + sums[2 * node + 1]
        if with_minima:
            minima[node] = min(minima[2 * node], minima[2 * node + 1])
        node //= 2


@numba.njit(cache=True, nogil=True)
def set_range(
    first: int, last: int, capacity: int, value: float, sums: NDArray[np.float64], minima: NDArray[np.float64]
) -> None:
    """Give the rows first..last-1 the same priority."""
    for serial in range(first, last):
        set_leaf(serial % capacity, value, sums, minima)


@numba.njit(cache=True, nogil=True)
def build_trees(leaves: NDArray[np.float64], sums: NDArray[np.float64], minima: NDArray[np.float64]) -> None:
    """Fill both trees from all live priorities at once."""
    size = sums.shape[0] // 2
    for i in range(leaves.shape[0]):
        sums[size + i] = leaves[i]
    for node in range(size - 1, 0, -1):
        sums[node] = sums[2 * node] + sums[2 * node + 1]
    if minima.shape[0] > 0:
        for i in range(leaves.shape[0]):
            minima[size + i] = leaves[i]
        for node in range(size - 1, 0, -1):
            minima[node] = min(minima[2 * node], minima[2 * node + 1])


@numba.njit(cache=True, nogil=True)
def update_priorities(
    row: NDArray[np.int64],
    error: NDArray[np.float64],
    capacity: int,
    alpha: float,
    epsilon: float,
    clip: float,
    largest: float,
    sums: NDArray[np.float64],
    minima: NDArray[np.float64],
) -> float:
    """Set the priorities of rows from their absolute TD errors; return the largest priority so far."""
    for i in range(row.shape[0]):
        priority = (min(error[i], clip) + epsilon) ** alpha
        largest = max(largest, priority)
        set_leaf(row[i] % capacity, priority, sums, minima)
    return largest


@numba.njit(cache=True, nogil=True)
def find_leaf(ticket: float, sums: NDArray[np.float64]) -> int:
    """Return the slot whose share of the total the ticket falls into; never one with priority 0."""
    size = sums.shape[0] // 2
    node = 1
    while node < size:
        node *= 2
        # Rounding may carry a ticket past the last share; an empty right half is never entered.
        if ticket >= sums[node] and sums[node + 1] > 0.0:
            ticket -= sums[node]
            node += 1
    return node - size


@numba.njit(cache=True, nogil=True)
def draw_prioritized(
    seed: np.uint64,
    oldest: int,
    capacity: int,
    beta: float,
    stratified: bool,
    sums: NDArray[np.float64],
    minima: NDArray[np.float64],
    row: NDArray[np.int64],
    weight: NDArray[np.float32],
) -> None:
    """Draw rows in proportion to their priorities p, with importance weights (N * p / total) ** -beta.

    Weights are divided by the largest that any live row would have, or, without minima, by the largest in the batch.
    """
    state = np.empty(1, np.uint64)
    state[0] = seed
    size = sums.shape[0] // 2
    count = row.shape[0]
    total = sums[1]
    smallest = np.inf
    for i in range(count):
        unit = draw_unit(state)
        if stratified:
            unit = (i + unit) / count
        slot = find_leaf(unit * total, sums)
        row[i] = oldest + (slot - oldest) % capacity
        smallest = min(smallest, sums[size + slot])
    if minima.shape[0] > 0:
        smallest = minima[1]
    # (N p / total) ** -beta divided by (N smallest / total) ** -beta: the common factors cancel.
    for i in range(count):
        weight[i] = (smallest / sums[size + row[i] % capacity]) ** beta


# -- episodes from their ends -----------------------------------------------------------------------------------------


@numba.njit(cache=True, nogil=True)
def is_eligible(episode: int, timeouts: bool, running: bool, episodes: NDArray[np.int64]) -> bool:
    """Say whether an episode may be drawn."""
    state = episodes[episode, STATE]
    return (timeouts or state != HAS_TRUNCATED) and (running or state != RUNNING)


@numba.njit(cache=True, nogil=True)
def draw_episode(
    state: NDArray[np.uint64],
    timeouts: bool,
    running: bool,
    episodes: NDArray[np.int64],
    live_episodes: NDArray[np.int32],
    store_counters: NDArray[np.int64],
) -> int:
    """Draw one of the eligible episodes uniformly; return -1 if there is none.

    A few blind draws nearly always hit one. Where eligible ones are rare, they are counted and one is picked.
    """
    count = store_counters[EPISODES_LIVE]
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


@numba.njit(cache=True, nogil=True)
def walk_back(
    seed: np.uint64,
    cursor: int,
    timeouts: bool,
    running: bool,
    rows: NDArray[np.int32],
    episodes: NDArray[np.int64],
    live_episodes: NDArray[np.int32],
    store_counters: NDArray[np.int64],
    out: NDArray[np.int64],
) -> tuple[int, int]:
    """Fill `out` with rows of one episode after another, each from its end backwards.

    `cursor` is the serial number of the next row to give, or -1. Returns how many rows were given, and the new cursor.
    """
    state = np.empty(1, np.uint64)
    state[0] = seed
    capacity = rows.shape[0]
    oldest = store_counters[TOTAL] - store_counters[LIVE]
    filled = 0
    while filled < out.shape[0]:
        if cursor < oldest:
            episode = draw_episode(state, timeouts, running, episodes, live_episodes, store_counters)
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


@numba.njit(cache=True, nogil=True)
def episode_rows(
    row: int,
    rows: NDArray[np.int32],
    episodes: NDArray[np.int64],
    store_counters: NDArray[np.int64],
    out: NDArray[np.int64],
) -> None:
    """Fill `out` with the live rows of the row's episode, in time order."""
    capacity = rows.shape[0]
    oldest = store_counters[TOTAL] - store_counters[LIVE]
    slot = episodes[rows[row % capacity, EPISODE], LAST]
    for i in range(out.shape[0] - 1, -1, -1):
        out[i] = oldest + (slot - oldest) % capacity
        slot = np.int64(rows[slot, PREVIOUS])
