"""Finished runs as compact records."""

from __future__ import annotations

import argparse
import gzip
import hashlib
import itertools
import json
import lzma
import math
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from backsweep.agent import RunConfig, train, train_fleet
from backsweep.lab import cli
from backsweep.lab.claims.evidence import read_evidence
from backsweep.lab.claims.question import Grid, Variant
from backsweep.lab.records import ArchivedRun, archives_below, read_archive
from backsweep.lab.runs import jobs
from backsweep.lab.runs.packing import compact, pack, thinned
from backsweep.lab.runs.worker import work
from backsweep.record_files import without_digest
from backsweep.snapshot.errors import WriterError
from backsweep.snapshot.lock import writer_lock
from trainer_helpers import paper_config

OPTIONS: dict[str, Any] = {
    "steps": 300,
    "warmup_steps": 100,
    "evaluation_interval": 100,
    "evaluation_episodes": 2,
    "record_interval": 20,
    "probe_size": 8,
    "capacity": 300,
}


def chain(seed: int, **options: Any) -> RunConfig:
    return paper_config("nchain-6", **{"method": "ter", "seed": seed, **OPTIONS, **options})


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One run by itself, a fleet of two, one by a question, and one that did not come to its end."""
    root = tmp_path_factory.mktemp("runs")
    train(chain(100), root / "alone", quiet=True)
    train_fleet({f"run {seed}": chain(seed) for seed in (101, 102)}, root / "fleet", quiet=True)
    grid = Grid(("nchain-6",), (Variant("uer", "uer"),), (100,), OPTIONS)
    (job,) = jobs.plan(root / "question", [grid], "process").jobs
    assert work(job.order) == 0
    shutil.copytree(root / "alone", root / "stopped")
    (root / "stopped" / "finished.json").unlink()
    return root


def records(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def packed_runs(root: Path) -> dict[tuple[str, int], ArchivedRun]:
    found = [run for path in archives_below(root) for run in read_archive(path)]
    return {(run.config["method"], run.config["seed"]): run for run in found if run is not None}


def digests(root: Path) -> dict[str, str]:
    return {
        str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


def test_runs_of_every_origin(runs: Path, tmp_path: Path) -> None:
    result = pack([runs], tmp_path)
    assert [refusal.rsplit("/", 1)[-1] for refusal in result.refused] == ["stopped: not finished"]
    assert result.packed == 4
    assert result.files == [tmp_path / "runs" / "nchain-6.paper.runs.jsonl.xz"]
    assert result.nbytes == result.files[0].stat().st_size
    found = packed_runs(tmp_path)
    assert list(found) == [("ter", 100), ("ter", 101), ("ter", 102), ("uer", 100)]
    assert found["ter", 100].config == json.loads((runs / "alone" / "config.json").read_text())
    assert found["ter", 100].finished == without_digest(json.loads((runs / "alone" / "finished.json").read_text()))


def test_nothing_of_the_evaluations_or_the_seconds_is_lost(runs: Path, tmp_path: Path) -> None:
    pack([runs], tmp_path)
    whole, packed = records(runs / "alone" / "records.jsonl"), packed_runs(tmp_path)["ter", 100]

    def of(kind: str) -> list[dict[str, Any]]:
        return [{**record, "kind": kind} for record in packed.records(kind)]

    assert of("evaluation") == [record for record in whole if record["kind"] == "evaluation"]
    assert packed.column("replay", "step") == [100, 200, 300]
    assert all(record in whole for kind in ("replay", "training") for record in of(kind))
    timings = [record for record in whole if record["kind"] == "timing"]

    def total(found: list[dict[str, Any]], name: str) -> float:
        return math.fsum(record["seconds"].get(name, 0.0) for record in found)

    for name in ("network", "replay", "evaluation"):
        assert total(of("timing"), name) == pytest.approx(total(timings, name), abs=1e-5)
    for name in ("steps", "updates"):
        assert sum(packed.column("timing", name)) == sum(record[name] for record in timings)


def test_a_fleets_seconds_say_how_many_shared_them(runs: Path, tmp_path: Path) -> None:
    pack([runs], tmp_path)
    found = packed_runs(tmp_path)
    assert set(found["ter", 100].column("timing", "runs")) == {None}
    assert set(found["ter", 101].column("timing", "runs")) == {2}


def test_older_records_call_the_runs_that_shared_seconds_lanes(runs: Path, tmp_path: Path) -> None:
    pack([runs / "fleet"], tmp_path / "new")
    (path,) = archives_below(tmp_path / "new")
    new = lzma.decompress(path.read_bytes())
    assert b'"runs":[2,' in new
    old = tmp_path / "old" / path.relative_to(tmp_path / "new")
    old.parent.mkdir(parents=True)
    old.write_bytes(lzma.compress(new.replace(b'"runs":[2,', b'"lanes":[2,')))
    assert list(read_archive(old)) == list(read_archive(path))
    again = pack([runs / "fleet"], tmp_path / "old")
    assert (again.packed, again.known, again.refused) == (0, 2, [])
    fleet = tmp_path / "fleet"
    shutil.copytree(runs / "fleet", fleet)
    names = json.loads((fleet / "fleet.json").read_text())["runs"]
    (fleet / "fleet.json").write_text(json.dumps({"lanes": names}))
    assert pack([fleet], tmp_path / "new").known == 2


def test_seeds_for_tuning_lie_apart(runs: Path, tmp_path: Path) -> None:
    shutil.copytree(runs / "alone", tmp_path / "made")
    config = json.loads((tmp_path / "made" / "config.json").read_text())
    (tmp_path / "made" / "config.json").write_text(json.dumps({**config, "seed": 10_000}))
    (file,) = pack([tmp_path / "made"], tmp_path / "results").files
    assert file.name == "nchain-6.paper.tuning.runs.jsonl.xz"
    evidence = read_evidence(tmp_path / "results")
    assert (len(evidence.runs), len(evidence.tuning)) == (0, 1)


def test_the_order_of_packing_does_not_matter(runs: Path, tmp_path: Path) -> None:
    pack([runs], tmp_path / "together")
    for name in ("question", "fleet", "alone"):
        pack([runs / name], tmp_path / "one by one")
    assert digests(tmp_path / "together") == digests(tmp_path / "one by one")


def test_runs_packed_one_by_one_are_packed_together(runs: Path, tmp_path: Path) -> None:
    """Results of earlier releases: a folder for each run, with packed records."""
    old = tmp_path / "old" / "seed-100"
    shutil.copytree(runs / "alone", old)
    (old / "records.jsonl.gz").write_bytes(gzip.compress((old / "records.jsonl").read_bytes()))
    (old / "records.jsonl").unlink()
    assert pack([tmp_path / "old"], tmp_path / "a").packed == 1
    pack([runs / "alone"], tmp_path / "b")
    assert digests(tmp_path / "a") == digests(tmp_path / "b")


def test_an_archive_of_an_earlier_release_is_read_and_becomes_a_new_one(runs: Path, tmp_path: Path) -> None:
    (new,) = pack([runs / "alone"], tmp_path).files
    held, old = list(read_archive(new)), new.with_suffix(".gz")
    old.write_bytes(gzip.compress(lzma.decompress(new.read_bytes())))
    new.unlink()
    assert list(read_archive(old)) == held
    assert len(read_evidence(tmp_path).runs) == 1
    assert pack([runs / "alone"], tmp_path).known == 1
    assert archives_below(tmp_path) == [old]
    assert pack([runs], tmp_path).known == 1
    assert archives_below(tmp_path) == [new]
    assert pack([runs], tmp_path).packed == 0


def test_an_old_archive_that_an_interrupted_packing_left_counts_once(runs: Path, tmp_path: Path) -> None:
    (new,) = pack([runs / "alone"], tmp_path).files
    old = new.with_suffix(".gz")
    old.write_bytes(gzip.compress(lzma.decompress(new.read_bytes())))
    assert archives_below(tmp_path) == [new]
    assert len(read_evidence(tmp_path).runs) == 1
    pack([runs], tmp_path)
    assert not old.exists()


def test_a_python_without_lzma_is_named(runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (file,) = pack([runs / "alone"], tmp_path / "a").files
    monkeypatch.setitem(sys.modules, "lzma", None)
    with pytest.raises(ValueError, match="this Python was built without lzma"):
        list(read_archive(file))
    with pytest.raises(ValueError, match="this Python was built without lzma"):
        pack([runs / "alone"], tmp_path / "b")
    assert [path.name for path in (tmp_path / "b").rglob("*") if path.is_file()] == ["writer.lock"]


def test_an_archive_that_cannot_be_read_is_never_written_over(runs: Path, tmp_path: Path) -> None:
    (file,) = pack([runs / "alone"], tmp_path).files
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2])
    before = digests(tmp_path)
    with pytest.raises(ValueError, match=r"it is damaged or incomplete .* move it away"):
        pack([runs / "fleet"], tmp_path)
    assert digests(tmp_path) == before
    assert "nchain-6.paper.runs.jsonl.xz: it is damaged or incomplete" in read_evidence(tmp_path).damaged[0]
    moved = tmp_path / "moved"
    moved.mkdir()
    file.rename(moved / file.name)
    assert "it is damaged or incomplete" in pack([moved], tmp_path / "other").refused[0]
    with lzma.open(file, "wb") as packed:
        packed.write(b"{nonsense\n")
    with pytest.raises(ValueError, match=r"line 1 cannot be read; move the file away"):
        pack([runs / "fleet"], tmp_path)
    assert read_evidence(tmp_path / "runs").torn == {"nchain-6.paper.runs.jsonl.xz": 1}
    assert "line 1 cannot be read" in pack([tmp_path / "runs"], tmp_path / "other").refused[0]


def test_two_packings_at_once_lose_nothing(runs: Path, tmp_path: Path) -> None:
    (tmp_path / "results" / "runs").mkdir(parents=True)
    with writer_lock(tmp_path / "results" / "runs"), pytest.raises(WriterError, match="another writer"):
        pack([runs], tmp_path / "results")
    assert not archives_below(tmp_path / "results")
    assert pack([runs], tmp_path / "results").packed


def test_packing_again_changes_nothing(runs: Path, tmp_path: Path) -> None:
    pack([runs], tmp_path / "a")
    first = digests(tmp_path / "a")
    again = pack([runs], tmp_path / "a")
    assert (again.packed, again.known, again.files) == (0, 4, [])
    pack([tmp_path / "a"], tmp_path / "b")  # what is packed can be packed from there
    assert digests(tmp_path / "a") == digests(tmp_path / "b") == first


def test_another_run_is_never_overwritten(runs: Path, tmp_path: Path) -> None:
    pack([runs / "alone"], tmp_path / "results")
    before = digests(tmp_path / "results")
    for kind, field, value in (("evaluation", "mean_return", 9.0), ("timing", "seconds", {"network": 9.0})):
        shutil.copytree(runs / "alone", tmp_path / kind)
        found = records(tmp_path / kind / "records.jsonl")
        next(record for record in found if record["kind"] == kind)[field] = value
        text = "".join(json.dumps(record, separators=(",", ":")) + "\n" for record in found)
        (tmp_path / kind / "records.jsonl").write_text(text)
        (tmp_path / kind / "finished.json").write_text("{}")  # without a digest, which would show the change
    result = pack([tmp_path / "evaluation", tmp_path / "timing"], tmp_path / "results")
    assert result.conflicts == 2
    assert "with other evaluations" in result.refused[0]
    assert "equal except for its timings" in result.refused[1]
    assert digests(tmp_path / "results") == before


def test_packed_runs_are_evidence_and_are_not_run_again(runs: Path, tmp_path: Path) -> None:
    pack([runs], tmp_path)
    found = read_evidence(tmp_path)
    assert len(found.runs) == 4
    assert all(run.finished and len(run.steps) == 3 for run in found.runs)
    assert {run.graph["rows"] for run in found.runs} == {300}
    assert not found.left_out
    assert not found.torn
    grid = Grid(("nchain-6",), (Variant("ter", "ter"),), (100, 101, 102, 103), OPTIONS)
    for engine in ("process", "fleet"):
        plan = jobs.plan(tmp_path, [grid], engine)  # type: ignore[arg-type]
        assert (plan.finished, plan.total, [job.runs for job in plan.jobs]) == (3, 4, [1])


def test_what_cannot_be_read_is_reported_and_the_rest_goes_on(runs: Path, tmp_path: Path) -> None:
    source = tmp_path / "runs"
    for name in ("torn", "empty", "broken", "whole"):
        shutil.copytree(runs / "alone", source / name)
    with open(source / "torn" / "records.jsonl", "ab") as file:
        file.write(b'{"kind":"evalu')
    (source / "torn" / "finished.json").write_text("{}")  # without a digest, which would show the change
    (source / "empty" / "records.jsonl").unlink()
    (source / "broken" / "config.json").write_text("{")
    result = pack([source], tmp_path / "results")
    assert result.packed == 1
    text = "\n".join(result.refused)
    assert "empty: no records" in text
    assert "broken: config.json cannot be read" in text
    assert "of records.jsonl cannot be read" in text


def test_places_that_make_no_sense_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is not a folder of runs"):
        pack([tmp_path / "nowhere"], tmp_path)
    (tmp_path / "runs").mkdir()
    with pytest.raises(ValueError, match="packing copies runs from elsewhere"):
        pack([tmp_path / "runs"], tmp_path)


def test_records_at_steps_of_their_own() -> None:
    """Where records and evaluations do not coincide, the last record before an evaluation stands for its interval."""
    timing = {"kind": "timing", "seconds": {"network": 1.0}, "steps": 30, "updates": 1}
    given = [
        *({**record, "step": step} for step in (30, 60, 90) for record in ({"kind": "training"}, timing)),
        {"kind": "evaluation", "step": 100},
        {**timing, "step": 120},
    ]
    kept = compact(given)
    assert {kind: [record["step"] for record in found] for kind, found in kept.items()} == {
        "evaluation": [100],
        "timing": [90, 120],
        "training": [90],
    }
    assert kept["timing"][0]["seconds"] == {"network": 3.0}


def test_long_runs_are_thinned_but_not_their_evaluations() -> None:
    given = [{"kind": kind, "step": step} for step in range(100) for kind in ("training", "evaluation")]
    kept = compact(given)
    assert len(kept["evaluation"]) == 100
    steps = [record["step"] for record in kept["training"]]
    assert len(steps) == 40
    assert steps[-1] == 99
    assert {after - before for before, after in itertools.pairwise(steps)} == {2, 3}
    assert thinned(given, 1) == given[-1:]
    assert thinned([]) == []


@pytest.mark.parametrize("records", [[], [{"a": 1}, {"a": None}], [{"a": 1}, {"b": 2, "c": {"d": 3}}], [{}]])
def test_records_come_back_as_they_were(records: list[dict[str, Any]]) -> None:
    run = ArchivedRun.of({"seed": 1}, {}, {"training": records})
    line = json.dumps(run.to_json()).encode()
    assert ArchivedRun.from_line(line) == run
    assert ArchivedRun.from_line(line).records("training") == records
    assert ArchivedRun.from_line(line).column("training", "a") == [record.get("a") for record in records]


@pytest.mark.parametrize("line", [b"[]", b"{}", b'{"config": 1, "finished": {}, "records": {}}', b"nothing"])
def test_what_is_no_run_is_refused(line: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        ArchivedRun.from_line(line)


def test_the_command(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    parser = argparse.ArgumentParser()
    cli.add_commands(parser.add_subparsers(required=True))
    parsed = parser.parse_args(["experiment", "pack", str(runs), "--results", str(tmp_path)])
    assert parsed.run(parsed) == 0
    shown = capsys.readouterr()
    assert "4 runs packed" in shown.out
    assert "stopped: not finished" in shown.err
