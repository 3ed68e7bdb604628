"""The tables in which each distinct record is kept once.

A *record* is a fixed number of 64-bit words: one frame of an observation, or, with frame stacks, the list of the
frames that make up one observation. A record table keeps each distinct record once:

    table[hash]  -> record + 1        open addressing, 0 means empty
    records[record, :]                the words themselves
    uses[record]                      how many rows (or stacks) refer to it; at 0 the record is released
    hashes[record]                    the hash, or, in a released record, the next released one + 1
    changed[record // CHANGED_BLOCK]  whether any of these records was written since the last save
"""

# In compiled code Python's numbers and numpy's are one and the same.
# mypy: disable-error-code="no-any-return,arg-type,assignment,return-value"

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from backsweep.jit.compilation import inlined, kernel
from backsweep.jit.random_streams_kernels import mix

# Counters of a record table.
RECORDS_HIGH = 0  # records below this number have been used at some time
RECORDS_FREE = 1  # the first released record + 1, or 0
RECORDS_LIVE = 2
RECORD_COUNTERS = 3

CHANGED_BLOCK = 64


@inlined
def hash_record(record: NDArray[np.uint64], weights: NDArray[np.uint64]) -> np.uint64:
    """Multilinear hash of the words, scrambled so that the low bits can index a table."""
    total = np.uint64(record.shape[0])
    for i in range(record.shape[0]):
        total += record[i] * weights[i]
    return mix(total)


@inlined
def same_record(first: NDArray[np.uint64], second: NDArray[np.uint64]) -> bool:
    """Compare two records: to the end, since a loop that may end early is not done many words at a time."""
    different = np.uint64(0)
    for i in range(first.shape[0]):
        different |= first[i] ^ second[i]
    return different == np.uint64(0)


