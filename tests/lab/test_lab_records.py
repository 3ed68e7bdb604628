"""Files of records."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from backsweep.lab.records import write_lines
from backsweep.lab.runs.worker import work
from backsweep.lab.studies.registry import STUDIES, StudyKind
from backsweep.record_files import record_lines
from backsweep.snapshot import files


def contents(path: Path) -> list[bytes]:
    assert all(whole for _, whole in record_lines(path))
    return [line for line, _ in record_lines(path)]


def test_two_processes_may_work_on_one_seed_of_a_study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "study" / "seed-0100.jsonl.gz"

    def records(seed: int) -> Iterator[dict[str, Any]]:
        yield {"number": 0}
        assert write_lines(path, ({"number": number} for number in range(3))) == 3  # another process, which is faster
        assert len(contents(path)) == 3
        yield from ({"number": number} for number in (1, 2))

    monkeypatch.setitem(STUDIES, "slow", StudyKind(records, lambda: 1.0, "records", {}))
    assert work({"kind": "study", "study": "slow", "seed": 100, "arguments": {}, "file": str(path)}) == 0
    assert len(contents(path)) == 3
    assert [each.name for each in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("last", ["first", "second"])
def test_a_file_is_replaced_by_the_one_that_is_complete_last(last: str, tmp_path: Path) -> None:
    path = tmp_path / "file"
    writers = {name: files.replacing(path) for name in ("first", "second")}
    for name, writer in writers.items():
        writer.__enter__().write(name.encode())
    order = sorted(writers, key=lambda name: name == last)
    for name in order:
        writers[name].__exit__(None, None, None)
        assert path.read_text() == name
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


def test_a_file_that_is_not_completed_replaces_nothing(tmp_path: Path) -> None:
    def interrupted() -> Iterator[dict[str, Any]]:
        yield {"number": 0}
        raise KeyboardInterrupt

    path = tmp_path / "file"
    path.write_text("old")
    with pytest.raises(KeyboardInterrupt):
        write_lines(path, interrupted())
    assert path.read_text() == "old"
    assert [each.name for each in tmp_path.iterdir()] == [path.name]
