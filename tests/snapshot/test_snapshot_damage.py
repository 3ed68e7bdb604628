"""Whatever is wrong with a folder, loading says which file and why, and never returns wrong data."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from snapshot_helpers import Arrays, assert_same, contents, forge, load, no_forcing, save, tiny_chunks

from backsweep.snapshot import SnapshotError, read_snapshot

ARRAYS: Arrays = {
    "big": np.arange(40, dtype=np.int32).reshape(10, 4),
    "flags": np.array([True, False]),
    "scalar": np.array(2.5),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with tiny_chunks(), no_forcing():
        save(tmp_path / "s", ARRAYS, {"step": 5, "state": 2**127 + 1, "rate": 0.1, "word": "Aa"})
    return tmp_path / "s"


def files_of(folder: Path) -> list[Path]:
    return [folder / "manifest.json", *sorted((folder / "segments").iterdir())]


def assert_refused(folder: Path, file: Path) -> str:
    with pytest.raises(SnapshotError) as caught:
        load(folder)
    assert str(file) in str(caught.value)
    assert caught.value.advice
    return str(caught.value)


def test_every_flipped_bit_is_found(folder: Path) -> None:
    rng = np.random.default_rng(0)
    for file in files_of(folder):
        good = file.read_bytes()
        for position in range(len(good)):
            bad = bytearray(good)
            bad[position] ^= 1 << rng.integers(8)
            file.write_bytes(bad)
            assert_refused(folder, file)
        file.write_bytes(good)
    assert_same(load(folder).arrays, ARRAYS)


def test_every_truncation_and_every_addition_is_found(folder: Path) -> None:
    for file in files_of(folder):
        good = file.read_bytes()
        for bad in [*(good[:length] for length in range(len(good))), good + b"\0", good + good, b"\0" * len(good)]:
            file.write_bytes(bad)
            assert_refused(folder, file)
        file.write_bytes(good)
    assert_same(load(folder).arrays, ARRAYS)


def test_missing_files_are_named(folder: Path) -> None:
    for file in files_of(folder):
        hidden = file.rename(folder / "hidden")
        assert "no snapshot was ever completed" in (why := assert_refused(folder, file)) or "missing" in why
        hidden.rename(file)


def test_segments_that_changed_places_are_found(folder: Path) -> None:
    _, first, second, *_ = files_of(folder)
    good = first.read_bytes()
    first.write_bytes(second.read_bytes())
    assert_refused(folder, first)
    first.write_bytes(good)
    load(folder)


def test_a_folder_in_a_files_place_is_found(folder: Path) -> None:
    for file in files_of(folder):
        good = file.read_bytes()
        file.unlink()
        file.mkdir()
        assert_refused(folder, file)
        file.rmdir()
        file.write_bytes(good)


def test_nothing_is_asked_of_destinations_before_all_sizes_fit(folder: Path) -> None:
    files_of(folder)[-1].unlink()
    with pytest.raises(SnapshotError):
        load(folder, into={"big": lambda shape, dtype: pytest.fail("asked too early")})


def test_no_folder_and_no_snapshot(tmp_path: Path) -> None:
    with pytest.raises(SnapshotError, match="no such folder"):
        load(tmp_path / "absent")
    with pytest.raises(SnapshotError, match="no snapshot was ever completed"):
        load(tmp_path)
    (tmp_path / "file").write_text("hello")
    with pytest.raises(SnapshotError, match="it is a file, expected a folder"):
        load(tmp_path / "file")


@pytest.mark.parametrize("text", ["", "[]", "7", "{}", '{"name": "web app"}', "[" * 100_000, "\xff", "NaN", "9" * 9999])
def test_a_foreign_manifest_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "manifest.json").write_text(text, encoding="latin-1")
    assert_refused(tmp_path, tmp_path / "manifest.json")


def test_another_kind_or_version_is_refused(folder: Path) -> None:
    with pytest.raises(SnapshotError, match="kind 'test', expected 'replay'"):
        read_snapshot(folder, kind="replay", versions={1})
    save(folder, ARRAYS, version=3)
    with pytest.raises(SnapshotError, match=r"version 3 .* reads 1, 2\. Update"):
        load(folder, versions={1, 2})
    with pytest.raises(SnapshotError, match=r"version 3 .* reads 4\. Load it with the release that wrote it"):
        load(folder, versions={4})
    forge(folder, lambda data: data.update(format_version=2))
    with pytest.raises(SnapshotError, match="Update backsweep"):
        load(folder, versions={3})


def claim_petabytes(data: dict[str, Any]) -> None:
    """Consistent in itself but for the size of the file, which is the true one."""
    data["arrays"]["flags"]["shape"] = [10**15]
    for segment in data["segments"]:
        for piece in segment["pieces"]:
            if piece[0] == "flags":
                piece[2] = 10**15


FORGERIES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "upwards": lambda data: data["segments"][0].update(file="../secret.safetensors"),
    "upwards in a good name": lambda data: data["segments"][0].update(
        file="../segments/" + data["segments"][0]["file"]
    ),
    "absolute": lambda data: data["segments"][0].update(file="/" + data["segments"][0]["file"]),
    "newline": lambda data: data["segments"][0].update(file=data["segments"][0]["file"] + "\n"),
    "no name": lambda data: data["segments"][0].pop("file"),
    "gap": lambda data: data["segments"].pop(1),
    "order": lambda data: data["segments"].reverse(),
    "twice": lambda data: data["segments"].append(data["segments"][0]),
    "size": lambda data: data["segments"][0].update(size=10**12),
    "negative": lambda data: data["segments"][0].update(size=-1),
    "digest": lambda data: data["segments"][0].update(digest=None),
    "pieces": lambda data: data["segments"][0].update(pieces=[["big", 0]]),
    "stranger": lambda data: data["segments"][0].update(pieces=[["other", 0, 4]]),
    "object dtype": lambda data: data["arrays"]["big"].update(dtype="O"),
    "list dtype": lambda data: data["arrays"]["big"].update(dtype=["U8"]),
    "shape": lambda data: data["arrays"]["big"].update(shape=[10.0, 4]),
    "axes": lambda data: data["arrays"]["big"].update(shape=[10, 4] + [1] * 90),
    "huge": lambda data: data["arrays"]["big"].update(shape=[10**15, 4]),
    "huge to the last": claim_petabytes,
    "other dtype of the same size": lambda data: data["arrays"]["big"].update(dtype="U32"),
    "unlisted": lambda data: data["arrays"].pop("big"),
    "absent": lambda data: data["arrays"].update(more={"dtype": "U8", "shape": [4]}),
    "arrays": lambda data: data.update(arrays=[]),
    "segments": lambda data: data.update(segments=[5]),
    "metadata": lambda data: data.update(metadata=None),
    "kind": lambda data: data.update(kind=5),
    "version": lambda data: data.update(version=True),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forged_manifest_is_refused(folder: Path, name: str) -> None:
    shutil.copy(files_of(folder)[1], folder / "secret.safetensors")
    forge(folder, FORGERIES[name])
    with pytest.raises(SnapshotError, match=str(folder)):
        load(folder)


def test_a_forged_manifest_that_changes_nothing_loads(folder: Path) -> None:
    """So that the forgeries above are refused for what they change."""
    forge(folder, lambda data: None)
    assert_same(load(folder).arrays, ARRAYS)


def test_a_save_that_finishes_during_a_load_is_told_apart_from_damage(folder: Path) -> None:
    def save_meanwhile(shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
        with tiny_chunks(), no_forcing():
            save(folder, {**ARRAYS, "big": ARRAYS["big"] + 1})
        return np.empty(shape, dtype)

    with pytest.raises(SnapshotError, match=r"replaced by a newer save .* Load it again"):
        load(folder, into={"big": save_meanwhile})
    assert_same(load(folder).arrays, {**ARRAYS, "big": ARRAYS["big"] + 1})


def test_reading_touches_nothing(folder: Path) -> None:
    before = contents(folder)
    load(folder)
    assert contents(folder) == before
