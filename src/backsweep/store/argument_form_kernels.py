"""Stages the arguments of `add` directly from the Python objects that hold them."""

# In compiled code Python's numbers and numpy's are one and the same.
# mypy: disable-error-code="no-any-return,arg-type,assignment,return-value"

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from backsweep.jit.array_table import Float64Vector, Int64Vector, Table, WordVector, unpack, viewed
from backsweep.jit.compilation import inlined, kernel
from backsweep.jit.hash_table_kernels import prefetch_home
from backsweep.jit.objects_kernels import (
    BOOL,
    DATA,
    FLOAT32,
    FLOAT64,
    INT64,
    ITEMS,
    NO_NUMBER,
    ONE,
    ZERO,
    ObjectPlaces,
    copy_bytes,
    load_int64,
    number_at,
    numbers_of,
    rows_of,
    store_int64,
    words_at,
)
from backsweep.store.distinct_kernels import Records, copy_and_hash, same_record
from backsweep.store.ring_kernels import (
    CONTINUES,
    ENDED,
    FLAGS,
    FORM,
    FRAMES,
    LANE_LAST,
    NEXT_OBSERVATION,
    PLACES,
    RING,
    STACKS,
    STAGED,
    TERMINATED,
    TOTAL,
    TRUNCATED,
    Ring,
    Staged,
    last_slot,
)
from backsweep.store.store_kernels import hash_successors

# Offsets of the items of the tuple of arguments, in bytes.
GIVEN_OBSERVATION = 0
GIVEN_ACTION = 8
GIVEN_REWARD = 16
GIVEN_SUCCESSOR = 24
GIVEN_TERMINATED = 32
GIVEN_TRUNCATED = 40
GIVEN_ROWS = 48  # an array of an int64 for each lane, to write serial numbers to
# Entries of `Form.numbers`.
LANES = 0
OBSERVATION_KIND = 1
OBSERVATION_DTYPE = 2  # its address
OBSERVATION_BYTES = 3
OBSERVATION_LOW = 4
OBSERVATION_HIGH = 5
ACTION_KIND = 6
ACTION_DTYPE = 7
ACTION_LOW = 8
ACTION_HIGH = 9
KEY_KIND = 10  # how an observation becomes a key, see `ingest_kernels.py`
TAKES_ENDS = 11  # whether steps that end an episode may be added as they are
FORM_NUMBERS = 12
# Kinds of observations and actions.
ANYTHING = 0  # the kernel cannot stage it
NUMBER = 1
ARRAY = 2
# What is returned, as bits.
NUMBERS_STAGED = 1  # actions, rewards and flags
OBSERVATIONS_STAGED = 2
SOME_ENDED = 4


class Form(NamedTuple):
    """What arguments must be to be taken as they are."""

    numbers: Int64Vector
    limits: Float64Vector
    """The largest reward."""
    observation_shape: Int64Vector
    """Its axes, and the bytes of one number."""
    action_shape: Int64Vector
    low: Float64Vector
    """Of each number of an action."""
    high: Float64Vector
    exponents: WordVector
    """The bits that are all set in a float that is not finite, for the lower and for the upper half of a word."""


@kernel
def stage_arguments(arguments: int, table: Table) -> int:
    """Stage the arguments in a tuple at the address `arguments` as far as they are in the usual form and in order.

    Returns as bits what was staged. The rest must be staged the long way, which says what is wrong if anything is.
    """
    done = stage_step(arguments, table)
    lanes = unpack(Form, table[FORM]).numbers[LANES]
    if not stage_observations(load_int64(arguments + ITEMS + GIVEN_OBSERVATION), np.int64(0), table):
        return done
    if not stage_observations(load_int64(arguments + ITEMS + GIVEN_SUCCESSOR), lanes, table):
        return done
    return done | OBSERVATIONS_STAGED


