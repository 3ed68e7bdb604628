"""The demonstration, with shorter runs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from backsweep import demo as demonstration
from backsweep.agent.session import demo


def test_the_demonstration_ends_with_a_picture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo, "SEEDS", (0,))
    monkeypatch.setattr(demo, "WALK", 1_500)
    monkeypatch.setattr(demo, "REPORT_EVERY", 0.2)
    monkeypatch.setattr(demo, "is_compiled", lambda kernel: False)
    demo.run(tmp_path, steps=240)
    output = capsys.readouterr().out
    assert "  starting\n" in output
    assert "uniform       not yet" in output
    assert "backsweep train minigrid/doorkey" in output
    assert (tmp_path / "demo.png").stat().st_size > 10_000


def test_nothing_is_compiled_that_is_cached(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "WALK", 1_500)
    monkeypatch.setattr(demo, "is_compiled", lambda kernel: True)
    monkeypatch.delattr(demo, "compile_training")
    before, after, distance = demo.compile_and_plan()
    assert len(before) == len(after) == len(distance) > 10


def test_how_far_the_runs_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    curves = {"graph-0": [(10, 0.2), (20, 0.95)], "ter-0": [(10, 0.0)], "uer-0": [(10, 0.5)]}
    monkeypatch.setattr(demo, "curve_of", lambda folder: curves[folder.name])
    shares = [[("graph", 0), ("ter", 0)], [("uer", 0)]]
    assert demo.so_far(shares, tmp_path) == "step     10; solved now: graph values 1 of 1, TER 0 of 1, uniform 0 of 1"


def test_solved_means_from_there_on() -> None:
    assert demo.solved_at([(10, 0.95), (20, 0.5), (30, 0.9), (40, 1.0)]) == "30"
    assert demo.solved_at([(10, 1.0), (20, 0.89)]) == "not yet"


def test_planning_gives_value_to_states_far_from_the_goal() -> None:
    before, after, distance = demo.planned_states(demo.random_walks())
    far = distance > 3
    assert far.any()
    near = before[distance == 1].max()
    assert np.median(after[far]) > np.median(before[far])
    assert after[far].max() < after[distance == 1].max() <= near + 1e-6


def test_the_order_of_updates_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    demonstration.show_order(tmp_path)
    assert "which states each batch" in capsys.readouterr().out
    assert (tmp_path / "sweep.png").stat().st_size > 10_000
