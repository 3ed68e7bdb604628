"""How fast a replay is saved and loaded, over a plain file of the same size."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.libraries.base import Wanted
from benchmarks.libraries.ours import Ours
from benchmarks.streams import make_stream


def run(library: str, params: dict[str, Any]) -> dict[str, float]:
    """Save, add a little, save again, load; MB are those of the folder."""
    rows = params["rows"]
    stream = make_stream(params["stream"], tuple(params["shape"]), params["dtype"], states=params["states"])
    ours = Ours(Wanted(stream.frames.space, rows, method=params["method"]))
    ours.fill(stream, rows)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "replay"
        first = _seconds(lambda: ours.replay.save(folder))
        size = _size(folder)
        before = _files(folder)
        ours.fill(stream, rows // 100)
        second = _seconds(lambda: ours.replay.save(folder))
        written = sum(entry[0] for name, entry in _files(folder).items() if before.get(name) != entry)
        load = _seconds(lambda: type(ours.replay).load(folder))
        plain_write, plain_read = _plain_file(Path(scratch) / "plain", size)
    mb = size / 1e6
    return {
        "mb": mb,
        "save_seconds": first,
        "save_mb_per_s": mb / first,
        "second_save_seconds": second,
        "second_save_mb": written / 1e6,
        "second_save_share": second / first,
        "load_seconds": load,
        "load_mb_per_s": mb / load,
        "plain_write_mb_per_s": mb / plain_write,
        "plain_read_mb_per_s": mb / plain_read,
    }


def _seconds(action: Any) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def _files(folder: Path) -> dict[str, tuple[int, int]]:
    return {str(path): (path.stat().st_size, path.stat().st_ino) for path in folder.rglob("*") if path.is_file()}


def _size(folder: Path) -> int:
    return sum(size for size, _ in _files(folder).values())


def _plain_file(path: Path, size: int) -> tuple[float, float]:
    """Return the seconds to write and sync one file of that size, and to read it back."""
    block = np.random.default_rng(0).integers(0, 256, 1 << 24, np.uint8).tobytes()

    def write() -> None:
        with path.open("wb") as file:
            for _ in range(-(-size // len(block))):
                file.write(block)
            os.fsync(file.fileno())

    written = _seconds(write)
    return written, _seconds(path.read_bytes)