@kernel
def stage_step(arguments: int, table: Table) -> int:
    """Stage all but observations and successors, as `stage_arguments` does, and return the same bits."""
    staged, form, places = unpack(Staged, table[STAGED]), unpack(Form, table[FORM]), unpack(ObjectPlaces, table[PLACES])
    lanes, items = form.numbers[LANES], arguments + ITEMS
    address, stride, kind = numbers_of(load_int64(items + GIVEN_REWARD), lanes, places)
    if kind == NO_NUMBER:
        return 0
    for lane in range(lanes):
        reward = number_at(address + lane * stride, kind)
        if not abs(reward) <= form.limits[0]:  # false for NaN too
            return 0
        staged.rewards[lane] = reward
    address, stride, kind = numbers_of(load_int64(items + GIVEN_TERMINATED), lanes, places)
    second, second_stride, second_kind = numbers_of(load_int64(items + GIVEN_TRUNCATED), lanes, places)
    if not (is_flag(kind) and is_flag(second_kind)):
        return 0
    ends = 0
    for lane in range(lanes):
        flags = TERMINATED if number_at(address + lane * stride, kind) != 0.0 else 0
        if number_at(second + lane * second_stride, second_kind) != 0.0:
            flags |= TRUNCATED
        staged.flags[lane] = flags
        ends |= flags
    if not stage_actions(load_int64(items + GIVEN_ACTION), staged.actions, form, places):
        return 0
    return NUMBERS_STAGED | SOME_ENDED if ends else NUMBERS_STAGED


@kernel
def is_flag(kind: int) -> bool:
    """Say whether a kind of number is a flag."""
    return kind in (BOOL, ZERO, ONE)


@kernel
def stage_numbers(item: int, low: int, high: int, out: NDArray[np.int64], places: ObjectPlaces) -> bool:
    """Stage a whole number for each lane; return whether all are, within their bounds."""
    address, stride, kind = numbers_of(item, out.shape[0], places)
    if kind in (NO_NUMBER, FLOAT32, FLOAT64):
        return False
    for lane in range(out.shape[0]):
        place = address + lane * stride
        number = load_int64(place) if kind == INT64 else np.int64(number_at(place, kind))
        if number < low or number > high:
            return False
        out[lane, 0] = number
    return True


@kernel
def stage_actions(item: int, actions: NDArray[np.uint8], form: Form, places: ObjectPlaces) -> bool:
    """Stage an action for each lane; return whether all are of the usual form and within their space."""
    numbers = form.numbers
    if numbers[ACTION_KIND] == NUMBER:
        return stage_numbers(item, numbers[ACTION_LOW], numbers[ACTION_HIGH], viewed(actions, np.int64), places)
    lanes, shape = numbers[LANES], form.action_shape
    address, stride = rows_of(item, lanes, numbers[ACTION_DTYPE], shape, places.known)
    if address == 0:
        return False
    size = shape[shape.shape[0] - 1]
    kind = FLOAT32 if size == 4 else FLOAT64
    for lane in range(lanes):
        start = address + lane * stride
        for i in range(form.low.shape[0]):
            number = number_at(start + i * size, kind)
            if not (form.low[i] <= number and number <= form.high[i]):  # false for NaN too
                return False
        copy_bytes(actions, lane, start, size * form.low.shape[0])
    return True


@kernel
def stage_observations(item: int, first: int, table: Table) -> bool:
    """Stage an observation for each lane, from place `first` on; say if all are in the usual form and finite."""
    staged, form, places = unpack(Staged, table[STAGED]), unpack(Form, table[FORM]), unpack(ObjectPlaces, table[PLACES])
    numbers, lanes = form.numbers, form.numbers[LANES]
    words = staged.observations[first : first + lanes]
    if numbers[OBSERVATION_KIND] == NUMBER:
        return stage_numbers(item, numbers[OBSERVATION_LOW], numbers[OBSERVATION_HIGH], viewed(words, np.int64), places)
    address, stride = rows_of(item, lanes, numbers[OBSERVATION_DTYPE], form.observation_shape, places.known)
    if address == 0:
        return False
    for lane in range(lanes):
        copy_bytes(words, lane, address + lane * stride, numbers[OBSERVATION_BYTES])
    finite = True
    for lane in range(lanes):
        finite &= is_finite(words[lane], form)
    return finite


@inlined
def is_finite(words: NDArray[np.uint64], form: Form) -> bool:
    """Say whether all numbers of a staged observation are finite."""
    if form.exponents.shape[0] == 0:
        return True
    lower, upper, beyond = form.exponents[0], form.exponents[1], 0
    for i in range(words.shape[0]):
        beyond |= ((words[i] & lower) == lower) | ((words[i] & upper) == upper)
    return beyond == 0


