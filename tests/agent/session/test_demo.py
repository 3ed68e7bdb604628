"""The demonstration, with shorter runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from backsweep import demo as demonstration
from backsweep.agent.session import demo


def test_the_demonstration_ends_with_a_picture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo, "CHAIN_STEPS", 1_100)
    monkeypatch.setattr(demo, "METHOD_NAMES", ("uer", "ter"))
    monkeypatch.setattr(demo, "GRID_STEPS", 3_000)
    demonstration.run(tmp_path, 0, learn=True)
    output = capsys.readouterr().out
    assert "The curves:" in output
    assert "Next: docs/training.md" in output
    assert (tmp_path / "curves.png").stat().st_size > 10_000
