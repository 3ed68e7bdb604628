"""Tables that store each distinct record once.

A *record* is a fixed number of 64-bit words: one frame of an observation, or, with frame stacks, the list of the
frames that make up one observation. A record table stores each distinct record once:

    table[hash]  -> record            see `jit/hash_table_kernels.py`
    records[record, :]                the words themselves
    uses[record]                      the number of rows (or stacks) that refer to it; at 0 the record is released
    hashes[record]                    the hash, or, in a released record, the next released one + 1
    changed[record // CHANGED_BLOCK]  whether any of these records was written since the last save
"""

# In compiled code Python's numbers and numpy's are one and the same.
# mypy: disable-error-code="no-any-return,arg-type,assignment,return-value"

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from backsweep.jit.array_table import Addresses, BoolVector, Int32Vector, Int64Vector, WordMatrix, WordVector, unpack
from backsweep.jit.compilation import inlined, kernel
from backsweep.jit.hash_table_kernels import EMPTY, after, entry, home, insert, may_be, most_passed, number_in, remove
from backsweep.jit.prefetching import prefetch
from backsweep.jit.random_streams_kernels import mix

# Counters of a record table.
RECORDS_HIGH = 0  # records below this number have been used at some time
RECORDS_FREE = 1  # the first released record + 1, or 0
RECORDS_LIVE = 2
RECORD_COUNTERS = 3

CHANGED_BLOCK = 64
STREAMED_WORDS = 128
STREAMED_TABLE = 1 << 23
"""From these words of a record, and of all, on records are written past the caches, where most would not stay."""
WORDS_OF_A_LINE = 8


class Records(NamedTuple):
    """A record table."""

    records: WordMatrix
    uses: Int32Vector
    hashes: WordVector
    table: WordVector
    changed: BoolVector
    weights: WordVector
    """The hash's factors, one for each word of a record."""
    counters: Int64Vector


@inlined
def hash_record(record: NDArray[np.uint64], weights: NDArray[np.uint64]) -> np.uint64:
    """Multilinear hash of the words, mixed so that the low bits can index a table."""
    total = np.uint64(record.shape[0])
    for i in range(record.shape[0]):
        total += record[i] * weights[i]
    return mix(total)


@inlined
def copy_and_hash(given: NDArray[np.uint64], record: NDArray[np.uint64], weights: NDArray[np.uint64]) -> np.uint64:
    """Copy a record and return its hash, as `hash_record` does, in one pass."""
    total = np.uint64(record.shape[0])
    for i in range(record.shape[0]):
        word = given[i]
        record[i] = word
        total += word * weights[i]
    return mix(total)


@inlined
def same_record(first: NDArray[np.uint64], second: NDArray[np.uint64]) -> bool:
    """Compare two records without an early exit, so that the loop is vectorised."""
    different = np.uint64(0)
    for i in range(first.shape[0]):
        different |= first[i] ^ second[i]
    return different == np.uint64(0)


@inlined
def number_or_place(
    record: NDArray[np.uint64],
    code: np.uint64,
    kept: Records,
    staged: NDArray[np.uint64] | None = None,
    unwritten: NDArray[np.int32] | None = None,
) -> int:
    """Return the number of a record with this hash, or -1 - the place in the table where it may be entered.

    ``unwritten[i]`` are the place in `staged` and the number of records that were entered and are not written yet.
    """
    place = home(code, kept.table)
    while kept.table[place] != EMPTY:
        number = number_in(kept.table[place])
        if may_be(kept.table[place], code):
            same = same_record(kept.records[number], record)
            if unwritten is not None and unwritten.shape[0] > 0:
                same = is_same_unwritten(number, same, record, staged, unwritten)
            if same:
                return number
        place = after(place, kept.table)
    return -1 - place


@kernel
def is_same_unwritten(
    number: int, same: bool, record: NDArray[np.uint64], staged: NDArray[np.uint64], unwritten: NDArray[np.int32]
) -> bool:
    """Say whether a record is the one with this number if that is not written yet; return `same` if it is."""
    for i in range(unwritten.shape[0]):
        if unwritten[i, 1] == number:
            return same_record(staged[unwritten[i, 0]], record)
    return same


