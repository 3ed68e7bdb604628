"""What the user sees of a fleet: every run, however many there are."""

from __future__ import annotations

import dataclasses
import io
import json
from pathlib import Path

import pytest
from rich.console import Console

import backsweep.agent.session.progress
from backsweep.agent import run_config, train
from backsweep.agent.fleet.fleet import Fleet
from backsweep.agent.learner.double_dqn import Learner
from backsweep.agent.session.progress import MOST_ROWS, Progress
from backsweep.agent.session.records import EvaluationRecord
from trainer_helpers import chain


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
    monkeypatch.setattr(backsweep.agent.session.progress, "LIVE_EVERY", 0.0)
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


def test_many_runs_show_how_far_their_chances_of_random_actions_are_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backsweep.agent.session.progress, "LIVE_EVERY", 0.0)
    config = chain(epsilon_steps=1_000, warmup_steps=100, explore_until_reward=True)
    fleet = Fleet([dataclasses.replace(config, seed=seed) for seed in range(MOST_ROWS + 1)])
    fleet.step = 500
    fleet.runs[1].waits_for_reward, fleet.runs[1].waited_steps = False, 200
    text = io.StringIO()
    console = Console(file=text, force_terminal=True, color_system=None, width=110, height=100)
    with Progress(1_500, console=console) as progress:
        progress.step(fleet, [(f"run-{place}", None) for place in range(len(fleet.runs))])
    assert f"epsilon {fleet.runs[1].epsilon(500):.3f} to 1.000" in text.getvalue()


def test_the_user_is_told_once_when_values_run_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = Learner.take_statistics

    def inflated(self: Learner, *, keep: bool) -> list[dict[str, float | None]]:
        return [{**means, "batch_q": 3e3 if means["batch_q"] is not None else None} for means in found(self)]

    monkeypatch.setattr(Learner, "take_statistics", inflated)
    train(chain(steps=1_000), tmp_path / "run", quiet=True)
    told = [line for line in capsys.readouterr().err.splitlines() if "values diverged" in line]
    assert len(told) == 1
    assert "the mean Q of its batches is 3,000, and no episode returns more than 1" in told[0]
    events = [json.loads(line) for line in (tmp_path / "run" / "sessions.jsonl").read_text().splitlines()]
    (noted,) = [event for event in events if event["event"] == "values diverged"]
    assert (noted["step"], noted["batch_q"], noted["largest_return"]) == (700, 3e3, 1.0)


def test_ordinary_values_are_passed_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    train(chain(steps=1_000), tmp_path / "run", quiet=True)
    assert "diverged" not in capsys.readouterr().err


def test_the_user_is_told_when_outcomes_are_too_noisy_to_plan(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = run_config(
        "minatar/freeway",
        steps=1_500,
        warmup_steps=1_200,
        capacity=2_000,
        batch_size=4,
        record_interval=300,
        evaluation_interval=1_500,
        evaluation_episodes=1,
        noise_limit=0.1,
    )
    train(config, tmp_path / "run")
    told = [line for line in capsys.readouterr().out.splitlines() if "too random to plan" in line]
    assert len(told) == 1
    assert "limit 0.1" in told[0]
    records = [json.loads(line) for line in (tmp_path / "run" / "records.jsonl").read_text().splitlines()]
    found = [record["statistics"] for record in records if record["kind"] == "replay"]
    assert found[-1]["too_noisy"] == 1
    assert found[-1]["noise"] > 0.1
