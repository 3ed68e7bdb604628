"""Results that somebody made up: left out with a reason, or refused by name, and nothing is written elsewhere."""

from __future__ import annotations

import gzip
import json
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from backsweep import record_files
from backsweep.lab.claims.evidence import read_evidence
from backsweep.lab.records import ArchivedRun, read_archive
from backsweep.lab.runs.packing import archive_of, pack
from backsweep.record_files import RecordsError, check_finished_records, json_object, record_lines
from backsweep.snapshot.lock import LOCK_NAME
from result_folders import write_run

DEEP = "[" * 100_000


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return write_run(tmp_path / "given", "minigrid/unlock", "ter", 100, 1.0, graph={"vertices": 3})


def config(**changes: Any) -> Callable[[Path], None]:
    def change(run: Path) -> None:
        found = json.loads((run / "config.json").read_text())
        (run / "config.json").write_text(json.dumps({**found, **changes}))

    return change


def whole(name: str, text: str) -> Callable[[Path], None]:
    return lambda run: (run / name).write_text(text) and None


def line(text: str) -> Callable[[Path], None]:
    def change(run: Path) -> None:
        with open(run / "records.jsonl", "a") as file:
            file.write(text + "\n")

    return change


NO_RUNS = {
    "a list as configuration": whole("config.json", "[]"),
    "a number as configuration": whole("config.json", "7"),
    "a deep configuration": whole("config.json", DEEP),
    "a seed of letters": config(seed="one"),
    "a seed that is a list": config(seed=[1]),
    "a seed without end": whole("config.json", '{"seed": 1e999}'),
}
NOT_PACKED = {
    **NO_RUNS,
    "an end that is a list": whole("finished.json", "[]"),
    "a deep end": whole("finished.json", DEEP),
    "a fleet of nothing": lambda run: (run.parent / "fleet.json").write_text("{}") and None,
    "a fleet that is a list": lambda run: (run.parent / "fleet.json").write_text("[]") and None,
    "a kind that is a list": line('{"kind":["evaluation"]}'),
    "a deep record": line(DEEP),
    "seconds that are no object": line('{"kind":"timing","step":1,"seconds":7,"steps":1,"updates":1}'),
    "a timing without seconds": line('{"kind":"timing","step":1}'),
    "seconds that are text": line('{"kind":"timing","step":1,"seconds":{"a":"b"},"steps":1,"updates":1}'),
}


@pytest.mark.parametrize("case", NO_RUNS)
def test_what_is_no_run_is_left_out_of_a_report(case: str, run: Path, tmp_path: Path) -> None:
    write_run(tmp_path / "given", "minigrid/unlock", "ter", 101, 1.0)
    assert len(read_evidence(tmp_path / "given").runs) == 2
    NO_RUNS[case](run)
    evidence = read_evidence(tmp_path / "given")
    assert [found.seed for found in evidence.runs] == [101]
    assert "its configuration cannot be read" in evidence.left_out[0]


@pytest.mark.parametrize("case", NOT_PACKED)
def test_what_is_no_run_is_not_packed(case: str, run: Path, tmp_path: Path) -> None:
    other = write_run(tmp_path / "given", "minigrid/unlock", "uer", 101, 1.0)
    NOT_PACKED[case](run)
    result = pack([tmp_path / "given"], tmp_path / "results")
    assert len(result.refused) == 1
    assert str(run) in result.refused[0]
    assert result.packed == 1
    (path,) = result.files
    assert [found.config["method"] for found in read_archive(path) if found] == [other.parent.name]


@pytest.mark.parametrize(
    "statistics", ["[1]", '"text"', '{"vertices":"many"}', '{"vertices":[1]}', '{"vertices":null}', DEEP]
)
def test_statistics_that_are_no_numbers_are_reported(statistics: str, run: Path, tmp_path: Path) -> None:
    line(f'{{"kind":"replay","step":1001,"nbytes":1,"statistics":{statistics}}}')(run)
    evidence = read_evidence(tmp_path / "given")
    assert evidence.runs[0].graph == {}
    assert list(evidence.torn.values()) == [1]


