"""A process that is killed while it saves leaves the old state or the new one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path


def test_a_hundred_kills_leave_the_old_state_or_the_new_one(tmp_path: Path) -> None:
    here = Path(__file__).parent
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(here), *sys.path])}
    done = subprocess.run(
        [sys.executable, str(here / "kill_rounds.py"), str(tmp_path / "replay"), "100"],
        capture_output=True,
        text=True,
        env=environment,
        timeout=900,
    )
    assert done.returncode == 0, done.stderr
    counts = json.loads(done.stdout)
    assert counts["rounds"] == 100
    assert counts["in a save"] > 0  # how many depends on the machine
    assert counts["saves"] > 0
    assert counts["old"] > 0
