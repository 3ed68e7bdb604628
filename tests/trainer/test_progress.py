"""What the user sees of a fleet: every run, however many there are."""

from __future__ import annotations

import io

import pytest
from rich.console import Console
from trainer_helpers import chain

import backsweep.trainer.progress
from backsweep.records.rows import EvaluationRecord
from backsweep.trainer.fleet import Fleet
from backsweep.trainer.progress import MOST_ROWS, Progress


def evaluation(score: float) -> EvaluationRecord:
    return EvaluationRecord(
        step=500,
        episodes=5,
        mean_return=score,
        median_return=score,
        lowest_return=score,
        highest_return=score,
        normalised_return=score,
        terminated=1.0,
        mean_length=9.0,
        start_value=score,
        discounted_return=score,
        probe_q=score,
    )


@pytest.mark.parametrize("runs", [1, 3, MOST_ROWS + 30])
def test_every_run_is_shown(runs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backsweep.trainer.progress, "LIVE_EVERY", 0.0)
    fleet = Fleet([chain(seed=seed) for seed in range(runs)])
    text = io.StringIO()
    console = Console(file=text, force_terminal=True, color_system=None, width=110, height=100)
    shown = [(f"run-{place}", evaluation(place / 100)) for place in range(runs)]
    with Progress(1_500, console=console) as progress:
        progress.step(fleet, shown)
        fleet.step = 500
        progress.step(fleet, shown)
    for place in range(runs):
        assert f"run-{place} " in text.getvalue()
        assert f"{place / 100:.3f}" in text.getvalue()
    assert (f"steps/s in {runs} runs" in text.getvalue()) == (runs > 1)
