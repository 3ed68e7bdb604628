"""How convolutions are computed is chosen when a run starts, noted with it, and kept when it is resumed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from backsweep.agent import train
from backsweep.agent.fleet import fleet as fleets
from backsweep.agent.session import checkpoint
from trainer_helpers import chain, grid


def noted(folder: Path) -> object:
    return json.loads((folder / "machine.json").read_text())["convolutions"]


def kept(folder: Path) -> object:
    return checkpoint.load(folder, device="cpu", warn=pytest.fail).fleet.learner.convolutions


def test_what_was_asked_for_is_noted_and_kept(tmp_path: Path) -> None:
    config = grid(method="uer", steps=210, evaluation_interval=210, evaluation_episodes=1)
    train(config, tmp_path / "run", quiet=True, convolutions_by="direct")
    assert noted(tmp_path / "run") == kept(tmp_path / "run") == "direct"


def test_a_measured_choice_is_noted_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = grid(method="uer", steps=210, evaluation_interval=210, evaluation_episodes=1, dtype="float32")
    asked = []

    def measured(network: object, batch_size: int, dtype: str) -> str:
        asked.append((batch_size, dtype))
        return "mixed"

    with monkeypatch.context() as patch:
        patch.setattr(fleets, "fastest_path", measured)
        train(config, tmp_path / "run", quiet=True)
    assert asked == [(config.batch_size, "float32")]
    assert noted(tmp_path / "run") == kept(tmp_path / "run") == "mixed"


def test_tables_have_no_choice(tmp_path: Path) -> None:
    train(chain(method="uer"), tmp_path / "run", quiet=True)
    assert noted(tmp_path / "run") is kept(tmp_path / "run") is None
