"""The check of loaded components runs on a second thread, in order, and never before its arrays are there."""

from __future__ import annotations

import _thread
import contextlib
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from numpy.typing import NDArray
from snapshot_helpers import tiny_chunks

from backsweep import Replay
from backsweep.graph.graph_kernels import E_COUNT, TARGET, rebuild_tables
from backsweep.saving import KIND, VERSION
from backsweep.snapshot import SnapshotError, read_snapshot, write_snapshot
from backsweep.snapshot.component_checks import ComponentChecks
from backsweep.snapshot.contents import ContentsError
from backsweep.snapshot.saved_component import CheckStep, SavedComponent
from crafting import crafted, filled_replay, good_save

ARRAYS = {name: np.arange(40.0) for name in ("a/size", "b/size", "a/links", "b/links", "a/numbers")}


class Component(SavedComponent):
    """A component whose steps note that they ran, and what they saw."""

    def __init__(self, name: str, notes: list[tuple[str, float]], wrong: str = "", **needs: tuple[str, ...]) -> None:
        self._name, self._notes, self._wrong, self._needs = name, notes, wrong, needs

    def all_arrays(self) -> dict[str, tuple[NDArray[Any], int]]:
        return {}

    def _step(self, step: str, needs: tuple[str, ...]) -> CheckStep:
        def run(loaded: Mapping[str, NDArray[Any]]) -> None:
            self._notes.append((f"{self._name}/{step}", sum(float(loaded[name].sum()) for name in needs)))
            if step == self._wrong:
                raise ContentsError(f"{step} is wrong")

        return CheckStep(needs, run)

    def checks(self) -> tuple[CheckStep, ...]:
        return tuple(self._step(step, needs) for step, needs in self._needs.items())


@contextlib.contextmanager
def named(name: str) -> Iterator[None]:
    try:
        yield
    except ContentsError as error:
        raise SnapshotError(name, str(error), "") from error


def components(notes: list[tuple[str, float]], wrong: str = "") -> dict[str, SavedComponent]:
    return {
        "a": Component("a", notes, wrong, sizes=("size",), links=("links",), numbers=("numbers",)),
        "b": Component("b", notes, wrong, sizes=("size",), links=("links",)),
    }


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    """Whatever comes of a check, its thread ends."""
    before, end = _thread._count(), time.monotonic() + 10
    yield
    while _thread._count() > before and time.monotonic() < end:
        time.sleep(0.001)
    assert _thread._count() <= before


def without_threads() -> Any:
    return mock.patch.object(_thread, "start_new_thread", side_effect=RuntimeError("can't start new thread"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Arrays of many chunks in an order of their own."""
    with tiny_chunks():
        names = ["other", *sorted(ARRAYS, reverse=True)]
        write_snapshot(tmp_path, {name: np.arange(40.0) for name in names}, {}, kind="test", version=1)
    return tmp_path


@pytest.mark.parametrize("threads", [True, False])
def test_steps_run_in_order_and_see_whole_arrays(threads: bool, folder: Path) -> None:
    notes: list[tuple[str, float]] = []
    with (
        contextlib.nullcontext() if threads else without_threads(),
        ComponentChecks(components(notes), named) as checks,
    ):
        read_snapshot(folder, kind="test", versions={1}, listener=checks)
        checks.wait_for_sizes()
        assert [name for name, _ in notes[:2]] == ["a/sizes", "b/sizes"]
        checks.wait()
    assert notes == [(name, 780.0) for name in ("a/sizes", "b/sizes", "a/links", "b/links", "a/numbers")]


def test_arrays_are_read_in_the_order_of_the_steps_and_announced_once_they_are_whole(folder: Path) -> None:
    read: list[str] = []

    class Listener:
        order = ("b/links", "a/size")

        def begin(self, arrays: Mapping[str, NDArray[Any]]) -> None:
            self.arrays = arrays

        def arrived(self, name: str) -> None:
            assert (self.arrays[name] == np.arange(40.0)).all()
            read.append(name)

    read_snapshot(folder, kind="test", versions={1}, listener=Listener())
    assert read[:2] == ["b/links", "a/size"]
    assert sorted(read) == sorted([*ARRAYS, "other"])


def test_the_first_error_is_raised_and_nothing_runs_after_it(folder: Path) -> None:
    notes: list[tuple[str, float]] = []
    with ComponentChecks(components(notes, "links"), named) as checks:
        read_snapshot(folder, kind="test", versions={1}, listener=checks)
        with pytest.raises(SnapshotError, match="a: links is wrong"):
            checks.wait()
    assert [name for name, _ in notes] == ["a/sizes", "b/sizes", "a/links"]


def test_leaving_early_ends_the_thread() -> None:
    notes: list[tuple[str, float]] = []
    with ComponentChecks(components(notes), named) as checks:
        checks.begin(ARRAYS)
    assert not notes


def test_a_damaged_file_is_named_even_if_what_came_before_it_is_wrong_too(tmp_path: Path) -> None:
    good_save(tmp_path / "good", "bytes")

    def change(arrays: dict[str, NDArray[Any]], _: dict[str, Any]) -> None:
        arrays["store/rows"] = arrays["store/rows"] - 1

    with tiny_chunks():
        crafted(tmp_path / "good", tmp_path / "crafted", change)
    with pytest.raises(SnapshotError, match="its store: its rows and episodes do not fit together"):
        Replay.load(tmp_path / "crafted")
    path = next((tmp_path / "crafted" / "segments").glob("sampler_part1_priorities.*"))
    path.write_bytes(path.read_bytes()[:-1] + b"\x7f")
    with pytest.raises(SnapshotError, match=r"priorities.*do not match their digest"):
        Replay.load(tmp_path / "crafted")


def test_a_replay_of_many_chunks_loads_without_a_second_thread_too(tmp_path: Path) -> None:
    replay = filled_replay("floats")
    with tiny_chunks(2048, 64):
        replay.save(tmp_path)
    with without_threads():
        alone = Replay.load(tmp_path)
    arrays = read_snapshot(tmp_path, kind=KIND, versions={VERSION}).arrays
    for loaded in (alone, Replay.load(tmp_path)):
        for name, component in loaded.saved_components(True).items():
            for key, array in component.arrays().items():
                assert array.tobytes() == arrays[f"{name}/{key}"].tobytes()
        assert (loaded.sample(16).row == Replay.load(tmp_path).sample(16).row).all()


def test_tables_are_built_from_edges_that_lead_nowhere_without_following_them() -> None:
    for target in (-1, -(2**31), 2**31 - 1):
        graph = filled_replay("bytes")._graph
        assert graph is not None
        graph._vertex_table[:] = 0
        graph._edge_table[:] = 0
        assert rebuild_tables(graph.addresses)
        graph._vertex_table[:] = 0
        graph._edge_table[:] = 0
        graph.edges[np.flatnonzero(graph.edges[:, E_COUNT] > 0)[0], TARGET] = target
        assert not rebuild_tables(graph.addresses)


def test_a_thread_that_dies_at_once_is_not_waited_for(folder: Path) -> None:
    """As one does that finds no memory for its first step."""
    notes: list[tuple[str, float]] = []
    dead = mock.patch.object(_thread, "start_new_thread", return_value=1)
    with dead, ComponentChecks(components(notes), named) as checks:
        read_snapshot(folder, kind="test", versions={1}, listener=checks)
        checks.wait_for_sizes()
        checks.wait()
    assert len(notes) == 5
