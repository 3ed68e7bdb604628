"""Small runs for the trainer's tests."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from backsweep.agent import RunConfig, run_config
from backsweep.agent.session.session import Session


def paper_config(task: str | None = None, **options: Any) -> RunConfig:
    """Return a run with the paper's settings, of TER if no other method is named."""
    return run_config(task, **{"method": "ter", "settings": "paper", **options})


SMALL_GRID: dict[str, Any] = {
    "task_options": {"size": 5, "max_steps": 60},
    "convolutions": ((16, 8, 4), (16, 3, 2)),
    "linear": (64,),
    "batch_size": 32,
}


def chain(**options: Any) -> RunConfig:
    """Return a run on NChain that takes a second or two."""
    fields: dict[str, Any] = {
        "steps": 1_500,
        "warmup_steps": 600,
        "evaluation_interval": 500,
        "evaluation_episodes": 5,
        "record_interval": 100,
        "probe_size": 32,
    }
    return paper_config("nchain-10", **{**fields, **options})


def grid(**options: Any) -> RunConfig:
    """Return a run on a small MiniGrid level with a small network."""
    fields: dict[str, Any] = {
        **SMALL_GRID,
        "steps": 600,
        "warmup_steps": 200,
        "epsilon_steps": 500,
        "evaluation_interval": 200,
        "evaluation_episodes": 5,
        "record_interval": 100,
        "target_interval": 50,
        "probe_size": 16,
        "capacity": 400,
    }
    return paper_config("minigrid/simplecrossing-easy", **{**fields, **options})


@contextmanager
def interrupted_at(step: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let Ctrl-C come when a run that is trained within the block has taken so many steps."""
    original = Session._after_turn

    def look_around(self: Session) -> None:
        original(self)
        if self.fleet.step >= step:
            signal.raise_signal(signal.SIGINT)

    with monkeypatch.context() as patch:
        patch.setattr(Session, "_after_turn", look_around)
        yield


def comparable_records(folder: Path) -> list[dict[str, Any]]:
    """Return a run's records without the timings, which are the only ones that may differ."""
    lines = (folder / "records.jsonl").read_text().splitlines()
    return [record for line in lines if (record := json.loads(line))["kind"] != "timing"]


def check_same_records(first: Path, second: Path, but: Collection[str] = ()) -> list[dict[str, Any]]:
    """Check that two runs recorded the same, up to what matrix products may round otherwise; return the records.

    Fields named in `but` may differ.

    Sums of another shape (more runs, other groups) may differ in their last bits from machine to machine. Runs in
    double precision carry that through a few hundred updates without a change of any action; what is really another
    number is further away.
    """
    records = comparable_records(first)
    for one, other in zip(records, comparable_records(second), strict=True):
        _check_same(one, other, f"{one['kind']} at step {one['step']}", but)
    return records


def _check_same(one: dict[str, Any], other: dict[str, Any], place: str, but: Collection[str]) -> None:
    assert one.keys() == other.keys(), place
    for field, value in one.items():
        if isinstance(value, dict):
            _check_same(value, other[field], f"{place}, {field}", but)
        elif field not in but:
            near = pytest.approx(value, rel=1e-9, abs=1e-11) if isinstance(value, float) else value
            assert other[field] == near, f"{place}, {field}"


def command(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "backsweep.cli", *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        **options,
    )
