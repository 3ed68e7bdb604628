"""Finished runs as compact records."""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from backsweep.agent import RunConfig, train, train_fleet
from backsweep.agent.session.records import read_records
from backsweep.lab import cli
from backsweep.lab.claims.evidence import read_evidence
from backsweep.lab.claims.question import Grid, Variant
from backsweep.lab.runs import jobs
from backsweep.lab.runs.packing import compact, pack
from backsweep.lab.runs.worker import work
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
    train_fleet({f"lane {seed}": chain(seed) for seed in (101, 102)}, root / "fleet", quiet=True)
    grid = Grid(("nchain-6",), (Variant("uer", "uer"),), (100,), OPTIONS)
    (job,) = jobs.plan(root / "question", [grid], "process").jobs
    assert work(job.order) == 0
    shutil.copytree(root / "alone", root / "stopped")
    (root / "stopped" / "finished.json").unlink()
    return root


def records(path: Path) -> list[dict[str, Any]]:
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return [json.loads(line) for line in text.splitlines()]


def digests(root: Path) -> dict[str, str]:
    return {
        str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


def test_runs_of_every_origin(runs: Path, tmp_path: Path) -> None:
    result = pack([runs], tmp_path)
    assert [refusal.rsplit("/", 1)[-1] for refusal in result.refused] == ["stopped: not finished"]
    assert sorted((path.parent.parent.name, path.parent.name.split("-")[0], path.name) for path in result.packed) == [
        ("nchain-6", "ter", "seed-100"),
        ("nchain-6", "ter", "seed-101"),
        ("nchain-6", "ter", "seed-102"),
        ("nchain-6", "uer", "seed-100"),
    ]
    (alone,) = [path for path in result.packed if "ter" in path.parent.name and path.name == "seed-100"]
    assert sorted(path.name for path in alone.iterdir()) == ["config.json", "finished.json", "records.jsonl.gz"]
    for name in ("config.json", "finished.json"):
        assert (alone / name).read_bytes() == (runs / "alone" / name).read_bytes()


def test_nothing_of_the_evaluations_or_the_seconds_is_lost(runs: Path, tmp_path: Path) -> None:
    pack([runs], tmp_path)
    before, after = runs / "alone", next(tmp_path.glob("runs/nchain-6/ter-*/seed-100"))
    assert read_records(after, "evaluation") == read_records(before, "evaluation")
    whole, packed = records(before / "records.jsonl"), records(after / "records.jsonl.gz")
    assert [record["step"] for record in packed if record["kind"] == "replay"] == [100, 200, 300]
    assert all(record in whole for record in packed if record["kind"] != "timing")

    def total(found: list[dict[str, Any]], name: str) -> float:
        return sum(record["seconds"].get(name, 0.0) for record in found if record["kind"] == "timing")

    for name in ("network", "replay", "evaluation"):
        assert total(packed, name) == pytest.approx(total(whole, name), abs=1e-5)
    for name in ("steps", "updates"):
        sums = [sum(record[name] for record in found if record["kind"] == "timing") for found in (whole, packed)]
        assert sums[0] == sums[1]


def test_a_fleets_seconds_say_how_many_shared_them(runs: Path, tmp_path: Path) -> None:
    pack([runs], tmp_path)
    for seed, lanes in ((100, None), (101, 2)):
        (path,) = tmp_path.glob(f"runs/nchain-6/ter-*/seed-{seed}/records.jsonl.gz")
        assert {record.get("lanes") for record in records(path) if record["kind"] == "timing"} == {lanes}


def test_packing_again_changes_nothing(runs: Path, tmp_path: Path) -> None:
    pack([runs], tmp_path / "a")
    first = digests(tmp_path / "a")
    again = pack([runs], tmp_path / "a")
    assert (again.packed, again.known) == ([], 4)
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
    result = pack([tmp_path / "evaluation", tmp_path / "timing"], tmp_path / "results")
    assert result.conflicts == 2
    assert "with other evaluations" in result.refused[0]
    assert "alike but for its timings" in result.refused[1]
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
    (source / "empty" / "records.jsonl").unlink()
    (source / "broken" / "config.json").write_text("{")
    result = pack([source], tmp_path / "results")
    assert len(result.packed) == 1
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
    assert [(record["kind"], record["step"]) for record in compact(given, 1)] == [
        ("training", 90),
        ("timing", 90),
        ("evaluation", 100),
        ("timing", 120),
    ]
    assert next(record for record in compact(given, 1) if record["kind"] == "timing")["seconds"] == {"network": 3.0}


def test_the_command(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    parser = argparse.ArgumentParser()
    cli.add_commands(parser.add_subparsers(required=True))
    parsed = parser.parse_args(["experiment", "pack", str(runs), "--results", str(tmp_path)])
    assert parsed.run(parsed) == 0
    shown = capsys.readouterr()
    assert "4 runs packed" in shown.out
    assert "stopped: not finished" in shown.err