@inlined
def enter(place: int, code: np.uint64, kept: Records) -> int:
    """Enter a new record with this hash at an empty place of the table; return its number.

    It has no uses yet, and its words are still to be written.
    """
    hashes, counters = kept.hashes, kept.counters
    if counters[RECORDS_FREE] != 0:
        number = counters[RECORDS_FREE] - 1
        counters[RECORDS_FREE] = np.int64(hashes[number])
    else:
        number = counters[RECORDS_HIGH]
        counters[RECORDS_HIGH] += 1
    counters[RECORDS_LIVE] += 1
    kept.table[place] = entry(code, number)
    hashes[number] = code
    kept.uses[number] = 0
    kept.changed[number // CHANGED_BLOCK] = True
    return number


@inlined
def intern(record: NDArray[np.uint64], code: np.uint64, kept: Records) -> int:
    """Find or store a record with this hash; return its number, or -1 - number if it is new.

    Its uses are not changed.
    """
    found = number_or_place(record, code, kept)
    if found >= 0:
        return found
    number = enter(-1 - found, code, kept)
    for i in range(record.shape[0]):
        kept.records[number, i] = record[i]
    return -1 - number


@kernel
def find(record: NDArray[np.uint64], kept: Records) -> int:
    """Return the number of a record, or -1."""
    return max(number_or_place(record, hash_record(record, kept.weights), kept), -1)


@kernel
def find_observation(staged: NDArray[np.uint64], frames: Records, stacks: Records) -> int:
    """Return the number of a stored observation, or -1."""
    depth = stacks.records.shape[1]
    if depth == 0:
        return find(staged, frames)
    size = frames.records.shape[1]
    stack = np.empty(depth, np.uint64)
    for i in range(depth):
        frame = find(staged[i * size : (i + 1) * size], frames)
        if frame < 0:
            return -1
        stack[i] = np.uint64(frame)
    return find(stack, stacks)


@inlined
def release(number: int, kept: Records) -> bool:
    """Remove one use of a record; free it and return True if that was the last one."""
    uses, hashes, counters = kept.uses, kept.hashes, kept.counters
    uses[number] -= 1
    if uses[number] > 0:
        return False
    remove(hashes[number], number, kept.table)
    hashes[number] = np.uint64(counters[RECORDS_FREE])
    counters[RECORDS_FREE] = number + 1
    counters[RECORDS_LIVE] -= 1
    return True


@inlined
def prefetch_if_last_use(number: int, kept: Records) -> None:
    """Prefetch all of a record that is about to be released and overwritten by a new one.

    A large record is many cache lines, and a processor that starts to write them waits for each.
    """
    if kept.uses[number] == 1:
        for word in range(0, kept.records.shape[1], WORDS_OF_A_LINE):
            prefetch(kept.records, number, word)


@inlined
def are_streamed(kept: Records) -> bool:
    """Say whether records are large enough to be written past the caches."""
    words = kept.records.shape[1]
    return words >= STREAMED_WORDS and kept.records.shape[0] * words >= STREAMED_TABLE


@kernel
def rebuild_table(hashes: NDArray[np.uint64], uses: NDArray[np.int32], table: NDArray[np.uint64], high: int) -> bool:
    """Fill an empty table with the used records below `high`, needed after loading; False if too many have one hash."""
    left = most_passed(high)
    for number in range(high):
        if uses[number] > 0:
            left -= insert(hashes[number], number, table)
            if left < 0:
                return False
    return True


@kernel
def intern_stack(staged: NDArray[np.uint64], frames_at: Addresses, stacks_at: Addresses) -> int:
    """Find or store a staged stack of frames; return its number, or -1 - number if it is new.

    It is a list of frames in a separate record table, and uses of its frames are counted when the list is new.
    """
    frames, stacks = unpack(Records, frames_at), unpack(Records, stacks_at)
    depth, size = stacks.records.shape[1], frames.records.shape[1]
    stack = np.empty(depth, np.uint64)
    for i in range(depth):
        part = staged[i * size : (i + 1) * size]
        frame = intern(part, hash_record(part, frames.weights), frames)
        if frame < 0:
            frame = -1 - frame
        frames.uses[frame] += 1
        stack[i] = np.uint64(frame)
    number = intern(stack, hash_record(stack, stacks.weights), stacks)
    if number >= 0:  # the list is known and already holds its frames
        for i in range(depth):
            frames.uses[np.int64(stack[i])] -= 1
    return number


@kernel
def release_stack(number: int, frames_at: Addresses, stacks_at: Addresses) -> None:
    """Remove one use of a stack of frames."""
    frames, stacks = unpack(Records, frames_at), unpack(Records, stacks_at)
    if release(number, stacks):
        for i in range(stacks.records.shape[1]):
            release(np.int64(stacks.records[number, i]), frames)