@pytest.mark.parametrize("text", [DEEP, '{"kind":["a"]}', '{"kind":null}', "[]", "7"])
def test_records_of_no_study_are_counted(text: str, tmp_path: Path) -> None:
    (tmp_path / "study.jsonl").write_text(text + "\n")
    evidence = read_evidence(tmp_path)
    assert evidence.torn == {"study.jsonl": 1}
    assert not evidence.records


@pytest.mark.parametrize(
    "records",
    [
        {"evaluation": "abc"},
        {"evaluation": [1]},
        {"evaluation": {"step": 3}},
        {"evaluation": {"step": [1, 2], "mean_return": [1]}},
    ],
)
def test_malformed_lines_of_an_archive_are_no_runs(records: Any) -> None:
    with pytest.raises(ValueError, match="malformed"):
        ArchivedRun.from_line(json.dumps({"config": {}, "finished": {}, "records": records}).encode())


@pytest.mark.parametrize("step", ['"x"', "[1]", "{}"])
def test_archived_numbers_that_are_none_are_left_out(step: str, tmp_path: Path) -> None:
    text = f'{{"config":{{"seed":100}},"finished":{{}},"records":{{"evaluation":{{"step":[{step}]}}}}}}\n'
    (tmp_path / "a.runs.jsonl.xz").write_bytes(lzma.compress(text.encode()))
    evidence = read_evidence(tmp_path)
    assert not evidence.runs
    assert "no numbers" in evidence.left_out[0]


@pytest.mark.parametrize(
    "name", ["../../../away", "/away", "a\\..\\away", "a\0b", "a\nb", "module:Id-v0", "x" * 5000, "..", ""]
)
@pytest.mark.parametrize("field", ["task", "settings", "env"])
def test_a_configuration_does_not_choose_the_folder_of_its_archive(
    field: str, name: str, run: Path, tmp_path: Path
) -> None:
    config(**{"task": None, field: name})(run)
    path = archive_of(tmp_path / "results", json.loads((run / "config.json").read_text()))
    assert path.parent == tmp_path / "results" / "runs"
    assert ":" not in path.name
    before = {found for found in tmp_path.rglob("*") if found.is_file()}
    result = pack([tmp_path / "given"], tmp_path / "results")
    assert result.files == [path]
    made = {found for found in tmp_path.rglob("*") if found.is_file()} - before
    assert made == {path, path.with_name(LOCK_NAME)}


@pytest.mark.parametrize(("ending", "compress"), [("gz", gzip.compress), ("xz", lzma.compress)])
def test_a_packed_file_that_would_fill_the_memory_is_refused(
    ending: str, compress: Callable[[bytes], bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / f"records.jsonl.{ending}"
    path.write_bytes(compress(b"\n" * 1000))
    monkeypatch.setattr(record_files, "MOST_UNPACKED", 1000)
    assert len(list(record_lines(path))) == 1000
    monkeypatch.setattr(record_files, "MOST_UNPACKED", 999)
    with pytest.raises(RecordsError, match="unpacks to more than 999 bytes"):
        list(record_lines(path))


@pytest.mark.parametrize("size", ["1e999", "[]", "null", '"x"', "{}"])
def test_a_size_that_is_no_number_is_named(size: str, run: Path) -> None:
    (run / "finished.json").write_text(f'{{"records":{{"bytes":{size},"xxh3_128":"0"}}}}')
    with pytest.raises(RecordsError, match=r"finished\.json: it cannot be read"):
        check_finished_records(run)


def test_objects_and_nothing_else() -> None:
    assert json_object(b'{"a": 1}') == {"a": 1}
    for text in (b"[]", b"1", b"null", b"", b"\xff", DEEP.encode()):
        with pytest.raises(ValueError):  # noqa: PT011 (each says something else)
            json_object(text)
