"""Folders that somebody made up, with good checksums: refused with a clear error, or as good as any."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from numpy.typing import NDArray

from backsweep import GraphValues, Replay, Topological
from backsweep.graph.graph_check import KEYS_COMPARED
from backsweep.graph.graph_kernels import COUNT, E_COUNT, E_SIZE, KEY, SOURCE, TARGET, rebuild_tables
from backsweep.planning.model_kernels import PAIR, SUCCESSOR, rebuild_arc_table
from backsweep.snapshot import SnapshotError
from backsweep.snapshot.contents import ContentsError
from backsweep.sweep.sweep_kernels import EXPANSIONS, RESTARTS, SWEEP
from crafting import Arrays, crafted, drive, good_save
from twins.contents import need_list


@pytest.fixture(scope="module")
def save(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("good")
    good_save(folder, "bytes")
    return folder


def number(name: str, place: Any, value: Any) -> Callable[[Arrays, dict[str, Any]], None]:
    def change(arrays: Arrays, metadata: dict[str, Any]) -> None:
        arrays[name] = arrays[name].copy()
        arrays[name][place] = value

    return change


def setting(*place: Any, value: Any) -> Callable[[Arrays, dict[str, Any]], None]:
    def change(arrays: Arrays, metadata: dict[str, Any]) -> None:
        inner: Any = metadata
        for key in place[:-1]:
            inner = inner[key]
        inner[place[-1]] = value

    return change


def without(name: str) -> Callable[[Arrays, dict[str, Any]], None]:
    return lambda arrays, metadata: metadata.pop(name) and None


def an_edge_with_a_row_too_many(arrays: Arrays, metadata: dict[str, Any]) -> None:
    """A free edge makes up for it, so that all rows on edges still add up to those that are there."""
    edges = arrays["graph/edges"] = arrays["graph/edges"].copy()
    roomy = np.flatnonzero((edges[:, E_COUNT] > 0) & (edges[:, E_COUNT] < edges[:, E_SIZE]))[0]
    free = np.flatnonzero(edges[:, E_COUNT] == 0)[0]
    edges[roomy, E_COUNT] += 1
    edges[free, E_COUNT] -= 1


PRIORITIES = "sampler/part1/priorities"
COUNTERS = "sampler/part0/sweep_counters"
CASES = {
    "an edge with a row too many": (an_edge_with_a_row_too_many, "its graph"),
    "an observation beyond the end": (number("store/rows", (0, 4), 10**6), "its store"),
    "a row that follows itself": (number("store/rows", (0, 1), 0), "its store"),
    "an episode beyond the end": (number("store/rows", (3, 2), 59), "its store"),
    "a free list in a circle": (number("store/record_counters", 1, 1), "its store"),
    "more rows than there are": (number("store/counters", 1, 2**40), "number of live rows"),
    "an edge beyond the end": (number("graph/graph_rows", (0, 0), 2**30), "its graph"),
    "a block beyond the pool": (number("graph/edges", (0, 3), 2**30), "its graph"),
    "a block in another": (number("graph/vertices", (1, 2), 0), "its graph"),
    "a terminal vertex beyond the end": (number("graph/terminals", 0, 2**30), "its graph"),
    "a pair beyond the end": (number("planner/rows", (0, 0), 2**30), "its planner"),
    "an arc that follows itself": (number("planner/arcs", (0, 3), 1), "its planner"),
    "a queue beyond the end": (number("sampler/part0/sweep_queue", (0, 0), 2**40), "vertices in the queue"),
    "a number of sweeps that overflows": (number(COUNTERS, RESTARTS, 2**63 - 1), "numbers of sweeps"),
    "a negative number of expansions": (number(COUNTERS, EXPANSIONS, -1), "numbers of sweeps"),
    "a window beyond the end": (number("sampler/part0/window", 0, 2**40), "rows in the window"),
    "a priority that is not a number": (number(PRIORITIES, 3, np.nan), "positive number"),
    "a priority of infinity": (number(PRIORITIES, 3, np.inf), "positive number"),
    "a priority of zero": (number(PRIORITIES, 3, 0.0), "positive number"),
    "a negative priority": (number(PRIORITIES, 3, -1.0), "positive number"),
    "an infinite reward": (number("store/values", (0, 0), np.inf), "its store"),
    "an action beyond the space": (number("store/actions", (0, 0), 99), "action must lie within its space"),
    "a generator that is none": (setting("sampler_state", "generator", value={"state": 3}), "its sampler"),
    "a large observation": (setting("observation_space", "shape", value=[10**13]), "does not fit the array"),
    "a large window": (setting("sampler", "parts", 0, 1, "shuffle", value=10**13), "shuffle is"),
    "a large matrix": (setting("encoder", "dim", value=10**9), "dim does not fit"),
    "another shape of the same size": (setting("observation_space", "dtype", value="float64"), "fit"),
    "no capacity": (without("capacity"), "'capacity' is missing"),
    "no sampler": (without("sampler"), "'sampler' is missing"),
    "no word about the graph": (without("has_graph"), "'has_graph' is missing"),
}


@pytest.mark.parametrize("case", CASES)
def test_what_cannot_have_come_about_is_refused(case: str, save: Path, tmp_path: Path) -> None:
    change, why = CASES[case]
    crafted(save, tmp_path / "crafted", change)
    with pytest.raises(SnapshotError, match=why):
        Replay.load(tmp_path / "crafted")


def test_another_observation_space_of_the_same_size_is_noticed(save: Path, tmp_path: Path) -> None:
    def change(arrays: Arrays, metadata: dict[str, Any]) -> None:
        # Eight bytes may be two floats, and the projection's matrix can be cut to size as well.
        metadata["observation_space"].update(dtype="float32", shape=[2], low="-inf", high="inf")
        arrays["encoder/matrix"] = np.ascontiguousarray(arrays["encoder/matrix"][:, :2])

    crafted(save, tmp_path / "crafted", change)
    with pytest.raises(SnapshotError, match="keys of vertices"):
        Replay.load(tmp_path / "crafted")


@pytest.mark.parametrize("kind", ["bytes", "floats", "discrete", "stacks"])
def test_what_is_not_changed_loads(kind: str, tmp_path: Path) -> None:
    for rows in (1, 20, 60, 61, 150, 300):
        good_save(tmp_path / f"{rows}", kind, rows)
        replay = Replay.load(tmp_path / f"{rows}")
        drive(replay, kind, 80, seed=1)
        replay.clear()
        drive(replay, kind, 20, seed=2)
        replay.save(tmp_path / f"{rows}")
        drive(Replay.load(tmp_path / f"{rows}"), kind, 80, seed=3)


def test_random_changes_end_nothing(tmp_path: Path) -> None:
    """In a process of its own, which would show that memory was written to out of bounds, or that it never ends."""
    script = Path(__file__).parent / "crafted_rounds.py"
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path), "60", "0"],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**os.environ, "PYTHONFAULTHANDLER": "1"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    refused, used = (int(word) for word in done.stdout.split()[-2:])
    assert refused > used > 20


def test_a_sweep_of_any_number_goes_on_and_can_be_saved_again(save: Path, tmp_path: Path) -> None:
    for before in (2**31 - 2, 2**32 - 2, 2**40):
        crafted(save, tmp_path / "late", number(COUNTERS, SWEEP, before))
        replay = Replay.load(tmp_path / "late")
        drive(replay, "bytes", 150, seed=1)
        replay.save(tmp_path / "later")
        drive(Replay.load(tmp_path / "later"), "bytes", 50, seed=2)


def links(*numbers: int) -> NDArray[np.int64]:
    return np.array(numbers)


def test_linked_lists_are_followed_to_their_end() -> None:
    everyone = np.ones(3, np.bool_)
    need_list(2, links(0, 3, 1), everyone, "it")
    need_list(0, links(5, 5, 5), ~everyone, "it")
    need_list(3, links(9, 9, 0), np.array([False, False, True]), "it")
    for head, following, members in (
        (2, links(0, 3, 2), everyone),  # a circle
        (2, links(0, 0, 1), everyone),  # ends too early
        (7, links(0, 3, 1), everyone),  # beyond the end
        (-1, links(0, 3, 1), everyone),
        (1, links(2, 0, 0), np.array([True, False, False])),  # a stranger
        (1, links(0, 0, 0), ~everyone),
    ):
        with pytest.raises(ContentsError, match=r"^it "):
            need_list(head, following, members, "it")


DISTINCT = 1500
"""States enough for the square of their number to be more than the work that loading may do."""


def long_walk() -> Replay:
    """Return a replay in which no state comes twice."""
    space = gym.spaces.Box(-1e6, 1e6, (1,), np.float32)
    replay = Replay(space, gym.spaces.Discrete(3), DISTINCT, Topological(), values=GraphValues())
    for step in range(DISTINCT):
        replay.add(np.array([step], np.float32), step % 3, 0.0, np.array([step + 1], np.float32), False, False)
    replay.renew_values(lambda seen: np.zeros((len(seen), 3)))
    return replay


def one_hash(arrays: Arrays, metadata: dict[str, Any]) -> None:
    hashes = arrays["store/frame_hashes"] = arrays["store/frame_hashes"].copy()
    hashes[arrays["store/frame_uses"] > 0] = 7


def one_key(arrays: Arrays, metadata: dict[str, Any]) -> None:
    """Leave only those keys as they are that are compared with observations."""
    vertices = arrays["graph/vertices"] = arrays["graph/vertices"].copy()
    others = np.ones(len(vertices), np.bool_)
    others[:: DISTINCT // KEYS_COMPARED] = False
    vertices[others, KEY:] = 7


@pytest.mark.parametrize(("change", "why"), [(one_hash, "the same hash"), (one_key, "too many of its vertices")])
def test_equal_hashes_do_not_make_loading_quadratic(change: Any, why: str, tmp_path: Path) -> None:
    long_walk().save(tmp_path / "good")
    Replay.load(tmp_path / "good")
    crafted(tmp_path / "good", tmp_path / "crafted", change)
    with pytest.raises(SnapshotError, match=why):
        Replay.load(tmp_path / "crafted")


def test_equal_edges_and_arcs_do_not_make_loading_quadratic() -> None:
    replay = long_walk()
    graph, planner = replay._graph, replay._planner
    assert graph is not None
    assert planner is not None
    for made_up in (False, True):
        if made_up:
            graph.edges[:, [SOURCE, TARGET]] = 1
            graph.vertices[1, COUNT] = DISTINCT  # the only edge into a vertex is in no table
            planner.model.arcs[:, [PAIR, SUCCESSOR]] = 1
        for table in (graph._vertex_table, graph._edge_table, planner.model.arc_table):
            table[:] = 0
        assert rebuild_tables(graph.addresses) != made_up
        assert rebuild_arc_table(planner.model) != made_up
