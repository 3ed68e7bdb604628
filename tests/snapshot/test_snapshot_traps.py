"""What somebody else put into a folder: links that lead elsewhere, pipes that never end, files that were changed."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import numpy as np
import pytest

from backsweep.snapshot import SnapshotError, SnapshotMemory, read_snapshot, write_snapshot
from backsweep.snapshot import writer as writing

pytestmark = pytest.mark.skipif(os.name != "posix", reason="links and pipes are those of POSIX")
ROWS = {"large": np.arange(3 << 20, dtype=np.int64), "small": np.arange(5)}


def write(folder: Path, memory: SnapshotMemory | None = None, **changes: np.ndarray) -> int:
    unchanged = {"large": lambda start, stop: False}
    report = write_snapshot(
        folder, {**ROWS, **changes}, {}, kind="test", version=1, dirty=unchanged if memory else None, memory=memory
    )
    return report.segments_written


def read(folder: Path, memory: SnapshotMemory | None = None) -> dict[str, np.ndarray]:
    return read_snapshot(folder, kind="test", versions={1}, memory=memory).arrays


@pytest.mark.parametrize("name", ["manifest.json.tmp", "writer.lock", "segments"])
def test_links_are_not_followed(name: str, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    if name == "segments":
        elsewhere.mkdir()
    else:
        elsewhere.write_text("precious")
    folder = tmp_path / "snapshot"
    folder.mkdir()
    (folder / name).symlink_to(elsewhere)
    if name == "manifest.json.tmp":  # ours to replace
        write(folder)
        assert np.array_equal(read(folder)["small"], ROWS["small"])
    else:
        with pytest.raises(SnapshotError, match="it is a link"):
            write(folder)
    assert not list(elsewhere.iterdir()) if elsewhere.is_dir() else elsewhere.read_text() == "precious"


def test_a_folder_in_place_of_the_lock_is_named(tmp_path: Path) -> None:
    (tmp_path / "snapshot" / "writer.lock").mkdir(parents=True)
    with pytest.raises(SnapshotError, match=r"writer\.lock: it is a folder"):
        write(tmp_path / "snapshot")


@pytest.mark.parametrize("place", ["manifest.json", "segment"])
def test_a_pipe_is_refused_and_not_waited_for(place: str, tmp_path: Path) -> None:
    write(tmp_path / "s")
    path = tmp_path / "s" / place if place == "manifest.json" else next((tmp_path / "s" / "segments").iterdir())
    path.unlink()
    os.mkfifo(path)
    errors: list[Exception] = []

    def load() -> None:
        try:
            read(tmp_path / "s")
        except SnapshotError as error:
            errors.append(error)

    thread = threading.Thread(target=load, daemon=True)
    thread.start()
    thread.join(20)
    assert not thread.is_alive(), "loading waits for the pipe"
    assert "not a regular file" in str(errors[0])


def damage(path: Path, *, unseen: bool = False) -> None:
    """Flip a byte; unseen, as a disk does it, which leaves the times as they were."""
    before = path.stat()
    image = bytearray(path.read_bytes())
    image[len(image) // 2] ^= 1
    path.write_bytes(image)
    if unseen:
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.mark.parametrize("remembered", [True, False])
def test_damage_to_a_kept_file_is_mended_by_the_next_save(remembered: bool, tmp_path: Path) -> None:
    memory = SnapshotMemory() if remembered else None
    written = write(tmp_path / "s", memory)
    assert written >= 3
    assert write(tmp_path / "s", memory) == 0
    for path in sorted((tmp_path / "s" / "segments").iterdir()):
        damage(path)
        with pytest.raises(SnapshotError, match="digest"):
            read(tmp_path / "s")
        assert write(tmp_path / "s", memory) == 1
        assert np.array_equal(read(tmp_path / "s")["large"], ROWS["large"])


def test_damage_that_leaves_no_trace_is_found_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "READ_AGAIN", 1)
    monkeypatch.setattr(writing.files, "traits", lambda path: (path.stat().st_size,) if path.exists() else ())
    memory = SnapshotMemory()
    written = write(tmp_path / "s", memory)
    damage(max((tmp_path / "s" / "segments").iterdir()), unseen=True)
    assert sum(write(tmp_path / "s", memory) for _ in range(written)) == 1
    assert np.array_equal(read(tmp_path / "s")["large"], ROWS["large"])
