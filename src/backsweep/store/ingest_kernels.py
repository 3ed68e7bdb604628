"""One call adds the staged transitions to the store and the graph, and computes their keys."""

# In compiled code Python's numbers and numpy's are one and the same.
# mypy: disable-error-code="no-any-return,arg-type,assignment,return-value"

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from backsweep.encoding.random_projection_kernels import project_bytes, project_float_places
from backsweep.graph.rows_kernels import add_rows as add_rows_to_graph
from backsweep.jit.array_table import Float64Matrix, Table, borrow, unpack
from backsweep.jit.compilation import kernel
from backsweep.store.store_kernels import CLEARED, RING, STAGED, STORE_BUNDLES, TOTAL, Ring, Staged, add_rows

# Bundles after those of the store.
GRAPH = STORE_BUNDLES
PROJECTION = GRAPH + 1
REPLAY_BUNDLES = PROJECTION + 1
# How an observation becomes a key.
NO_GRAPH = 0
KEY_OF_BYTES = 1  # random projection of bytes
KEY_OF_NUMBER = 2  # a discrete state is its own key
KEY_OF_FLOAT32 = 3  # random projection of floats
KEY_OF_FLOAT64 = 4


class Projection(NamedTuple):
    """The matrix of the random projection."""

    matrix: Float64Matrix


@kernel
def add_staged(key: int, table: Table) -> int:
    """Add the staged transitions; return the number of new observations, or -1 - new if numbers were out of range.

    `key` selects how keys are computed, or says that there is no graph. The table has the bundles of the store, then
    that of the graph, then `Projection`.
    """
    arrays = borrow(table)
    counters = unpack(Ring, arrays[RING]).counters
    first = counters[TOTAL]
    new = add_rows(arrays)
    if key == NO_GRAPH:
        return new
    staging = unpack(Staged, arrays[STAGED])
    observations, fresh = staging.observations, staging.fresh
    beyond = False
    if key == KEY_OF_NUMBER:
        keys = np.zeros((new, 1), np.int64)
        for i in range(new):
            keys[i, 0] = np.int64(observations[fresh[i, 0], 0])
    else:
        matrix = unpack(Projection, arrays[PROJECTION]).matrix
        keys = np.zeros((new, matrix.shape[0]), np.int64)
        if key == KEY_OF_BYTES:
            project_bytes(observations.view(np.uint8), fresh, matrix, keys)
        elif key == KEY_OF_FLOAT32:
            beyond = project_float_places(observations.view(np.float32), fresh, matrix, keys)
        else:
            beyond = project_float_places(observations.view(np.float64), fresh, matrix, keys)
    add_rows_to_graph(first, counters[TOTAL], counters[CLEARED], fresh, keys, arrays[RING], arrays[GRAPH])
    return -1 - new if beyond else new
