"""Journals: what was appended comes back, half a record is passed over, and damage is refused."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from backsweep.snapshot import SnapshotError
from backsweep.snapshot.journal import HEADER_BYTES, Journal, encoded, read_journal


def records_of(path: Path) -> list[tuple[dict[str, Any], dict[str, list[Any]]]]:
    return [
        (record.data, {name: array.tolist() for name, array in record.arrays.items()}) for record in read_journal(path)
    ]


def journal_of(path: Path, count: int) -> list[int]:
    """Write so many records; return where each ends."""
    journal = Journal(path)
    ends = []
    for number in range(count):
        journal.append({"number": number}, {"some": np.arange(number + 2), "bits": np.array([True])})
        ends.append(journal.nbytes)
    journal.close()
    return ends


@given(
    st.lists(
        st.tuples(
            st.dictionaries(st.text(max_size=5), st.integers() | st.text(max_size=5), max_size=3),
            st.lists(st.sampled_from(["<u8", "<f4", "|b1", "<i2"]), max_size=3),
            st.lists(st.integers(0, 4), max_size=3),
        ),
        max_size=4,
    )
)
def test_what_was_appended_comes_back(contents: list[tuple[dict[str, Any], list[str], list[int]]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "journal"
        journal = Journal(path, sync=True)
        expected = []
        for data, dtypes, shape in contents:
            size = int(np.prod(shape))
            arrays = {
                str(place): np.arange(size).reshape(shape).astype(np.dtype(dtype)) for place, dtype in enumerate(dtypes)
            }
            journal.append(data, arrays)
            expected.append((data, arrays))
        journal.close()
        found = list(read_journal(path))
        assert len(found) == len(expected)
        for record, (data, arrays) in zip(found, expected, strict=True):
            assert record.data == data
            assert list(record.arrays) == list(arrays)
            for name, array in arrays.items():
                assert record.arrays[name].dtype == array.dtype
                assert np.array_equal(record.arrays[name], array)
                assert record.arrays[name].shape == array.shape


def test_half_a_record_is_passed_over_and_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    ends = journal_of(path, 3)
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        found = list(read_journal(path))
        kept = sum(end <= length for end in ends)
        assert [record.data["number"] for record in found] == list(range(kept))
        if length % 50 == 0:
            journal = Journal(path, found[-1].end if found else 0)
            journal.append({"number": "next"}, {})
            journal.close()
            assert [record.data["number"] for record in read_journal(path)] == [*range(kept), "next"]


def test_what_the_machine_left_of_a_record_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    ends = journal_of(path, 2)
    whole = path.read_bytes()
    path.write_bytes(whole + bytes(5_000))
    assert len(records_of(path)) == 2
    path.write_bytes(whole[: ends[0] + HEADER_BYTES] + bytes(ends[1] - ends[0] - HEADER_BYTES))
    assert len(records_of(path)) == 1


def test_damage_before_the_last_record_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    ends = journal_of(path, 3)
    whole = path.read_bytes()
    for place in range(ends[1]):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1 :])
        with pytest.raises(SnapshotError, match=r"not as it was written|there is no record"):
            records_of(path)


def test_other_files_and_versions_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "journal"
    path.write_bytes(b"something else that is long enough to be taken for a header of a record")
    with pytest.raises(SnapshotError, match="there is no record at byte 0"):
        records_of(path)
    monkeypatch.setattr("backsweep.snapshot.journal.VERSION", 9)
    path.write_bytes(encoded({}, {}))
    monkeypatch.undo()
    with pytest.raises(SnapshotError, match="it has version 9, expected 1"):
        records_of(path)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b'{"data":{},"arrays":[["a","F99",[1]]]}', "F99"),
        (b'{"data":{},"arrays":[["a","I64",[-1]]]}', "cannot be I64"),
        (b'{"data":{},"arrays":[["a","I64",[4611686018427387904,8]]]}', "cannot be used"),
        (b'{"data":{}}', "arrays"),
        (b"not json", "cannot be used"),
    ],
)
def test_crafted_records_are_refused(tmp_path: Path, text: bytes, why: str) -> None:
    import xxhash

    from backsweep.snapshot.journal import MAGIC, START, TEXT_LENGTH, VERSION

    body = TEXT_LENGTH.pack(len(text)) + text
    start = START.pack(MAGIC, VERSION, len(body), xxhash.xxh3_128_digest(body))
    path = tmp_path / "journal"
    path.write_bytes(start + xxhash.xxh3_128_digest(start) + body)
    with pytest.raises(SnapshotError, match=why):
        records_of(path)


def test_a_full_disk_leaves_the_journal_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "journal"
    journal = Journal(path)
    journal.append({"number": 0}, {})
    length = journal.nbytes
    write, left = os.write, [20]

    def fill_up(handle: int, data: Any) -> int:
        if left[0] <= 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        written = write(handle, data[: left[0]])
        left[0] -= written
        return written

    monkeypatch.setattr(os, "write", fill_up)
    with pytest.raises(OSError, match="while appending to a journal"):
        journal.append({"number": 1}, {"some": np.zeros(1_000)})
    monkeypatch.undo()
    assert path.stat().st_size == length == journal.nbytes
    journal.append({"number": 2}, {})
    journal.close()
    assert [data["number"] for data, _ in records_of(path)] == [0, 2]


def test_only_what_comes_back_exactly_is_taken(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal")
    with pytest.raises(TypeError, match="dtype object"):
        journal.append({}, {"some": np.array([None])})
    with pytest.raises(TypeError, match="plain JSON"):
        journal.append({"some": (1, 2)}, {})
    assert journal.nbytes == 0
    journal.close()
