"""One call adds transitions to the store and the graph, and computes their keys."""

# In compiled code Python's numbers and numpy's are one and the same.
# mypy: disable-error-code="no-any-return,arg-type,assignment,return-value"

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from backsweep.encoding.random_projection_kernels import multiplied_together, project_bytes, project_float_places
from backsweep.graph.rows_kernels import add_rows as add_rows_to_graph
from backsweep.jit.array_table import Int16Cubes, Int32Matrix, Int64Matrix, Table, borrow, unpack, viewed
from backsweep.jit.compilation import inlined, kernel
from backsweep.jit.objects_kernels import table_in
from backsweep.jit.streaming import end_streams
from backsweep.store.argument_form_kernels import (
    KEY_KIND,
    NUMBERS_STAGED,
    SOME_ENDED,
    TAKES_ENDS,
    Form,
    note_added,
    stage_arguments,
    stage_changes,
    stage_step,
    stage_successors,
)
from backsweep.store.distinct_kernels import Records, are_streamed
from backsweep.store.ring_kernels import CLEARED, FORM, FRAMES, GRAPH, KEYS, RING, STACKS, STAGED, TOTAL, Ring, Staged
from backsweep.store.store_kernels import add_hashed_rows, hash_successors, write_new

# How an observation becomes a key.
NO_GRAPH = 0
KEY_OF_BYTES = 1  # random projection of bytes
KEY_OF_NUMBER = 2  # a discrete state is its own key
KEY_OF_FLOAT32 = 3  # random projection of floats
KEY_OF_FLOAT64 = 4
# What `add_arguments` returns, in addition to the bits of `stage_arguments`.
ADDED = 8
OUT_OF_RANGE = 16  # added, and numbers were clipped for their keys
ADDED_AS_USUAL = NUMBERS_STAGED | ADDED


class Keys(NamedTuple):
    """How keys are computed."""

    matrix: Int32Matrix
    """The matrix of the random projection."""
    planes: Int16Cubes
    """The same matrix, arranged for bytes."""
    keys: Int64Matrix
    """Scratch: the keys of the observations that a call adds."""


@kernel
def add_staged(key: int, table: Table) -> int:
    """Add the staged transitions; return the number of new observations, or -1 - new if numbers were out of range.

    `key` selects how keys are computed, or says that there is no graph. The table has the bundles of the store, then
    that of the graph, then `Keys`.
    """
    arrays = borrow(table)
    hash_successors(arrays)
    return add_hashed(key, arrays, unpack(Staged, arrays[STAGED]).codes.shape[0])


@kernel
def add_hashed(key: int, arrays: Table, successors: int) -> int:
    """Do what `add_staged` does where the successors have been hashed and are staged from place `successors` on."""
    counters = unpack(Ring, arrays[RING]).counters
    first = counters[TOTAL]
    new, written, beyond = add_hashed_rows(arrays, successors), 0, False
    if key == KEY_OF_BYTES:
        written = project_new_bytes(new, arrays)
    elif key != NO_GRAPH:
        beyond = find_keys(key, new, arrays)
    write_new(written, arrays)
    if key != NO_GRAPH:
        staging, keys = unpack(Staged, arrays[STAGED]), unpack(Keys, arrays[KEYS]).keys[:new]
        cleared = counters[CLEARED]
        add_rows_to_graph(first, counters[TOTAL], cleared, staging.fresh, keys, arrays[RING], arrays[GRAPH])
    end_streams()
    return -1 - new if beyond else new


@inlined
def project_new_bytes(new: int, arrays: Table) -> int:
    """Find the keys of new observations of bytes; return how many of them were also written to where they are kept.

    Those that are written past the caches are written meanwhile, because memory takes its time to accept them.
    """
    observations, encoder = unpack(Staged, arrays[STAGED]).observations, unpack(Keys, arrays[KEYS])
    frames, stacks = unpack(Records, arrays[FRAMES]), unpack(Records, arrays[STACKS])
    fresh, keys, records = unpack(Staged, arrays[STAGED]).fresh, encoder.keys[:new], frames.records
    as_it_is = 8 * records.shape[1] == encoder.matrix.shape[1] and stacks.records.shape[1] == 0
    written = multiplied_together(new) if as_it_is and are_streamed(frames) else 0
    copies = viewed(records if written > 0 else records[:0], np.uint8)
    keys[:] = 0
    project_bytes(viewed(observations, np.uint8), fresh, encoder.matrix, encoder.planes, keys, copies)
    return written


@inlined
def find_keys(key: int, new: int, arrays: Table) -> bool:
    """Find the keys of new observations that are numbers; return whether any was out of range."""
    staging, encoder = unpack(Staged, arrays[STAGED]), unpack(Keys, arrays[KEYS])
    observations, fresh, keys = staging.observations, staging.fresh, encoder.keys[:new]
    keys[:] = 0
    if key == KEY_OF_NUMBER:
        for i in range(new):
            keys[i, 0] = np.int64(observations[fresh[i, 0], 0])
        return False
    if key == KEY_OF_FLOAT32:
        return project_float_places(viewed(observations, np.float32), fresh, encoder.matrix, keys)
    return project_float_places(viewed(observations, np.float64), fresh, encoder.matrix, keys)


@kernel
def add_arguments(arguments: int, table: int) -> int:
    """Stage the arguments in a tuple at the address `arguments`, and add them if all are in the usual form.

    The last item of the tuple is an array that the rows' serial numbers are written to.
    If a step ends an episode, nothing is added unless the form takes ends. Returns as bits what was done. `table` is
    the address of an array object: after its bundles for `add_staged` come those for `stage_arguments`.
    """
    arrays = table_in(table)
    numbers = unpack(Form, arrays[FORM]).numbers
    done = stage_step(arguments, arrays)
    usual = done & NUMBERS_STAGED and (done & SOME_ENDED == 0 or numbers[TAKES_ENDS])
    # Observations are compared with the successors of the last call, which those of this call then overwrite.
    if usual and stage_changes(arguments, arrays):
        successors = stage_successors(arguments, arrays)
        if successors > 0:
            beyond = add_hashed(numbers[KEY_KIND], arrays, successors) < 0
            note_added(arguments, successors, arrays)
            return done | ADDED | (OUT_OF_RANGE if beyond else 0)
    return stage_arguments(arguments, arrays)