@inlined
def intern(
    record: NDArray[np.uint64],
    records: NDArray[np.uint64],
    uses: NDArray[np.int32],
    hashes: NDArray[np.uint64],
    table: NDArray[np.int32],
    changed: NDArray[np.bool_],
    weights: NDArray[np.uint64],
    counters: NDArray[np.int64],
) -> int:
    """Find or keep `record`; return its number, or -1 - number if it is new. Its uses are left as they are."""
    code = hash_record(record, weights)
    mask = np.uint64(table.shape[0] - 1)
    place = np.int64(code & mask)
    while table[place] != 0:
        number = table[place] - 1
        if hashes[number] == code and same_record(records[number], record):
            return number
        place = np.int64((np.uint64(place) + np.uint64(1)) & mask)
    if counters[RECORDS_FREE] != 0:
        number = counters[RECORDS_FREE] - 1
        counters[RECORDS_FREE] = np.int64(hashes[number])
    else:
        number = counters[RECORDS_HIGH]
        counters[RECORDS_HIGH] += 1
    counters[RECORDS_LIVE] += 1
    table[place] = number + 1
    hashes[number] = code
    uses[number] = 0
    changed[number // CHANGED_BLOCK] = True
    for i in range(record.shape[0]):
        records[number, i] = record[i]
    return -1 - number


@kernel
def find(
    record: NDArray[np.uint64],
    records: NDArray[np.uint64],
    hashes: NDArray[np.uint64],
    table: NDArray[np.int32],
    weights: NDArray[np.uint64],
) -> int:
    """Return the number of a record, or -1."""
    code = hash_record(record, weights)
    mask = np.uint64(table.shape[0] - 1)
    place = code & mask
    while table[np.int64(place)] != 0:
        number = table[np.int64(place)] - 1
        if hashes[number] == code and same_record(records[number], record):
            return number
        place = (place + np.uint64(1)) & mask
    return -1


@kernel
def find_observation(
    staged: NDArray[np.uint64],
    frames: NDArray[np.uint64],
    frame_hashes: NDArray[np.uint64],
    frame_table: NDArray[np.int32],
    stacks: NDArray[np.uint64],
    stack_hashes: NDArray[np.uint64],
    stack_table: NDArray[np.int32],
    weights: NDArray[np.uint64],
) -> int:
    """Return the number of a stored observation, or -1."""
    depth = stacks.shape[1]
    if depth == 0:
        return find(staged, frames, frame_hashes, frame_table, weights)
    size = frames.shape[1]
    stack = np.empty(depth, np.uint64)
    for i in range(depth):
        frame = find(staged[i * size : (i + 1) * size], frames, frame_hashes, frame_table, weights)
        if frame < 0:
            return -1
        stack[i] = np.uint64(frame)
    return find(stack, stacks, stack_hashes, stack_table, weights)


@kernel
def release(
    number: int,
    uses: NDArray[np.int32],
    hashes: NDArray[np.uint64],
    table: NDArray[np.int32],
    counters: NDArray[np.int64],
) -> bool:
    """Take back one use of a record; free it and return True if that was the last one."""
    uses[number] -= 1
    if uses[number] > 0:
        return False
    mask = np.uint64(table.shape[0] - 1)
    place = hashes[number] & mask
    while table[np.int64(place)] != number + 1:
        place = (place + np.uint64(1)) & mask
    # Close the gap: pull back every later entry of the run that may stand here, so that no marker stays behind.
    gap = place
    while True:
        place = (place + np.uint64(1)) & mask
        entry = table[np.int64(place)]
        if entry == 0:
            break
        home = hashes[entry - 1] & mask
        if ((place - home) & mask) >= ((place - gap) & mask):
            table[np.int64(gap)] = entry
            gap = place
    table[np.int64(gap)] = 0
    hashes[number] = np.uint64(counters[RECORDS_FREE])
    counters[RECORDS_FREE] = number + 1
    counters[RECORDS_LIVE] -= 1
    return True


@kernel
def rebuild_table(hashes: NDArray[np.uint64], uses: NDArray[np.int32], table: NDArray[np.int32], high: int) -> None:
    """Fill an empty table with the used records below `high`; needed after loading."""
    mask = np.uint64(table.shape[0] - 1)
    for number in range(high):
        if uses[number] > 0:
            place = hashes[number] & mask
            while table[np.int64(place)] != 0:
                place = (place + np.uint64(1)) & mask
            table[np.int64(place)] = number + 1


@kernel
def intern_observation(
    staged: NDArray[np.uint64],
    frames: NDArray[np.uint64],
    frame_uses: NDArray[np.int32],
    frame_hashes: NDArray[np.uint64],
    frame_table: NDArray[np.int32],
    frame_changed: NDArray[np.bool_],
    stacks: NDArray[np.uint64],
    stack_uses: NDArray[np.int32],
    stack_hashes: NDArray[np.uint64],
    stack_table: NDArray[np.int32],
    stack_changed: NDArray[np.bool_],
    weights: NDArray[np.uint64],
    counters: NDArray[np.int64],
) -> int:
    """Find or keep a staged observation; return its number, or -1 - number if it is new.

    Without frame stacks (`stacks` has no columns) an observation is one frame. With them it is a list of frames, kept
    in a record table of its own, and uses of its frames are counted when the list is new.
    """
    depth = stacks.shape[1]
    if depth == 0:
        return intern(
            staged, frames, frame_uses, frame_hashes, frame_table, frame_changed, weights, counters[:RECORD_COUNTERS]
        )
    size = frames.shape[1]
    stack = np.empty(depth, np.uint64)
    for i in range(depth):
        frame = intern(
            staged[i * size : (i + 1) * size],
            frames,
            frame_uses,
            frame_hashes,
            frame_table,
            frame_changed,
            weights,
            counters[:RECORD_COUNTERS],
        )
        if frame < 0:
            frame = -1 - frame
        frame_uses[frame] += 1
        stack[i] = np.uint64(frame)
    number = intern(
        stack, stacks, stack_uses, stack_hashes, stack_table, stack_changed, weights, counters[RECORD_COUNTERS:]
    )
    if number >= 0:  # the list was there and holds its frames already
        for i in range(depth):
            frame_uses[np.int64(stack[i])] -= 1
    return number


@kernel
def release_observation(
    number: int,
    frame_uses: NDArray[np.int32],
    frame_hashes: NDArray[np.uint64],
    frame_table: NDArray[np.int32],
    stacks: NDArray[np.uint64],
    stack_uses: NDArray[np.int32],
    stack_hashes: NDArray[np.uint64],
    stack_table: NDArray[np.int32],
    counters: NDArray[np.int64],
) -> None:
    """Take back one use of an observation."""
    depth = stacks.shape[1]
    if depth == 0:
        release(number, frame_uses, frame_hashes, frame_table, counters[:RECORD_COUNTERS])
    elif release(number, stack_uses, stack_hashes, stack_table, counters[RECORD_COUNTERS:]):
        for i in range(depth):
            release(np.int64(stacks[number, i]), frame_uses, frame_hashes, frame_table, counters[:RECORD_COUNTERS])
