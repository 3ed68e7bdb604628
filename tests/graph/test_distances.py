"""Distances against the edges, compared with a search that takes one vertex at a time."""

from __future__ import annotations

from collections import deque

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from backsweep.graph.distances import reverse_distances


def searched(count: int, edges: list[tuple[int, int]], starts: list[int]) -> list[int]:
    distance = [-1] * count
    waiting = deque(sorted(set(starts)))
    for start in waiting:
        distance[start] = 0
    while waiting:
        vertex = waiting.popleft()
        for source, target in edges:
            if target == vertex and distance[source] < 0:
                distance[source] = distance[vertex] + 1
                waiting.append(source)
    return distance


@st.composite
def graphs(draw: st.DrawFn) -> tuple[int, list[tuple[int, int]], list[int]]:
    count = draw(st.integers(1, 12))
    vertex = st.integers(0, count - 1)
    return count, draw(st.lists(st.tuples(vertex, vertex), max_size=40)), draw(st.lists(vertex, max_size=4))


@given(graphs())
def test_distances_are_those_of_a_plain_search(graph: tuple[int, list[tuple[int, int]], list[int]]) -> None:
    count, edges, starts = graph
    source, target = np.array(edges, np.int64).reshape(-1, 2).T
    found = reverse_distances(count, source, target, np.array(starts, np.int64))
    assert found.tolist() == searched(count, edges, starts)


def test_a_long_chain() -> None:
    states = np.arange(5_000)
    found = reverse_distances(5_000, states[:-1], states[1:], states[-1:])
    assert found.tolist() == list(range(4_999, -1, -1))
