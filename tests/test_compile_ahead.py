"""`backsweep compile` uses everything once, in this process or in others."""

from __future__ import annotations

import pytest

from backsweep import compile_ahead
from backsweep.cli import main


def test_areas_one_after_another(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compile", "--here", "replay", "tasks"]) == 0
    told = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0].strip() for line in told[:2]] == ["replay", "tasks"]
    assert told[2].startswith("done after")


def test_the_runs_that_are_trained_may_share_a_fleet() -> None:
    fleet = pytest.importorskip("backsweep.agent.fleet.fleet")
    fleet.check_same(list(compile_ahead.short_runs().values()))


def test_areas_side_by_side(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compile", "tasks"]) == 0
    assert "  tasks: " in capsys.readouterr().out


def test_a_part_that_fails_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(compile_ahead.sys, "executable", "false")  # a program that fails, whatever it is told
    assert main(["compile", "replay"]) == 1
    found = capsys.readouterr()
    assert "replay failed; 'backsweep compile --here replay' shows how" in found.err
    assert "failed after" in found.out


def test_unknown_areas_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compile", "nonsense"]) == 2
    assert "areas must be of replay, tasks, training, got 'nonsense'" in capsys.readouterr().err


def test_without_torch_training_is_left_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    used = []
    monkeypatch.setattr(
        compile_ahead, "AREAS", {name: lambda name=name: used.append(name) for name in compile_ahead.AREAS}
    )
    monkeypatch.setattr(compile_ahead.importlib.util, "find_spec", lambda name: None)
    assert main(["compile", "--here"]) == 0
    assert used == ["replay", "tasks"]
    assert main(["compile", "--here", "training"]) == 2
    assert "training needs torch" in capsys.readouterr().err