@kernel
def stage_successors(arguments: int, table: Table) -> int:
    """Stage and hash the successors; return the place of the first, 0 if they are not in the usual form or finite.

    Those that are stored as they come are staged where they are kept: the next observations are compared with them.
    """
    staged, form, places = unpack(Staged, table[STAGED]), unpack(Form, table[FORM]), unpack(ObjectPlaces, table[PLACES])
    frames, numbers, lanes = unpack(Records, table[FRAMES]), form.numbers, form.numbers[LANES]
    item = load_int64(arguments + ITEMS + GIVEN_SUCCESSOR)
    if not in_whole_words(table):
        if not stage_observations(item, lanes, table):
            return 0
        hash_successors(table)
        return lanes
    address, stride = rows_of(item, lanes, numbers[OBSERVATION_DTYPE], form.observation_shape, places.known)
    if address == 0:
        return 0
    finite = True
    for lane in range(lanes):
        record = staged.observations[2 * lanes + lane]
        staged.kept[lane] = 0
        code = copy_and_hash(words_at(address + lane * stride, record.shape[0]), record, frames.weights)
        prefetch_home(code, frames.table)
        staged.codes[lane] = code
        finite &= is_finite(record, form)
    return 2 * lanes if finite else 0


@kernel
def note_added(arguments: int, successors: int, table: Table) -> None:
    """Write the serial numbers of the rows that were added to the array that was given for them.

    And note which rows the successors that were staged from place `successors` on belong to, if they are kept there.
    """
    staged, ring = unpack(Staged, table[STAGED]), unpack(Ring, table[RING])
    rows = load_int64(load_int64(arguments + ITEMS + GIVEN_ROWS) + DATA)
    for lane in range(ring.lanes.shape[0]):
        store_int64(rows + 8 * lane, staged.numbers[lane])
    if successors > ring.lanes.shape[0]:
        for lane in range(ring.lanes.shape[0]):
            staged.kept[lane] = ring.lanes[lane, LANE_LAST]


@inlined
def in_whole_words(table: Table) -> bool:
    """Say whether observations are arrays that are stored whole and without padding."""
    numbers, stacks = unpack(Form, table[FORM]).numbers, unpack(Records, table[STACKS])
    words = unpack(Records, table[FRAMES]).records.shape[1]
    return stacks.records.shape[1] == 0 and 8 * words == numbers[OBSERVATION_BYTES]


@inlined
def lasting_slot(lane: int, slot: int, ring: Ring) -> int:
    """Return where a lane's last row is if its episode goes on and a row for every lane leaves it there, else -1.

    The first of these rows goes to `slot`.
    """
    ago = ring.counters[TOTAL] - ring.lanes[lane, LANE_LAST] + 1
    last = -1 if ago + ring.lanes.shape[0] > ring.rows.shape[0] else last_slot(lane, slot, ring)
    return -1 if last < 0 or ring.rows[last, FLAGS] & ENDED else last


@inlined
def last_successor(lane: int, last: int, staged: Staged, ring: Ring, frames: Records) -> NDArray[np.uint64]:
    """Return the successor of a lane's last row, which is in slot `last`: in the cache if it is kept."""
    if staged.kept[lane] == ring.lanes[lane, LANE_LAST]:
        return staged.observations[2 * ring.lanes.shape[0] + lane]
    return frames.records[ring.rows[last, NEXT_OBSERVATION]]


@kernel
def stage_changes(arguments: int, table: Table) -> bool:
    """Stage the observations of lanes that do not continue from their last successor, and mark all others.

    An observation is nearly always the successor of the step before: then it is compared where it lies and not copied.
    All but the successors must be staged already, and all must be added at once. Says if all are in the usual form and
    finite.
    """
    staged, form, places = unpack(Staged, table[STAGED]), unpack(Form, table[FORM]), unpack(ObjectPlaces, table[PLACES])
    ring, frames = unpack(Ring, table[RING]), unpack(Records, table[FRAMES])
    numbers, lanes, words = form.numbers, form.numbers[LANES], frames.records.shape[1]
    item = load_int64(arguments + ITEMS + GIVEN_OBSERVATION)
    if not in_whole_words(table):
        return stage_observations(item, np.int64(0), table)
    address, stride = rows_of(item, lanes, numbers[OBSERVATION_DTYPE], form.observation_shape, places.known)
    if address == 0:
        return False
    finite, slot = True, ring.counters[TOTAL] % ring.rows.shape[0]
    for lane in range(lanes):
        place = address + lane * stride
        last = lasting_slot(lane, slot, ring)
        if last >= 0 and same_record(last_successor(lane, last, staged, ring, frames), words_at(place, words)):
            staged.flags[lane] |= CONTINUES
        else:
            copy_bytes(staged.observations, lane, place, numbers[OBSERVATION_BYTES])
            finite &= is_finite(staged.observations[lane], form)
    return finite
