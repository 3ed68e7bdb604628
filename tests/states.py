"""The whole state of a replay, for tests that nothing changed or that everything came back."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from backsweep import Batch, Replay
from backsweep.graph.graph import Graph
from backsweep.graph.graph_kernels import COUNT, E_COUNT, E_HEAD, E_SIZE, E_START, START


def state_of(replay: Replay) -> dict[str, Any]:
    """Return a copy of everything that a replay holds."""
    sampler = replay._sampler.state()
    parts = {
        "store": replay._store.arrays(),
        "graph": {} if replay._graph is None else replay._graph.arrays(),
        "encoder": replay._encoder.arrays(),
        "sampler": sampler.arrays,
    }
    state = {f"{part}/{name}": array.copy() for part, arrays in parts.items() for name, array in arrays.items()}
    if replay._graph is not None:
        state["graph/pool"] = _used_places(replay._graph, state["graph/pool"])
    state["values"] = copy.deepcopy(sampler.values)
    state["ended"] = replay._autoreset.ended.copy()
    state["late"] = replay._stale_updates
    return state


def _used_places(graph: Graph, pool: np.ndarray) -> np.ndarray:
    """Blank out the places of the pool that hold nothing: what was there before does not matter, nor is it saved."""
    used = np.zeros(len(pool), np.bool_)
    for vertex in graph.live_vertices().tolist():
        start, count = graph.vertices[vertex, [START, COUNT]]
        used[start : start + count] = True
    for edge in graph.live_edges().tolist():
        start, size, head, count = graph.edges[edge, [E_START, E_SIZE, E_HEAD, E_COUNT]].astype(np.int64)
        used[start + ((head + np.arange(count)) & (size - 1))] = True
    return np.where(used, pool, -1)


def assert_same_state(found: dict[str, Any], expected: dict[str, Any]) -> None:
    """Compare two states exactly."""
    assert set(found) == set(expected)
    for name, value in expected.items():
        if isinstance(value, np.ndarray):
            np.testing.assert_array_equal(found[name], value, err_msg=name)
            assert found[name].dtype == value.dtype, name
        else:
            assert found[name] == value, name


def assert_same_batch(found: Batch, expected: Batch) -> None:
    """Compare two batches exactly, in every field."""
    for name in Batch.__dataclass_fields__:
        _assert_same(getattr(found, name), getattr(expected, name), name)


def _assert_same(found: Any, expected: Any, name: str) -> None:
    if isinstance(expected, dict):
        assert list(found) == list(expected)
        for key in expected:
            _assert_same(found[key], expected[key], f"{name}[{key!r}]")
    elif isinstance(expected, tuple):
        for index, part in enumerate(expected):
            _assert_same(found[index], part, f"{name}[{index}]")
    else:
        np.testing.assert_array_equal(found, expected, err_msg=name)
