"""C11: means and percentiles decide, the slowest batch is shown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from backsweep.lab.claims.evidence import read_evidence
from backsweep.lab.claims.question import Verdict
from backsweep.lab.claims.questions import find_question
from backsweep.lab.studies.speed import summary


def decided(root: Path, **ter: float) -> Verdict:
    """Return C11's verdict where PER takes 100 µs in every way, and TER too but for what is given."""
    records: list[dict[str, Any]] = []
    for method in ("per", "ter"):
        for operation in ("sample", "add"):
            calls = np.full((100, 2), 1e-4)
            numbers = {**summary(calls), **(ter if method == "ter" else {})}
            about = {"kind": "speed", "seed": 100, "rows": 1_000, "batch": 64, "task": "minigrid/doorkey"}
            records.append({**about, "method": method, "operation": operation, "round": 0, **numbers})
    (root / "speed").mkdir(parents=True)
    (root / "speed" / "seed-0100.jsonl").write_text("\n".join(map(json.dumps, records)) + "\n")
    return find_question("C11").rule.decide(read_evidence(root))


def test_the_slowest_batch_does_not_decide(tmp_path: Path) -> None:
    found = decided(tmp_path, max=0.05, clock_max=0.1)
    assert found.outcome == "reproduced"
    assert "the slowest 50,000 and 100 µs" in found.short


@pytest.mark.parametrize("slow", [{"mean": 3e-4}, {"mean": 3e-3}, {"p99": 2.1e-4}])
def test_slow_batches_are_not_reproduced(tmp_path: Path, slow: dict[str, float]) -> None:
    assert decided(tmp_path, **slow).outcome == "not reproduced"


def test_records_by_the_clock_alone_are_left_out(tmp_path: Path) -> None:
    decided(tmp_path)
    path = tmp_path / "speed" / "seed-0100.jsonl"
    path.write_text(path.read_text().replace('"p99"', '"p90"'))
    assert find_question("C11").rule.decide(read_evidence(tmp_path)).outcome == "not run"


def test_the_numbers_of_a_round_are_the_processors() -> None:
    seconds = np.column_stack([np.arange(1, 1001) * 1e-6, np.full(1000, 0.5)])
    found = summary(seconds)
    assert (found["min"], found["median"], found["max"]) == (1e-6, 5.005e-4, 1e-3)
    assert (found["p99"], found["p999"]) == (pytest.approx(9.9e-4, rel=1e-3), pytest.approx(9.99e-4, rel=1e-3))
    assert (found["clock_mean"], found["clock_max"]) == (0.5, 0.5)
