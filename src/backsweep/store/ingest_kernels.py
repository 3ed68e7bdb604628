"""One call adds the staged transitions to the store and the graph, and computes their keys."""

# In compiled code Python's numbers and numpy's are one and the same.
# mypy: disable-error-code="no-any-return,arg-type,assignment,return-value"

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from backsweep.encoding.random_projection_kernels import project_bytes, project_float_places
from backsweep.graph.rows_kernels import add_rows as add_rows_to_graph
from backsweep.jit.array_table import Float64Matrix, Row, Table, unpack
from backsweep.jit.compilation import kernel
from backsweep.store.store_kernels import CLEARED, RING, STAGED, TOTAL, Ring, Staged, add_rows

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
def add_staged(key: int, store: Table, graph: Row, projection: Row) -> int:
    """Add the staged transitions; return the number of new observations, or -1 - new if numbers were out of range.

    `key` selects how keys are computed, or says that there is no graph.
    """
    counters = unpack(Ring, store[RING]).counters
    first = counters[TOTAL]
    new = add_rows(store)
    if key == NO_GRAPH:
        return new
    staging = unpack(Staged, store[STAGED])
    observations, fresh = staging.observations, staging.fresh
    beyond = False
    if key == KEY_OF_NUMBER:
        keys = np.zeros((new, 1), np.int64)
        for i in range(new):
            keys[i, 0] = np.int64(observations[fresh[i, 0], 0])
    else:
        matrix = unpack(Projection, projection).matrix
        keys = np.zeros((new, matrix.shape[0]), np.int64)
        if key == KEY_OF_BYTES:
            project_bytes(observations.view(np.uint8), fresh, matrix, keys)
        elif key == KEY_OF_FLOAT32:
            beyond = project_float_places(observations.view(np.float32), fresh, matrix, keys)
        else:
            beyond = project_float_places(observations.view(np.float64), fresh, matrix, keys)
    add_rows_to_graph(first, counters[TOTAL], counters[CLEARED], fresh, keys, store[RING], graph)
    return -1 - new if beyond else new
