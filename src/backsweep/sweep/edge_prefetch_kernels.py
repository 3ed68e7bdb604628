"""Prefetches of what the sweep reads when it follows an edge. They change no result."""

# In compiled code Python's numbers and numpy's are one and the same.
# mypy: disable-error-code="no-any-return,arg-type,assignment,return-value"

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from backsweep.graph.graph_kernels import E_START, SOURCE, TARGET, GraphArrays
from backsweep.jit.compilation import inlined
from backsweep.jit.prefetching import prefetch

GUESSED_AHEAD = 4
"""How many steps on."""


@inlined
def prefetch_source(edge: int, graph: GraphArrays, visited: NDArray[np.int64]) -> None:
    """Prefetch what following an edge reads."""
    source = graph.edges[edge, SOURCE]
    prefetch(graph.vertices, source)
    prefetch(visited, source)
    prefetch(graph.pool, graph.edges[edge, E_START])


@inlined
def prefetch_guessed(
    edge: int, slot: int, rows: NDArray[np.int32], graph: GraphArrays, visited: NDArray[np.int64]
) -> None:
    """Prefetch what will be read some steps on if no state comes twice: a queue of few vertices does not say it.

    The steps of an episode then lie at equal distances, in every array. A wrong guess costs little.
    """
    edges, source = graph.edges, np.int64(graph.edges[edge, SOURCE])
    ahead = GUESSED_AHEAD * (source - np.int64(edges[edge, TARGET]))
    vertex, later, row = source + ahead, edge + ahead, slot + ahead
    if min(vertex, later, row) < 0 or vertex >= graph.vertices.shape[0] or max(later, row) >= rows.shape[0]:
        return
    prefetch(graph.vertices, vertex)
    prefetch(visited, vertex)
    prefetch(edges, later)
    prefetch(graph.pool, edges[edge, E_START] + 2 * ahead)  # a vertex and an edge take one place each
    prefetch(rows, row)
