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
    Int64Vector,
    Table,
    WordMatrix,
    borrow,
    unpack,
    viewed,
)
from backsweep.jit.compilation import inlined, kernel
from backsweep.jit.prefetching import prefetch
from backsweep.store.distinct_kernels import WORDS_OF_A_LINE, Records, find_observation
from backsweep.store.ring_kernels import (
    FLAGS,
    FRAMES,
    LIVE,
    NEXT,
    NEXT_OBSERVATION,
    OBSERVATION,
    REWARD,
    RING,
    STACKS,
    TERMINATED,
    TOTAL,
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
    slots: Int64Vector
    """Scratch: the slot of each row."""
    first: Int64Vector
    """Scratch: the observation number of each row."""
    second: Int64Vector
    """Scratch: the number of each row's successor."""
    spare: Int64Vector
    """Scratch for replays that plan."""


@kernel
def number_of(words: NDArray[np.uint64], store: Table) -> int:
    """Return the number of a stored observation given as words, or -1."""
    return find_observation(words, unpack(Records, store[FRAMES]), unpack(Records, store[STACKS]))


@kernel
def copy_stacks(
    number: NDArray[np.int64], frames: NDArray[np.uint64], stacks: NDArray[np.uint64], out: NDArray[np.uint64]
) -> None:
    """Write observations that are stacks to the rows of `out`, frame after frame."""
    size = frames.shape[1]
    for item in range(number.shape[0]):
        for k in range(stacks.shape[1]):
            frame = np.int64(stacks[number[item], k])
            for i in range(size):
                out[item, k * size + i] = frames[frame, i]


@inlined
def copy_record(number: int, following: int, frames: NDArray[np.uint64], out: NDArray[np.uint64]) -> None:
    """Write a record to `out`, and prefetch the one that follows meanwhile, all of its cache lines.

    The processor finds out by itself that lines are read one after the other, but not where the next record is.
    """
    size = frames.shape[1]
    whole = size - size % WORDS_OF_A_LINE
    for line in range(0, whole, WORDS_OF_A_LINE):
        prefetch(frames, following, line)
        for i in range(line, line + WORDS_OF_A_LINE):
            out[i] = frames[number, i]
    for i in range(whole, size):
        out[i] = frames[number, i]


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
        last = first.shape[0] - 1
        for item in range(first.shape[0]):
            copy_record(first[item], second[item], frames, out_first[item])
            copy_record(second[item], first[min(item + 1, last)], frames, out_second[item])
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


@inlined
def lap_start(ring: Ring) -> int:
    """Return the serial number of the row that was first in the ring, in slot 0, when the oldest row was added."""
    oldest = ring.counters[TOTAL] - ring.counters[LIVE]
    return oldest - oldest % ring.rows.shape[0]


@inlined
def live_slot(serial: int, start: int, capacity: int) -> int:
    """Return the slot of a live row, given `lap_start`: one division for a batch, where each row would take one.

    Any other number gives a slot as well, since a user's sampler may be wrong.
    """
    slot = serial - start
    if slot >= capacity:
        slot -= capacity
    return slot if 0 <= slot < capacity else serial % capacity


@inlined
def find_slots(picked: NDArray[np.int64], ring: Ring, out: Gathered) -> None:
    """Find the slots of the picked rows and prefetch what is there."""
    rows, values, actions, start = ring.rows, ring.values, ring.actions, lap_start(ring)
    for item in range(picked.shape[0]):
        slot = live_slot(picked[item], start, rows.shape[0])
        prefetch(rows, slot)
        prefetch(values, slot)
        prefetch(actions, slot)
        out.slots[item] = slot


@inlined
def gather_rows(
    n_step: int, gamma: float, ring: Ring, frames: NDArray[np.uint64], stacked: bool, out: Gathered
) -> None:
    """Gather all but the observations of the rows whose slots were found, and find the numbers of those."""
    rows, values, actions, action = (
        ring.rows,
        ring.values,
        viewed(ring.actions, np.uint64),
        viewed(out.action, np.uint64),
    )
    for item in range(out.slots.shape[0]):
        slot = out.slots[item]
        last, reward, discount = fold_steps(slot, n_step, gamma, rows, values)
        terminated = (rows[last, FLAGS] & TERMINATED) != 0
        out.reward[item] = reward
        out.discount[item] = 0.0 if terminated else discount
        out.terminated[item] = terminated
        for i in range(actions.shape[1]):
            action[item, i] = actions[slot, i]
        out.first[item] = rows[slot, OBSERVATION]
        # An unseen successor must not be used, so any observation of the right form will do.
        out.second[item] = rows[last, OBSERVATION if rows[last, FLAGS] & UNSEEN else NEXT_OBSERVATION]
        if not stacked:
            prefetch(frames, out.first[item])
            prefetch(frames, out.second[item])


@kernel
def read_rows(picked: NDArray[np.int64], n_step: int, gamma: float, store: Table, gathered_at: Addresses) -> None:
    """Gather the picked rows, each combined with up to `n_step` steps of its own episode."""
    arrays, out = borrow(store), unpack(Gathered, borrow(gathered_at))
    ring = unpack(Ring, arrays[RING])
    frames, stacks = unpack(Records, arrays[FRAMES]).records, unpack(Records, arrays[STACKS]).records
    find_slots(picked, ring, out)
    gather_rows(n_step, gamma, ring, frames, stacks.shape[1] > 0, out)
    copy_pairs(out.first, out.second, frames, stacks, out.observation, out.next_observation)


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
