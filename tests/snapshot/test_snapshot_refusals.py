"""Saves that are refused or fail, and leave everything as it was."""

from __future__ import annotations

import contextlib
import errno
import os
import pickle
import resource
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import numpy as np
import pytest
from snapshot_helpers import assert_same, contents, listing, load, referenced, save

from backsweep.snapshot import SnapshotError, files

OLD = {"big": np.zeros((3, 1 << 20), np.uint8), "small": np.arange(5)}
NEW = {"big": np.ones((3, 1 << 20), np.uint8), "small": np.arange(9)}


class Text(str):
    """Looks like a string, and would not come back as what it is."""


LOOP: list[Any] = []
LOOP.append(LOOP)


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (float("nan"), ValueError),
        (float("inf"), ValueError),
        (2**9000, ValueError),
        (LOOP, ValueError),
        (np.float64(1.0), TypeError),
        (np.int64(1), TypeError),
        (np.zeros(3), TypeError),
        ((1, 2), TypeError),
        ({1: 2}, TypeError),
        (b"bytes", TypeError),
        ({1, 2}, TypeError),
        (Text("a"), TypeError),
        (1j, TypeError),
        (len, TypeError),
    ],
)
def test_metadata_that_json_cannot_keep_is_refused(tmp_path: Path, value: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match=r"metadata\['a'\]"):
        save(tmp_path / "s", {}, {"a": value})
    assert not (tmp_path / "s").exists()


@pytest.mark.parametrize(
    ("arrays", "error"),
    [
        ({"x": np.array([object()])}, TypeError),
        ({"x": np.array(["text"])}, TypeError),
        ({"x": np.zeros(2, "M8[s]")}, TypeError),
        ({"x": np.zeros(2, "c8")}, TypeError),
        ({"x": np.zeros(2, "V4")}, TypeError),
        ({"x": np.zeros(2, [("a", "f4"), ("b", "O")])}, TypeError),
        ({"x": [1, 2]}, TypeError),
        ({1: np.zeros(2)}, TypeError),
        ({"": np.zeros(2)}, ValueError),
        ({"__metadata__": np.zeros(2)}, ValueError),
        ({"\ud800": np.zeros(2)}, ValueError),
    ],
)
def test_arrays_that_need_pickle_or_have_no_name_are_refused(
    tmp_path: Path, arrays: Any, error: type[Exception]
) -> None:
    with pytest.raises(error):
        save(tmp_path / "s", arrays)
    assert not (tmp_path / "s").exists()


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"kind": ""}, ValueError),
        ({"version": -1}, ValueError),
        ({"version": True}, ValueError),
        ({"dirty": {"absent": np.zeros(5, bool)}}, ValueError),
        ({"dirty": {"small": np.zeros(4, bool)}}, ValueError),
        ({"dirty": {"small": np.zeros(5, int)}}, TypeError),
        ({"dirty": {"small": 5}}, TypeError),
    ],
)
def test_other_bad_arguments_are_refused(tmp_path: Path, options: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match=r"expected|not among"):
        save(tmp_path / "s", OLD, **options)
    assert not (tmp_path / "s").exists()


def stray_file(folder: Path) -> None:
    (folder / "thesis.tex").write_text("years of work")


def stray_segment(folder: Path) -> None:
    (folder / "segments").mkdir()
    (folder / "segments" / "model.safetensors").write_text("weights")


def segments_is_a_file(folder: Path) -> None:
    (folder / "segments").write_text("a list")


def web_manifest(folder: Path) -> None:
    (folder / "manifest.json").write_text('{"name": "web app"}')


def damaged_snapshot(folder: Path) -> None:
    save(folder, OLD)
    path = folder / "manifest.json"
    path.write_text(path.read_text().replace("arrays", "arroys"))


def other_kind(folder: Path) -> None:
    save(folder, OLD, kind="trainer")


def newer_format(folder: Path) -> None:
    (folder / "manifest.json").write_text('{"format":"backsweep-snapshot","format_version":9}')


