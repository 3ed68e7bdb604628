"""Records of finished runs: one changed byte is noticed by whatever reads them."""

from __future__ import annotations

import gzip
import json
import os
import random
import re
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path

import pytest
import xxhash

from backsweep.lab.claims.evidence import read_evidence
from backsweep.lab.records import read_archive
from backsweep.lab.report.cli import report_command
from backsweep.lab.report.markdown import BEGIN, END
from backsweep.lab.runs.packing import pack
from backsweep.record_files import RecordsError, check_finished_records, described, record_lines, without_digest
from result_folders import write_run


def finished_run(root: Path, seed: int = 100) -> Path:
    """Return the folder of a run whose end says what its records are."""
    folder = write_run(root, "nchain-6", "ter", seed, 0.5)
    contents = (folder / "records.jsonl").read_bytes()
    end = {"step": 1000, **described(len(contents), xxhash.xxh3_128_hexdigest(contents))}
    (folder / "finished.json").write_text(json.dumps(end))
    return folder


def changed(contents: bytes, draw: random.Random) -> bytes:
    """Return contents with one byte changed, inserted or removed, or cut at any place."""
    place = draw.randrange(len(contents))
    how = draw.randrange(4)
    if how == 0:
        return contents[:place] + bytes([contents[place] ^ (1 << draw.randrange(8))]) + contents[place + 1 :]
    if how == 1:
        return contents[:place] + b"1" + contents[place:]
    return contents[:place] + (contents[place + 1 :] if how == 2 else b"")


def refusal(work: Callable[[], object]) -> str | None:
    """Return the message of the RecordsError that `work` ends with, None if there is none."""
    try:
        work()
    except RecordsError as error:
        return str(error)
    return None


def pack_in_place(folder: Path) -> Path:
    """Pack the records of a run in its folder; the digest is that of the records, packed or not."""
    path = folder / "records.jsonl.gz"
    path.write_bytes(gzip.compress((folder / "records.jsonl").read_bytes()))
    (folder / "records.jsonl").unlink()
    return path


@pytest.mark.parametrize("packed", [False, True])
def test_every_change_is_noticed(packed: bool, tmp_path: Path) -> None:
    folder = finished_run(tmp_path)
    path = pack_in_place(folder) if packed else folder / "records.jsonl"
    whole, lines = path.read_bytes(), list(record_lines(path))
    check_finished_records(folder)
    draw = random.Random(0)
    for _ in range(300):
        path.write_bytes(changed(whole, draw))
        message = refusal(lambda: check_finished_records(folder))
        if message is None:  # in gzip's header little more than the magic number matters
            assert packed
            assert list(record_lines(path)) == lines
        else:
            assert path.name in message
            assert "Restore the file from a copy" in message


def test_a_changed_run_is_left_out_of_the_report_and_the_packing(tmp_path: Path) -> None:
    folder = finished_run(tmp_path / "results")
    finished_run(tmp_path / "results", seed=101)
    assert len(read_evidence(tmp_path / "results").runs) == 2
    path = folder / "records.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"mean_return":0.5', b'"mean_return":0.6'))
    evidence = read_evidence(tmp_path / "results")
    assert [run.seed for run in evidence.runs] == [101]
    (damaged,) = evidence.damaged
    assert "seed-100/records.jsonl: its contents are not what the finished run wrote" in damaged
    result = pack([tmp_path / "results"], tmp_path / "packed")
    assert (result.packed, result.damaged) == (1, 1)
    assert "seed-100/records.jsonl: its contents are not what the finished run wrote" in result.refused[0]


def test_the_report_command_names_the_file_goes_on_and_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    finished_run(tmp_path / "results", seed=101)
    folder = finished_run(tmp_path / "results")
    (folder / "records.jsonl").write_bytes(b"")
    verdicts = tmp_path / "verdicts.md"
    verdicts.write_text(f"{BEGIN}\nold\n{END}\n")
    asked = Namespace(results=tmp_path / "results", out=tmp_path / "report.html", markdown=verdicts)
    assert report_command(asked) == 1
    said = capsys.readouterr().err
    assert re.search(r"left out: .*records\.jsonl: it holds 0 bytes, the finished run wrote \d+\. Restore", said)
    assert "reading" in said
    assert "from 1 run ..." in said
    page = (tmp_path / "report.html").read_text()
    assert "records.jsonl: it holds 0 bytes" in page
    assert "The page uses 1 training run and 0 other records" in page
    assert "old" in verdicts.read_text(), "a page of the documentation is not made from a part of the records"


def test_a_damaged_end_is_named(tmp_path: Path) -> None:
    folder = finished_run(tmp_path)
    for text in ('{"records":', '{"records": 3}', '{"records": {"bytes": "x"}}', "[]"):
        (folder / "finished.json").write_text(text)
        with pytest.raises(RecordsError, match=r"finished\.json: it cannot be read"):
            check_finished_records(folder)


def test_runs_that_cannot_be_checked_are_read_as_before(tmp_path: Path) -> None:
    folder = write_run(tmp_path, "nchain-6", "ter", 100, 0.5)  # an older release's: its end says nothing of records
    check_finished_records(folder)
    running = finished_run(tmp_path, seed=101)
    (running / "finished.json").unlink()
    (running / "records.jsonl").write_bytes(b"{}\n")
    check_finished_records(running)
    assert len(read_evidence(tmp_path).runs) == 1


def test_an_archive_holds_no_digest_of_records_that_it_does_not_hold(tmp_path: Path) -> None:
    finished_run(tmp_path / "runs")
    (archive,) = pack([tmp_path / "runs"], tmp_path / "packed").files
    (run,) = read_archive(archive)
    assert run is not None
    assert run.finished == {"step": 1000} == without_digest({"step": 1000, **described(1, "2")})


def test_a_damaged_archive_is_never_used(tmp_path: Path) -> None:
    for seed in range(100, 105):
        finished_run(tmp_path / "runs", seed)
    (archive,) = pack([tmp_path / "runs"], tmp_path / "packed").files
    whole, runs = archive.read_bytes(), list(read_archive(archive))
    draw, refused = random.Random(1), 0
    for _ in range(300):
        archive.write_bytes(changed(whole, draw))
        message = refusal(lambda: list(read_archive(archive)))
        if message is None:
            assert list(read_archive(archive)) == runs
        else:
            refused += 1
            assert archive.name in message
            evidence = read_evidence(tmp_path / "packed")
            assert (evidence.runs, evidence.damaged) == ([], [message])
            assert pack([tmp_path / "packed"], tmp_path / "again").damaged == 1
    assert refused > 250


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes here")
@pytest.mark.parametrize("name", ["records.jsonl", "records.jsonl.gz", "config.json", "finished.json"])
def test_a_pipe_that_never_ends_is_refused(name: str, tmp_path: Path) -> None:
    folder = finished_run(tmp_path)
    for path in folder.glob(name.removesuffix(".gz") + "*"):
        path.unlink()
    os.mkfifo(folder / name)
    if name == "config.json":
        assert "it is not a regular file" in read_evidence(tmp_path).left_out[0]
    else:
        assert "it is not a regular file" in read_evidence(tmp_path).damaged[0]
    assert "it is not a regular file" in pack([tmp_path], tmp_path / "packed").refused[0]
