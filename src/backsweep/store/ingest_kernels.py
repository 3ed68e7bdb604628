"""One call takes what is staged into the store and lets the graph follow: keys included, without coming back to Python.

store    the arguments of store.add_rows, as rows of a table of addresses
graph    those of graph.add_rows
matrix   the matrix of the projection
"""

# In compiled code Python's numbers and numpy's are one and the same.
# mypy: disable-error-code="no-any-return,arg-type,assignment,return-value"

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from backsweep.encoding.random_projection_kernels import project_bytes
from backsweep.graph.graph_kernels import add_rows as add_rows_to_graph
from backsweep.jit.array_table import (
    Entry,
    bool_vector,
    byte_matrix,
    byte_vector,
    bytes_of_words,
    float_matrix,
    float_vector,
    int32_matrix,
    int32_vector,
    int64_matrix,
    int64_vector,
    word_matrix,
    word_vector,
)
from backsweep.jit.compilation import kernel
from backsweep.store.store_kernels import CLEARED, TOTAL, add_rows

# How an observation becomes a key.
NO_GRAPH = 0
KEY_OF_BYTES = 1  # random projection of bytes
KEY_OF_NUMBER = 2  # a discrete state is its own key

# Arrays of `store`, in the order of store.add_rows.
STORE_STAGED = 0
STORE_STAGED_ACTIONS = 1
STORE_STAGED_REWARDS = 2
STORE_STAGED_FLAGS = 3
STORE_FRESH = 4
STORE_ROWS = 5
STORE_VALUES = 6
STORE_ACTIONS = 7
STORE_EPISODES = 8
STORE_LIVE_EPISODES = 9
STORE_COUNTERS = 11
STORE_FRAMES = 12
STORE_WEIGHTS = 22
# Arrays of `graph`, in the order of graph.add_rows.
GRAPH_VERTICES = 2
GRAPH_REWARD_SUMS = 3
GRAPH_EDGES = 5
GRAPH_POOL = 7
GRAPH_ROWS = 8
GRAPH_TERMINALS = 10
GRAPH_COUNTERS = 12

WORD_BYTES = 8


@kernel
def add_to_store(store: Entry) -> int:
    """Take in what is staged; return how many observations were new."""
    return add_rows(
        word_matrix(store, 0),
        byte_matrix(store, 1),
        float_vector(store, 2),
        byte_vector(store, 3),
        int32_matrix(store, 4),
        int32_matrix(store, 5),
        float_matrix(store, 6),
        byte_matrix(store, 7),
        int64_matrix(store, 8),
        int32_vector(store, 9),
        int64_matrix(store, 10),
        int64_vector(store, 11),
        word_matrix(store, 12),
        int32_vector(store, 13),
        word_vector(store, 14),
        int32_vector(store, 15),
        bool_vector(store, 16),
        word_matrix(store, 17),
        int32_vector(store, 18),
        word_vector(store, 19),
        int32_vector(store, 20),
        bool_vector(store, 21),
        word_vector(store, 22),
        int64_vector(store, 23),
    )


@kernel
def add_to_graph(first: int, last: int, keys: NDArray[np.int64], store: Entry, graph: Entry) -> None:
    """Let the graph follow the store."""
    add_rows_to_graph(
        first,
        last,
        int64_vector(store, STORE_COUNTERS)[CLEARED],
        int32_matrix(store, STORE_FRESH),
        keys,
        int32_matrix(graph, 0),
        float_matrix(graph, 1),
        int64_matrix(graph, 2),
        float_vector(graph, 3),
        int32_vector(graph, 4),
        int32_matrix(graph, 5),
        int32_vector(graph, 6),
        int32_vector(graph, 7),
        int32_matrix(graph, 8),
        float_matrix(graph, 9),
        int32_vector(graph, 10),
        int32_vector(graph, 11),
        int64_vector(graph, 12),
    )


@kernel
def add_staged(key: int, store: Entry, graph: Entry, matrix: Entry) -> int:
    """Add what is staged to a replay; return how many observations were new.

    `key` says how an observation becomes a key, or that there is no graph.
    """
    counters = int64_vector(store, STORE_COUNTERS)
    first = counters[TOTAL]
    new = add_to_store(store)
    if key == NO_GRAPH:
        return new
    fresh = int32_matrix(store, STORE_FRESH)
    if key == KEY_OF_BYTES:
        columns = float_matrix(matrix, 0)
        keys = np.zeros((new, columns.shape[0]), np.int64)
        project_bytes(bytes_of_words(store, STORE_STAGED), fresh, columns, keys)
    else:
        keys = np.zeros((new, 1), np.int64)
        words = word_matrix(store, STORE_STAGED)
        for i in range(new):
            keys[i, 0] = np.int64(words[fresh[i, 0], 0])
    add_to_graph(first, counters[TOTAL], keys, store, graph)
    return new
