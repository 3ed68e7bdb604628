"""Evaluations that might never end: cut where an environment has no time limit, given up when a stop is asked for."""

from __future__ import annotations

import itertools
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from backsweep.agent import RunConfig, RunResult, resume, run_config, train
from backsweep.agent.session.checkpoint import newest_replay
from backsweep.agent.session.evaluation import evaluate as evaluation
from backsweep.agent.session.progress import Progress
from backsweep.cli import main
from backsweep.tasks.environments import make_environments
from trainer_helpers import chain, check_same_records, comparable_records

QUICK = ["--steps", "60", "--warmup-steps", "30", "--evaluation-episodes", "2", "--probe-size", "16"]


class Endless(gym.Env[int, int]):
    """Five states in a row, and no end."""

    def __init__(self) -> None:  # and no render_mode either
        self.observation_space, self.action_space = gym.spaces.Discrete(5), gym.spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[int, dict[str, Any]]:
        super().reset(seed=seed)
        self.place = 0
        return self.place, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        self.place = max(0, min(4, self.place + 2 * int(action) - 1))
        return self.place, float(self.place == 4), False, False, {}


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    gym.register("Endless-v0", Endless)
    monkeypatch.setattr(evaluation, "LONGEST_EPISODE", 40)
    monkeypatch.setattr("backsweep.agent.session.watch.LONGEST_FILM", 30)
    yield
    del gym.registry["Endless-v0"]


def endless(**options: Any) -> RunConfig:
    given = {"steps": 300, "warmup_steps": 50, "evaluation_interval": 100, "evaluation_episodes": 2}
    return run_config(env="Endless-v0", probe_size=16, record_interval=50, **{**given, **options})


def test_episodes_without_a_time_limit_are_cut(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    train(endless(), tmp_path / "run")
    shown = capsys.readouterr().out
    assert shown.count("Endless-v0 is registered without a time limit") == 1
    assert "values are a table of 5 states" in shown
    lengths = [one["mean_length"] for one in comparable_records(tmp_path / "run") if one["kind"] == "evaluation"]
    assert lengths == [40.0] * 3

    train(endless(task_options={"max_episode_steps": 20}), tmp_path / "limited")
    assert "time limit" not in capsys.readouterr().out
    lengths = [one["mean_length"] for one in comparable_records(tmp_path / "limited") if one["kind"] == "evaluation"]
    assert lengths == [20.0] * 3


def test_training_goes_on_without_a_cut() -> None:
    envs = make_environments(None, "Endless-v0", 1, 0, {})
    envs.reset()
    outcomes = [envs.step(np.ones(1, np.int64)) for _ in range(60)]
    assert not any(outcome.truncated[0] for outcome in outcomes)


def stopped_in_an_evaluation(config: RunConfig, folder: Path, call: int, monkeypatch: pytest.MonkeyPatch) -> RunResult:
    """Train until Ctrl-C comes in the `call`-th step that evaluations play."""
    original, calls = evaluation.values_of_runs, itertools.count(1)

    def interrupted(*arguments: Any) -> Any:
        if next(calls) == call:
            signal.raise_signal(signal.SIGINT)
        return original(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(evaluation, "values_of_runs", interrupted)
        return train(config, folder, checkpoint_interval=0)


CONFIGS = {
    "endless": lambda: endless(),
    "own task": lambda: chain(method="per", dtype="float64", task_options={"length": 40, "max_steps": 40}, exact=False),
}


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize(("call", "after"), [(60, 1), (100, 2)])
def test_a_stop_gives_an_evaluation_up_which_is_then_made_on_resuming(
    name: str,
    call: int,
    after: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    config = CONFIGS[name]()
    train(config, tmp_path / "whole", quiet=True)
    result = stopped_in_an_evaluation(config, tmp_path / "parts", call, monkeypatch)
    assert (result.finished, result.stopped_by) == (False, signal.SIGINT)
    assert "stopping (Ctrl-C again stops at once)" in capsys.readouterr().out
    kinds = [record["kind"] for record in comparable_records(tmp_path / "parts")]
    assert kinds.count("evaluation") == after
    assert kinds[-1] != "evaluation"  # the one that was given up left nothing
    (resumed,) = resume(tmp_path / "parts", quiet=True)
    assert resumed.finished
    check_same_records(tmp_path / "parts", tmp_path / "whole")


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="needs terminals that hang up")
def test_a_terminal_that_hangs_up_twice_stops_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its shell sends a signal, and so does the system: the second must not end the run before its checkpoint."""
    original, later = evaluation.values_of_runs, []

    def hung_up(*arguments: Any) -> Any:
        for _ in range(2):
            signal.raise_signal(signal.SIGHUP)
        return original(*arguments)

    monkeypatch.setattr(evaluation, "values_of_runs", hung_up)
    monkeypatch.setattr("backsweep.agent.session.session.leave_terminal", lambda: None)
    before = signal.signal(signal.SIGHUP, lambda number, _: later.append(number))
    try:
        result = train(chain(), tmp_path / "run", quiet=True)
        assert (result.stopped_by, later) == (signal.SIGHUP, [])
        signal.raise_signal(signal.SIGHUP)
        assert later == [signal.SIGHUP]  # handled as before the run
    finally:
        signal.signal(signal.SIGHUP, before)
    assert newest_replay(tmp_path / "run").step == result.step


def test_a_stop_is_said_wherever_it_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A handler that fails would end the run without a checkpoint."""
    for error in (BrokenPipeError, RuntimeError, SystemExit):

        def broken(line: str, error: type[BaseException] = error) -> None:
            raise error

        progress = Progress(10)
        monkeypatch.setattr(progress, "_print", broken)
        progress.stopping("stopping")


@pytest.mark.filterwarnings("ignore:.*not in the possible render_modes")
def test_what_cannot_draw_itself_is_trained_and_inspected_but_not_watched(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = str(tmp_path / "run")
    assert main(["inspect", "Endless-v0", "--steps", "200"]) == 0
    assert main(["train", "Endless-v0", *QUICK, "--folder", folder, "--quiet"]) == 0
    capsys.readouterr()
    assert main(["watch", folder]) == 2
    assert "'Endless-v0' cannot draw itself: it must take render_mode='rgb_array'" in capsys.readouterr().err


def test_an_environment_that_takes_a_mode_and_draws_nothing_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    class Undrawn(Endless):
        metadata = {"render_modes": ["rgb_array"], "render_fps": 5}  # noqa: RUF012

        def __init__(self, render_mode: str | None = None) -> None:
            super().__init__()

    gym.registry["Endless-v0"].entry_point = Undrawn
    folder = str(tmp_path / "run")
    assert main(["train", "Endless-v0", *QUICK, "--folder", folder, "--quiet"]) == 0
    assert main(["watch", folder]) == 2
    assert "the environment cannot draw itself" in capsys.readouterr().err
    assert main(["train", "Endless-v0", "--task-options", "colour", "3", "--folder", f"{folder}2"]) == 2
    assert "Gymnasium cannot make 'Endless-v0'" in capsys.readouterr().err
