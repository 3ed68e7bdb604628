"""One call adds transitions to the store and the graph, and computes their keys."""

# In compiled code Python's numbers and numpy's are one and the same.
# mypy: disable-error-code="no-any-return,arg-type,assignment,return-value"

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from backsweep.encoding.random_projection_kernels import project_bytes, project_float_places
from backsweep.graph.rows_kernels import add_rows as add_rows_to_graph
from backsweep.jit.array_table import Int16Cubes, Int32Matrix, Int64Matrix, Table, borrow, unpack, viewed
from backsweep.jit.compilation import kernel
from backsweep.jit.objects_kernels import table_in
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
from backsweep.store.store_kernels import (
    CLEARED,
    FORM,
    GRAPH,
    KEYS,
    RING,
    STAGED,
    TOTAL,
    Ring,
    Staged,
    add_hashed_rows,
    hash_successors,
)

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
    new = add_hashed_rows(arrays, successors)
    if key == NO_GRAPH:
        return new
    staging, encoder = unpack(Staged, arrays[STAGED]), unpack(Keys, arrays[KEYS])
    observations, fresh = staging.observations, staging.fresh
    matrix, keys = encoder.matrix, encoder.keys[:new]
    beyond = False
    for i in range(new):
        for k in range(keys.shape[1]):
            keys[i, k] = 0
    if key == KEY_OF_NUMBER:
        for i in range(new):
            keys[i, 0] = np.int64(observations[fresh[i, 0], 0])
    elif key == KEY_OF_BYTES:
        project_bytes(viewed(observations, np.uint8), fresh, matrix, encoder.planes, keys)
    elif key == KEY_OF_FLOAT32:
        beyond = project_float_places(viewed(observations, np.float32), fresh, matrix, keys)
    else:
        beyond = project_float_places(viewed(observations, np.float64), fresh, matrix, keys)
    add_rows_to_graph(first, counters[TOTAL], counters[CLEARED], fresh, keys, arrays[RING], arrays[GRAPH])
    return -1 - new if beyond else new


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
