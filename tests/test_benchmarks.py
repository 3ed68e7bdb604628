"""The benchmarks run and write their tables; how fast anything is, is not asked here."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from benchmarks import bands, coverage

from backsweep.tasks.exact import exact

ROOT = Path(__file__).resolve().parent.parent


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "benchmarks.run", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)


def test_a_smoke_run_writes_the_table_between_the_marks(tmp_path: Path) -> None:
    docs, numbers = tmp_path / "performance.md", tmp_path / "replay.json"
    docs.write_text("# Title\n\n<!-- benchmarks: begin -->\nold\n<!-- benchmarks: end -->\n\nTail\n")
    done = run("--quick", "--docs", str(docs), "--json", str(numbers))
    assert done.returncode == 0, done.stderr
    text = docs.read_text()
    assert text.startswith("# Title\n")
    assert text.endswith("Tail\n")
    assert "old" not in text
    assert "| work | target | ours, " in text
    results = json.loads(numbers.read_text())
    assert results["machine"]["packages"]["numpy"]
    # A peer that is not installed is in the results too, with the reason.
    assert all({"numbers", "missing"} & cell.keys() for cell in results["cells"].values())


def test_the_documented_limits_of_a_fleet_are_the_computed_ones() -> None:
    pytest.importorskip("torch", reason="the learner needs torch")
    from benchmarks.learner import TASKS, limit

    documented = (ROOT / "docs" / "performance-fleet.md").read_text()
    for task in TASKS:
        steps = int(limit(task).split(" steps/s")[0].split()[-1].replace(",", ""))
        rounded = int(float(f"{steps:.3g}"))
        assert re.search(rf"\| {task.network.layout.size:,} \| .* \| {rounded:,}( steps/s)? \|", documented), task.name


def test_a_pattern_that_fits_nothing_is_refused() -> None:
    done = run("--only", "no such cell")
    assert done.returncode == 2
    assert "no cell matches" in done.stderr


def test_the_library_never_imports_the_benchmarks() -> None:
    for path in (ROOT / "src").rglob("*.py"):
        text = path.read_text()
        assert "import benchmarks" not in text, path
        assert "from benchmarks" not in text, path


def test_a_report_over_made_up_runs_is_timed(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks.reporting", "--runs", "12", "--out", str(tmp_path / "found.json")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "found.json").read_text())["runs"] == 12


def test_a_smoke_run_of_planning_writes_its_tables(tmp_path: Path) -> None:
    docs, numbers = tmp_path / "planning.md", tmp_path / "planning.json"
    docs.write_text("# Title\n\n<!-- benchmarks: begin -->\nold\n<!-- benchmarks: end -->\n\nTail\n")
    command = [sys.executable, "-m", "benchmarks.planning", "--quick", "--docs", str(docs), "--json", str(numbers)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    text = docs.read_text()
    assert text.startswith("# Title\n")
    assert text.endswith("Tail\n")
    assert "old" not in text
    assert "A smoke run: the numbers mean nothing." in text
    orders = json.loads(numbers.read_text())["renewals"][0]["orders"]
    assert set(orders) == {"all new", "the network says less", "1,000 rows", "1,000 rows and the network"}


def test_the_page_about_frameworks_has_the_numbers_of_its_record(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks.integrations_learning import PAGE, RECORD, TITLES, table

    record = json.loads(RECORD.read_text())
    assert record.keys() == TITLES.keys()
    assert table(record) in PAGE.read_text()
    # The same seeds and budget for every framework.
    assert len({part["steps"] for part in record.values()}) == 1
    assert {len(result["first_solved"]) for part in record.values() for result in part["results"].values()} == {3}


def recorded(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "benchmarks.recorded", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)


def test_the_speed_of_runs_is_read_from_their_records(tmp_path: Path) -> None:
    for seed, pace in ((0, 10), (1, 30)):
        run = tmp_path / f"seed-{seed}"
        run.mkdir()
        (run / "config.json").write_text('{"task": "chain", "method": "ter"}')
        timing = {"kind": "timing", "seconds": {"lanes": 1.0, "network": 3.0}, "steps": 4 * pace}
        lines = [json.dumps({**timing, "step": 4 * pace * (stretch + 1)}) + "\n" for stretch in range(5)]
        (run / "records.jsonl").write_text("".join(lines))
    done = recorded(str(tmp_path), "--first", "2", "--last", "18")
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    assert first == "2 runs from 2 to 18 s: 40 steps/s together"
    assert " ".join(second.split()) == "chain ter 20 steps/s a run; us a step: lanes 12500 network 37500"


def test_the_speed_of_runs_that_did_not_run_together_is_refused(tmp_path: Path) -> None:
    assert "no runs below" in recorded(str(tmp_path)).stderr
    folder = "results/runs/minigrid-doorkey.paper.runs.jsonl.xz"
    assert "there is no folder or archive nowhere" in recorded("nowhere:ter").stderr
    assert "5 of 5 runs end before --last 9000" in recorded(f"{folder}:ter", "--last", "9000").stderr
    assert "30 of 30 runs end before --last 9000" in recorded(folder, "--last", "9000").stderr
    assert "--first must be at least 0 and below --last" in recorded(folder, "--first", "700").stderr


def test_coverage_counts_starts_with_a_known_way_to_the_goal() -> None:
    """All moves tried solve every start; and what the page says is what the record says."""
    walk = coverage.Walk(exact("minigrid/redbluedoors"), "graph", 0)
    assert walk.solved() == 0.0
    for _ in range(50):
        walk.step()
    walk.tried[:] = True
    assert walk.solved() == pytest.approx(1.0)
    record = json.loads(coverage.RECORD.read_text())
    after = {(row["task"], row["rule"]): np.mean(row["solved"], axis=0)[1] for row in record["rows"]}
    page = (ROOT / "docs" / "graph_values.md").read_text()
    for title, rule in (("`explore`", "graph"), ("to the nearest untried action", "nearest"), ("uniform", "uniform")):
        shares = " | ".join(f"{after[task, rule]:.2f}" for task in coverage.TASKS)
        assert f"| {title} | {shares} |" in page


def test_bands_store_less_and_the_page_says_what_the_record_says() -> None:
    measured = bands.measure("sokoban/6x6-2", 300, seed=0)
    assert measured["distinct_bands"] < measured["bands_of_an_image"] * measured["distinct_images"]
    page = (ROOT / "docs" / "performance-details.md").read_text()
    for row in json.loads(bands.RECORD.read_text())["rows"]:
        whole, divided = row["whole"], row["bands"]
        assert divided["megabytes"] < whole["megabytes"] / 4
        assert f"{row['distinct_images']:,} of 21 KB | {row['distinct_bands']:,} of " in page
        for name, digits, unit in (("megabytes", 0, "MB"), ("add_us", 1, "us"), ("sample_us", 0, "us")):
            assert f"| {whole[name]:,.{digits}f} and {divided[name]:,.{digits}f} {unit} |" in page
