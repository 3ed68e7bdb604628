"""The short form of `make torture`: every attack once, with a fixed seed."""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import torture

HERE = Path(__file__).parent
MADE_UP = "made-up runs"


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="attacks use what Linux has")
def test_every_attack_once() -> None:
    train = importlib.util.find_spec("torch") is not None
    names = [name for name in torture.ATTACKS if train or ("stopped and resumed" not in name and name != MADE_UP)]
    done = subprocess.run(
        [sys.executable, str(HERE / "torture.py"), "--minutes", "0", "--seed", "1", "--only", *names],
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    rows = re.findall(r"^\| (.+) \| [\d,]+ \| ([\d,]+) \| (\d+) \|$", done.stdout, re.MULTILINE)
    assert [name for name, _, _ in rows] == names
    assert all(int(tried.replace(",", "")) > 0 and failed == "0" for _, tried, failed in rows)


def test_the_page_shows_the_recorded_campaigns() -> None:
    record = torture.read_record(HERE.parent / "benchmarks" / "results" / "torture.json")
    page = (HERE.parent / "docs" / "reliability.md").read_text()
    shown = page.split(torture.BEGIN)[1].split(torture.END)[0].strip()
    assert shown == torture.table(record)


def test_a_round_leaves_no_files_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def in_process(name: str, seed: int, folder: str, context: object) -> str:
        Path(folder, "left").write_text("by a process that was killed")
        assert Path(folder).parent == tmp_path
        return "it hung"

    monkeypatch.setattr(torture, "IN_MEMORY", tmp_path)
    monkeypatch.setattr(torture, "in_process", in_process)
    assert torture.one_round("damaged files", 1, None) == "it hung"
    assert list(tmp_path.iterdir()) == []


def test_a_record_is_added_to(tmp_path: Path) -> None:
    record: list[torture.Campaign] = []
    for tried, code in ((3, "a"), (4, "b")):
        campaign = torture.Campaign("2026-01-02", "2026-01-02", code, "machine")
        campaign.attacks["damaged files"] = torture.Score(1, tried, 60.0, ["it broke"] * (tried == 4))
        torture.write_record(tmp_path / "record.json", [*record, campaign])
        record = torture.read_record(tmp_path / "record.json")
        assert len(record) == (1 if tried == 3 else 2)
    text = torture.table(record)
    assert "| damaged files | 5,000 | 3 | 0 | 4 | 1 |" in text
    assert re.search(
        r"The sum of 2 campaigns of 2 states of the code from 2026-01-02 to [\d-]+, 2 minutes: machine\.$", text
    )


def test_goals_count_what_was_tried_with_the_same_code() -> None:
    """Later changes may have broken what earlier campaigns found whole."""
    names = ["damaged files", "crafted folders"]
    record = []
    for code, tried in (("a", 10_000), ("b", 4_000)):
        scores = {name: torture.Score(1, tried, 60.0) for name in names}
        record.append(torture.Campaign("2026-01-02", "2026-01-02", code, "machine", scores))
    options = argparse.Namespace(goals=True, minutes=None, only=names)
    assert next(torture.in_turn(options, record)) == "damaged files"  # 4,000 of 5,000; of the other's 1,000 all
    record.pop()
    assert list(torture.in_turn(options, record)) == []
