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


ODD = """
import gymnasium

class Odd(gymnasium.Env):
    observation_space, action_space = gymnasium.Space(), gymnasium.spaces.Discrete(2)

gymnasium.register("Odd-v0", Odd)
"""


def test_the_single_file_says_which_observations_it_cannot_take(tmp_path: Path) -> None:
    (tmp_path / "odd.py").write_text(ODD)
    (script,) = (each for each in EXAMPLES if each.stem == "dqn_single_file")
    start = f"import runpy, sys; sys.argv = ['dqn', '--env', 'odd:Odd-v0']; runpy.run_path({str(script)!r})"
    result = subprocess.run([sys.executable, "-c", start], cwd=tmp_path, capture_output=True, text=True, timeout=600)
    assert result.returncode == 2
    assert "--env must have observations of numbers, odd:Odd-v0 has others" in result.stderr
