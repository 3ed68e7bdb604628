"""What the snapshot tests share: tiny chunks, a plain save and load, exact comparison."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from backsweep.snapshot import Snapshot, SnapshotReport, layout, read_snapshot, write_snapshot
from backsweep.snapshot.segment import digest_of

Arrays = dict[str, np.ndarray]


@contextlib.contextmanager
def tiny_chunks(chunk: int = 64, small: int = 32) -> Iterator[None]:
    """Cut into chunks of a few bytes, so that a small array already has many."""
    with mock.patch.object(layout, "CHUNK_BYTES", chunk), mock.patch.object(layout, "SMALL_BYTES", small):
        yield


@contextlib.contextmanager
def no_forcing() -> Iterator[None]:
    """Skip the waiting for the disk, where a test is about something else."""
    with mock.patch("os.fsync"):
        yield


def save(folder: Path, arrays: Arrays, metadata: Mapping[str, Any] | None = None, **options: Any) -> SnapshotReport:
    return write_snapshot(folder, arrays, metadata or {}, **{"kind": "test", "version": 1, **options})


def load(folder: Path, **options: Any) -> Snapshot:
    return read_snapshot(folder, **{"kind": "test", "versions": {1}, **options})


def assert_same(found: Mapping[str, np.ndarray], expected: Mapping[str, np.ndarray]) -> None:
    """The same names, dtypes, shapes and bits (so that NaN and -0.0 count too)."""
    assert set(found) == set(expected)
    for name, array in expected.items():
        assert found[name].dtype == array.dtype.newbyteorder("="), name
        assert found[name].shape == array.shape, name
        assert found[name].tobytes() == array.astype(found[name].dtype).tobytes(), name


def listing(folder: Path) -> set[str]:
    """Every file under the folder, by relative path."""
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def referenced(folder: Path) -> set[str]:
    """Every file that a tidy snapshot folder holds."""
    segments = json.loads((folder / "manifest.json").read_text())["segments"]
    return {f"segments/{entry['file']}" for entry in segments} | {"manifest.json", "writer.lock"}


def contents(folder: Path) -> dict[str, bytes]:
    """Every file with its bytes, to show that nothing was touched."""
    return {name: (folder / name).read_bytes() for name in listing(folder)}


def forge(folder: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Alter the manifest and give it a right checksum again, as somebody who means harm would."""
    path = folder / "manifest.json"
    data = json.loads(path.read_text())
    del data["checksum"]
    change(data)
    body = json.dumps(data, separators=(",", ":")).encode()
    path.write_bytes(body[:-1] + f',"checksum":"{digest_of(body)}"}}\n'.encode())
