"""The short form of `make torture`: every attack once, with a fixed seed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="attacks use what Linux has")
def test_every_attack_once() -> None:
    done = subprocess.run(
        [sys.executable, str(HERE / "torture.py"), "--minutes", "0", "--seed", "1"],
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    rows = re.findall(r"^\| (.+) \| ([\d,]+) \| (\d+) \|$", done.stdout, re.MULTILINE)
    assert len(rows) >= 10
    assert all(int(tried.replace(",", "")) > 0 and failed == "0" for _, tried, failed in rows)


def test_the_page_shows_a_campaign() -> None:
    page = (HERE.parent / "docs" / "reliability.md").read_text()
    assert re.search(r"<!-- torture: begin -->\n\n\| attack \| tried \| failed \|", page)
    assert re.search(r"Run on \d{4}-\d\d-\d\d for \d+ minutes", page)
