"""Runs that wait for their first reward: all actions are random until then, and epsilon falls from there on."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest

from backsweep.agent import RunConfig, resume, run_config, train, train_fleet
from backsweep.agent.session.checkpoint import load_agent
from backsweep.agent.session.evaluation import evaluate as evaluation
from trainer_helpers import check_same_records, comparable_records, interrupted_at

EMPTY = 130
"""Steps before the first reward."""


SHORT: dict[str, Any] = {"steps": 300, "warmup_steps": 40, "epsilon_steps": 100, "record_interval": 50}


class Rare(gym.Env[int, int]):
    """One long episode that pays 7 at every step, but nothing at first."""

    def __init__(self) -> None:
        self.observation_space, self.action_space = gym.spaces.Discrete(3), gym.spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[int, dict[str, Any]]:
        super().reset(seed=seed)
        self.steps = 0
        return 0, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        self.steps += 1
        return (self.steps + int(action)) % 3, 7.0 * (self.steps > EMPTY), False, False, {}


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    gym.register("Rare-v0", Rare)
    monkeypatch.setattr(evaluation, "LONGEST_EPISODE", 20)
    yield
    del gym.registry["Rare-v0"]


def rare(**options: Any) -> RunConfig:
    given = {**SHORT, "method": "uer", "evaluation_interval": 300, "evaluation_episodes": 1, "probe_size": 16}
    return run_config("Rare-v0", **{**given, **options})


def epsilons(folder: Path) -> dict[int, float]:
    return {record["step"]: record["epsilon"] for record in comparable_records(folder) if record["kind"] == "training"}


def line(passed: float) -> float:
    return 1.0 - 0.99 * min(1.0, passed / 100)


@pytest.mark.parametrize("method", ["uer", "graph"])
def test_epsilon_falls_from_the_first_reward_on(
    method: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    train(rare(method=method), tmp_path / "run")
    found = epsilons(tmp_path / "run")
    assert found == pytest.approx({50: 1, 100: 1, 150: line(20), 200: line(70), 250: 0.01, 300: 0.01})
    assert capsys.readouterr().out.count(f"first reward after {EMPTY} steps") == 1


def test_rewards_are_scaled_once_there_are_any(tmp_path: Path) -> None:
    for waits, name in ((True, "waits"), (False, "does not")):
        train(rare(explore_until_reward=waits), tmp_path / name, quiet=True)
    assert 1 / 40 < load_agent(tmp_path / "waits")[2] < 1 / 6
    assert load_agent(tmp_path / "does not")[2] == 1.0
    assert epsilons(tmp_path / "does not")[100] == pytest.approx(0.01)


def test_a_run_without_any_reward_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    train(rare(steps=100), tmp_path / "run")
    shown = capsys.readouterr().out
    assert "all rewards of 100 steps were 0, so actions did not become less random" in shown
    assert "first reward" not in shown
    assert set(epsilons(tmp_path / "run").values()) == {1.0}


def test_a_reward_is_told_of_wherever_the_next_record_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    train(rare(record_interval=150), tmp_path / "one record")
    assert capsys.readouterr().out.count(f"first reward after {EMPTY} steps") == 1
    train(rare(steps=100), tmp_path / "longer")
    resume(tmp_path / "longer", steps=300)
    assert capsys.readouterr().out.count(f"first reward after {EMPTY} steps") == 1
    train(rare(steps=100, epsilon_start=0.2), tmp_path / "seldom random")
    assert "all actions" not in capsys.readouterr().out


def test_a_run_waits_also_where_epsilon_falls_at_once(tmp_path: Path) -> None:
    train(rare(epsilon_steps=0, epsilon_start=0.8), tmp_path / "run", quiet=True)
    found = epsilons(tmp_path / "run")
    assert found == pytest.approx({50: 0.8, 100: 0.8, 150: 0.01, 200: 0.01, 250: 0.01, 300: 0.01})


def test_a_reward_during_warm_up_is_not_worth_a_remark(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    train(rare(warmup_steps=150), tmp_path / "run")
    assert "first reward" not in capsys.readouterr().out


@pytest.mark.parametrize("stop", [90, 180])
@pytest.mark.parametrize("num_envs", [1, 2])
def test_a_stopped_run_waits_on_as_before(
    stop: int, num_envs: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = rare(num_envs=num_envs, dtype="float64", steps=400)
    train(config, tmp_path / "whole", quiet=True)
    with interrupted_at(stop, monkeypatch):
        assert not train(config, tmp_path / "stopped", quiet=True, checkpoint_interval=0).finished
    resume(tmp_path / "stopped", quiet=True)
    check_same_records(tmp_path / "whole", tmp_path / "stopped")
    first = EMPTY * num_envs  # each environment has its own episode
    assert epsilons(tmp_path / "stopped")[400] == pytest.approx(line(400 - first))


def test_where_every_step_pays_nothing_changes(tmp_path: Path) -> None:
    for waits, name in ((True, "waits"), (False, "does not")):
        config = run_config("CartPole-v1", method="graph", **{**SHORT, "explore_until_reward": waits})
        train(config, tmp_path / name, quiet=True)
    assert comparable_records(tmp_path / "waits") == comparable_records(tmp_path / "does not")


def test_only_gymnasium_ids_with_our_settings_wait() -> None:
    assert rare().explore_until_reward
    assert not run_config("Rare-v0", settings="paper").explore_until_reward
    assert not run_config("minigrid/doorkey").explore_until_reward
    assert not run_config("lunarlander").explore_until_reward


def test_the_compiled_engine_does_not_wait(tmp_path: Path) -> None:
    short = {"steps": 60, "warmup_steps": 20, "evaluation_interval": 60, "evaluation_episodes": 1, "probe_size": 8}
    waiting = run_config("nchain-5", explore_until_reward=True, **short)
    with pytest.raises(ValueError, match="without explore_until_reward"):
        train(waiting, tmp_path / "compiled", quiet=True, engine="compiled")
    two = {"a": waiting, "b": dataclasses.replace(waiting, seed=1)}
    assert all(result.finished for result in train_fleet(two, tmp_path / "plain", quiet=True))