@pytest.mark.parametrize(
    "fill",
    [stray_file, stray_segment, segments_is_a_file, web_manifest, damaged_snapshot, other_kind, newer_format],
)
def test_a_folder_that_holds_something_else_is_not_touched(tmp_path: Path, fill: Callable[[Path], None]) -> None:
    fill(tmp_path)
    before = contents(tmp_path)
    with pytest.raises(SnapshotError, match=str(tmp_path)):
        save(tmp_path, NEW)
    assert contents(tmp_path) == before


def test_a_file_in_the_folders_place_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "s").write_text("mine")
    with pytest.raises(SnapshotError, match="not a folder"):
        save(tmp_path / "s", NEW)
    with pytest.raises(OSError, match=str(tmp_path)):
        save(tmp_path / "s" / "t", NEW)
    assert (tmp_path / "s").read_text() == "mine"


def assert_old_state_and_tidy(folder: Path) -> None:
    assert_same(load(folder).arrays, OLD)
    assert listing(folder) == referenced(folder)


@pytest.mark.parametrize("fails_at", [1, 2, 3])
def test_a_full_disk_leaves_the_old_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails_at: int) -> None:
    """The disk fills up half-way through the first segment, the second one, or the manifest."""
    save(tmp_path, OLD)
    real, calls = files.write_all, 0

    def full(file: IO[bytes], data: Any) -> None:
        nonlocal calls
        calls += 1
        if calls < fails_at:
            real(file, data)
            return
        file.write(memoryview(data)[: len(data) // 2])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(files, "write_all", full)
    with pytest.raises(OSError, match="No space left on device") as caught:
        save(tmp_path, NEW)
    assert caught.value.errno == errno.ENOSPC
    expected = {1: "big.00000", 2: "packed.00000", 3: "manifest.json"}[fails_at]
    assert Path(caught.value.filename).name.startswith(expected)
    assert_old_state_and_tidy(tmp_path)


def test_a_write_that_the_system_cuts_short_leaves_the_old_state(tmp_path: Path) -> None:
    """The same without any patching: a limit on the size of files that the kernel enforces."""
    save(tmp_path, OLD)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, hard))
    try:
        with pytest.raises(OSError, match="big") as caught:
            save(tmp_path, NEW)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert caught.value.errno == errno.EFBIG
    assert_old_state_and_tidy(tmp_path)


@pytest.mark.parametrize("function", ["fsync", "replace"])
@pytest.mark.parametrize("fails_at", range(1, 7))
def test_a_failing_call_leaves_the_old_state_or_the_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, function: str, fails_at: int
) -> None:
    save(tmp_path, OLD)
    real, calls = getattr(os, function), 0

    def failing(*arguments: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == fails_at:
            raise OSError(errno.EIO, "Input/output error")
        return real(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(os, function, failing)
        failed = fails_at <= {"fsync": 5, "replace": 3}[function]
        with pytest.raises(OSError, match=str(tmp_path)) if failed else contextlib.nullcontext():
            save(tmp_path, NEW)
    assert not [name for name in listing(tmp_path) if name.endswith(".tmp")]
    # Forced are two segments, their folder, the manifest, and fifth the folder: by then the new state is in place.
    committed = not failed or (function == "fsync" and fails_at == 5)
    assert_same(load(tmp_path).arrays, NEW if committed else OLD)
    save(tmp_path, NEW)
    assert_same(load(tmp_path).arrays, NEW)
    assert listing(tmp_path) == referenced(tmp_path)


def test_an_unwritable_folder_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Patched rather than by permissions, since these do not bind the superuser."""
    save(tmp_path, OLD)
    real = open

    def refusing(path: Any, mode: str = "r", *rest: Any, **options: Any) -> Any:
        if "w" in mode:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return real(path, mode, *rest, **options)

    monkeypatch.setattr(files, "open", refusing, raising=False)
    with pytest.raises(PermissionError, match=r"Permission denied.*big\.00000"):
        save(tmp_path, NEW)
    assert_old_state_and_tidy(tmp_path)


def test_the_error_survives_a_trip_between_processes() -> None:
    error = SnapshotError("a/b", "it is torn", "Restore it")
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error) == "a/b: it is torn. Restore it."
    assert isinstance(again, ValueError)
