"""Only what changed is written, and hints are believed only where they may be."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from snapshot_helpers import assert_same, listing, load, no_forcing, referenced, save

from backsweep.snapshot import SnapshotMemory

ROW = 1 << 16  # 128 rows of 64 KiB make one chunk of 8 MiB


@pytest.fixture(autouse=True)
def _quick() -> Iterator[None]:
    with no_forcing():
        yield


def clean(start: int, stop: int) -> bool:
    """Say of any rows that they have not changed."""
    return False


def rows(count: int) -> np.ndarray:
    array = np.zeros((count, ROW), np.uint8)
    array[:, 0] = np.arange(count)
    return array


def identities(folder: Path) -> dict[str, tuple[int, int]]:
    """Inode and modification time of each segment file: a file written again would have others."""
    return {p.name: (p.stat().st_ino, p.stat().st_mtime_ns) for p in (folder / "segments").iterdir()}


def test_an_unchanged_state_writes_the_manifest_alone(tmp_path: Path) -> None:
    arrays = {"big": rows(300), "small": np.arange(10)}
    first = save(tmp_path, arrays)
    assert (first.segments_written, first.segments_kept) == (4, 0)
    assert first.bytes_written == sum((tmp_path / name).stat().st_size for name in listing(tmp_path))
    before = identities(tmp_path)
    second = save(tmp_path, arrays)
    assert (second.segments_written, second.segments_kept) == (0, 4)
    assert second.bytes_written == (tmp_path / "manifest.json").stat().st_size
    assert identities(tmp_path) == before


def test_one_changed_row_writes_one_chunk(tmp_path: Path) -> None:
    arrays = {"big": rows(300), "small": np.arange(10)}
    save(tmp_path, arrays)
    before = identities(tmp_path)
    arrays["big"][130, 5] = 1
    report = save(tmp_path, arrays)
    after = identities(tmp_path)
    assert (report.segments_written, report.segments_kept) == (1, 3)
    assert len(before.items() & after.items()) == 3
    assert {name.split(".")[1] for name in before.keys() ^ after.keys()} == {"00001"}
    assert_same(load(tmp_path).arrays, arrays)


def test_a_growing_array_keeps_its_full_chunks(tmp_path: Path) -> None:
    array = rows(400)
    save(tmp_path, {"big": array[:200]})
    report = save(tmp_path, {"big": array})
    assert (report.segments_written, report.segments_kept) == (3, 1)
    assert_same(load(tmp_path).arrays, {"big": array})


def test_small_arrays_share_a_segment_of_their_own(tmp_path: Path) -> None:
    arrays = {f"small{i}": np.full(100, i) for i in range(20)} | {"big": rows(128)}
    assert save(tmp_path, arrays).segments_written == 2
    arrays["small3"] = np.arange(7)
    assert save(tmp_path, arrays).segments_written == 1
    assert_same(load(tmp_path).arrays, arrays)


def test_many_small_arrays_are_packed_in_bounded_groups(tmp_path: Path) -> None:
    arrays = {f"small{i:02d}": np.full(900 << 10, i, np.uint8) for i in range(20)}
    save(tmp_path, arrays)
    sizes = [path.stat().st_size for path in (tmp_path / "segments").iterdir()]
    assert len(sizes) == 3
    assert max(sizes) < 9 << 20
    assert_same(load(tmp_path).arrays, arrays)


def test_hints_spare_the_reading_of_clean_chunks(tmp_path: Path) -> None:
    """Shown by a lie: a change that the hint denies is not seen, so the chunk was not looked at."""
    array, memory = rows(300), SnapshotMemory()
    save(tmp_path, {"big": array}, memory=memory, dirty={"big": clean})
    array[5, 9] = 1
    array[140, 9] = 1
    report = save(tmp_path, {"big": array}, memory=memory, dirty={"big": lambda start, stop: start <= 140 < stop})
    assert (report.segments_written, report.segments_kept) == (1, 2)
    found = load(tmp_path).arrays["big"]
    assert (found[5, 9], found[140, 9]) == (0, 1)
    # Without the hint the other change is found after all.
    assert save(tmp_path, {"big": array}, memory=memory).segments_written == 1
    assert_same(load(tmp_path).arrays, {"big": array})


def test_flags_per_row_do_the_same(tmp_path: Path) -> None:
    array, memory = rows(300), SnapshotMemory()
    save(tmp_path, {"big": array}, memory=memory)
    flags = np.zeros(300, bool)
    array[[5, 299], 9] = 1
    flags[299] = True
    save(tmp_path, {"big": array}, memory=memory, dirty={"big": flags})
    assert list(load(tmp_path).arrays["big"][[5, 299], 9]) == [0, 1]


def test_hints_work_from_a_load_on(tmp_path: Path) -> None:
    save(tmp_path, {"big": rows(300)})
    memory = SnapshotMemory()
    array = load(tmp_path, memory=memory).arrays["big"]
    array[0, 9] = 1  # denied by the hint
    assert save(tmp_path, {"big": array}, memory=memory, dirty={"big": clean}).segments_written == 0


@pytest.mark.parametrize(
    "case", ["no memory", "fresh memory", "other folder", "other writer", "other dtype", "other row", "grown"]
)
def test_hints_are_ignored_where_they_may_not_be_believed(tmp_path: Path, case: str) -> None:
    folder, array, memory = tmp_path / "s", rows(300), SnapshotMemory()
    save(folder, {"big": array}, memory=memory)
    array[5, 9] = 1
    given: SnapshotMemory | None = memory
    if case == "no memory":
        given = None
    elif case == "fresh memory":
        given = SnapshotMemory()
    elif case == "other folder":
        save(tmp_path / "t", {"big": array}, memory=memory)
    elif case == "other writer":
        save(folder, {"big": rows(300)[::-1]})
    elif case == "other dtype":
        array = array.view(np.int8)
    elif case == "other row":
        array = array.reshape(300, 256, 256)
    elif case == "grown":
        array = np.concatenate([rows(300), rows(10)])  # the last chunk has another length now
    save(folder, {"big": array}, memory=given, dirty={"big": clean})
    assert_same(load(folder).arrays, {"big": array})


def test_a_failed_save_does_not_move_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    array, memory = rows(130), SnapshotMemory()
    save(tmp_path, {"big": array}, memory=memory)
    remembered = memory.checksum
    array[3, 9] = 1
    hints = {"big": lambda start, stop: start <= 3 < stop}
    with monkeypatch.context() as patch:
        patch.setattr("backsweep.snapshot.files.write_all", lambda file, data: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            save(tmp_path, {"big": array}, memory=memory, dirty=hints)
    assert memory.checksum == remembered
    save(tmp_path, {"big": array}, memory=memory, dirty=hints)
    assert_same(load(tmp_path).arrays, {"big": array})


def test_a_lost_or_short_segment_is_written_again(tmp_path: Path) -> None:
    arrays, memory = {"big": rows(300)}, SnapshotMemory()
    save(tmp_path, arrays, memory=memory)
    lost, short, _ = sorted((tmp_path / "segments").iterdir())
    lost.unlink()
    short.write_bytes(b"torn")
    report = save(tmp_path, arrays, memory=memory, dirty={"big": clean})
    assert (report.segments_written, report.segments_kept) == (2, 1)
    assert_same(load(tmp_path).arrays, arrays)


def test_other_peoples_files_in_the_folder_are_left_alone(tmp_path: Path) -> None:
    save(tmp_path, {"x": np.zeros(3)})
    mine = {"notes.txt", "segments/model.safetensors", "segments/notes.tmp"}
    for name in mine:
        (tmp_path / name).write_text("mine")
    save(tmp_path, {"x": np.ones(3)})
    assert listing(tmp_path) == referenced(tmp_path) | mine
