"""The example scripts run as they are."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.py"))
# Enough for updates, renewed values and a line of progress; that it learns takes longer than a test should.
SHORTER = {"dqn_single_file": ["--steps", "2500"]}


def test_there_are_examples() -> None:
    assert SHORTER.keys() <= {script.stem for script in EXAMPLES}


@pytest.mark.parametrize("script", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs(script: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-W", "error", str(script), *SHORTER.get(script.stem, [])]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=600)
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip(), "an example should say what it found"
