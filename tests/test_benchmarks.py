"""The benchmarks run and write their tables; how fast anything is, is not asked here."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

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
    assert "| work | target | ours | median, p99 | best peer |" in text
    results = json.loads(numbers.read_text())
    assert results["machine"]["packages"]["numpy"]
    # A peer that is not installed is in the results too, with the reason.
    assert all({"numbers", "missing"} & cell.keys() for cell in results["cells"].values())


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
