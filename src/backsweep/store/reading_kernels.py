"""Reads rows and observations from the store."""

# In compiled code Python's numbers and numpy's are one and the same.
# mypy: disable-error-code="no-any-return,arg-type,assignment,return-value"

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from backsweep.jit.array_table import (
    Addresses,
    BoolVector,
    ByteMatrix,
    Float32Vector,
    Table,
    WordMatrix,
    borrow,
    unpack,
)
from backsweep.jit.compilation import inlined, kernel
from backsweep.jit.prefetching import prefetch
from backsweep.store.distinct_kernels import Records, find_observation
from backsweep.store.store_kernels import (
    FLAGS,
    FRAMES,
    NEXT,
    NEXT_OBSERVATION,
    OBSERVATION,
    REWARD,
    RING,
    STACKS,
    TERMINATED,
    UNSEEN,
    Ring,
)


class Gathered(NamedTuple):
    """The arrays of a batch that kernels write."""

    observation: WordMatrix
    next_observation: WordMatrix
    action: ByteMatrix
    reward: Float32Vector
    discount: Float32Vector
    terminated: BoolVector
    target: Float32Vector
    """For replays that plan."""


@kernel
def number_of(words: NDArray[np.uint64], store: Table) -> int:
    """Return the number of a stored observation given as words, or -1."""
    return find_observation(words, unpack(Records, store[FRAMES]), unpack(Records, store[STACKS]))


@kernel
def copy_observation(
    number: int, frames: NDArray[np.uint64], stacks: NDArray[np.uint64], out: NDArray[np.uint64]
) -> None:
    """Write one observation to `out`, frame after frame."""
    size = frames.shape[1]
    if stacks.shape[1] == 0:
        for i in range(size):
            out[i] = frames[number, i]
    else:
        for k in range(stacks.shape[1]):
            frame = np.int64(stacks[number, k])
            for i in range(size):
                out[k * size + i] = frames[frame, i]


@kernel
def copy_pairs(
    first: NDArray[np.int64],
    second: NDArray[np.int64],
    frames: NDArray[np.uint64],
    stacks: NDArray[np.uint64],
    out_first: NDArray[np.uint64],
    out_second: NDArray[np.uint64],
) -> None:
    """Write pairs of observations to two outputs.

    One after the other: copying both in one loop was slower on an idle machine, though faster on a busy one.
    """
    size = frames.shape[1]
    if stacks.shape[1] == 0:
        for item in range(first.shape[0]):
            a, b = first[item], second[item]
            for i in range(size):
                out_first[item, i] = frames[a, i]
            for i in range(size):
                out_second[item, i] = frames[b, i]
        return
    for item in range(first.shape[0]):
        for k in range(stacks.shape[1]):
            a, b = np.int64(stacks[first[item], k]), np.int64(stacks[second[item], k])
            start = k * size
            for i in range(size):
                out_first[item, start + i] = frames[a, i]
            for i in range(size):
                out_second[item, start + i] = frames[b, i]


@inlined
def fold_steps(
    slot: int, n_step: int, gamma: float, rows: NDArray[np.int32], values: NDArray[np.float64]
) -> tuple[int, float, float]:
    """Combine up to `n_step` steps of a row's episode; return the last slot, the reward and the discount."""
    last, reward, discount = np.int64(slot), values[slot, REWARD], gamma
    for _ in range(n_step - 1):
        if rows[last, NEXT] < 0:
            break
        last = np.int64(rows[last, NEXT])
        reward += discount * values[last, REWARD]
        discount *= gamma
    return last, reward, discount


@kernel
def read_rows(picked: NDArray[np.int64], n_step: int, gamma: float, store: Table, gathered_at: Addresses) -> None:
    """Gather the picked rows, each combined with up to `n_step` steps of its own episode."""
    out = unpack(Gathered, borrow(gathered_at))
    ring = unpack(Ring, store[RING])
    rows, values, actions = ring.rows, ring.values, ring.actions
    frames, stacks = unpack(Records, store[FRAMES]).records, unpack(Records, store[STACKS]).records
    capacity = rows.shape[0]
    first = np.empty(picked.shape[0], np.int64)
    second = np.empty(picked.shape[0], np.int64)
    for item in range(picked.shape[0]):
        slot = picked[item] % capacity
        prefetch(rows, slot)
        prefetch(values, slot)
        prefetch(actions, slot)
        first[item] = slot
    for item in range(picked.shape[0]):
        slot = first[item]
        last, reward, discount = fold_steps(slot, n_step, gamma, rows, values)
        terminated = (rows[last, FLAGS] & TERMINATED) != 0
        out.reward[item] = reward
        out.discount[item] = 0.0 if terminated else discount
        out.terminated[item] = terminated
        for i in range(actions.shape[1]):
            out.action[item, i] = actions[slot, i]
        first[item] = rows[slot, OBSERVATION]
        # An unseen successor must not be used, so any observation of the right form will do.
        second[item] = rows[last, OBSERVATION if rows[last, FLAGS] & UNSEEN else NEXT_OBSERVATION]
        if stacks.shape[1] == 0:
            prefetch(frames, first[item])
            prefetch(frames, second[item])
    copy_pairs(first, second, frames, stacks, out.observation, out.next_observation)


@kernel
def count_steps(picked: NDArray[np.int64], n_step: int, rows: NDArray[np.int32], out: NDArray[np.int64]) -> None:
    """Count the steps that `read_rows` combines for each picked row."""
    for item in range(picked.shape[0]):
        slot = picked[item] % rows.shape[0]
        steps = 1
        while steps < n_step and rows[slot, NEXT] >= 0:
            slot = np.int64(rows[slot, NEXT])
            steps += 1
        out[item] = steps


@kernel
def check_updates(
    row: NDArray[np.int64], error: NDArray[np.float64], oldest: int, total: int, refuse_negative: bool
) -> int:
    """Return the number of overwritten rows, or -1 if a row never existed or an error is invalid."""
    late = 0
    for i in range(row.shape[0]):
        if row[i] < 0 or row[i] >= total or not np.isfinite(error[i]) or (refuse_negative and error[i] < 0):
            return -1
        if row[i] < oldest:
            late += 1
    return late
