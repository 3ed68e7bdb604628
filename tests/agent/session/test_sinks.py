"""Records in other places."""

from __future__ import annotations

import sys
import types
from pathlib import Path
from typing import Any

import pytest

from backsweep.agent.session.records import RecordWriter, TensorBoard, TimingRecord, WeightsAndBiases


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_tensorboard_gets_every_number(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    writer = RecordWriter(tmp_path, sinks=(TensorBoard(tmp_path / "tensorboard"),))
    writer.write(TimingRecord(step=8, seconds={"network": 0.25}, steps=8, updates=2))
    writer.close()
    events = EventAccumulator(str(tmp_path / "tensorboard"))
    events.Reload()
    (event,) = events.Scalars("timing/seconds/network")
    assert (event.step, event.value) == (8, 0.25)


def test_weights_and_biases_gets_every_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    logged: list[dict[str, Any]] = []

    class Run:
        def log(self, numbers: dict[str, Any]) -> None:
            logged.append(numbers)

        def finish(self) -> None:
            logged.append({"finished": True})

    module = types.ModuleType("wandb")
    module.init = lambda **arguments: logged.append(arguments) or Run()  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "wandb", module)
    sink = WeightsAndBiases("project", "run", {"seed": 3}, tmp_path)
    sink.write(TimingRecord(step=8, seconds={"network": 0.25}, steps=8, updates=2))
    sink.close()
    assert logged[0] == {"project": "project", "name": "run", "config": {"seed": 3}, "dir": str(tmp_path)}
    assert logged[1]["timing/seconds/network"] == 0.25
    assert logged[1]["step"] == 8
    assert logged[2] == {"finished": True}


def test_what_is_not_installed_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wandb", None)
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(ValueError, match=r"backsweep\[wandb\]"):
        WeightsAndBiases("project", "run", {}, tmp_path)
    with pytest.raises(ValueError, match=r"backsweep\[tensorboard\]"):
        TensorBoard(tmp_path)
