"""Environments that go back to where they were."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from backsweep.jit.random_streams import named_generator
from backsweep.tasks.environments import Environments, ForeignEnvironments, Outcome, make_environments

CASES: list[tuple[str | None, str | None, dict[str, Any]]] = [
    ("nchain-5", None, {"max_steps": 9, "random_action_chance": 0.3}),
    ("nchain-5", None, {"observation": "one_hot"}),
    ("minigrid/doorkey", None, {"max_steps": 25, "random_action_chance": 0.2}),
    ("minigrid/lavacrossing-easy", None, {}),
    ("sokoban/5x5-1", None, {"max_steps": 20}),
    ("minatar/seaquest", None, {"max_steps": 40, "random_action_chance": 0.2}),
    ("minatar/freeway", None, {}),
    (None, "CartPole-v1", {}),
    (None, "FrozenLake-v1", {}),
]


def _same(first: Outcome, second: Outcome) -> None:
    for name in ("observations", "rewards", "terminated", "truncated"):
        assert np.array_equal(getattr(first, name), getattr(second, name))
    assert (first.finals is None) == (second.finals is None)
    if first.finals is not None and second.finals is not None:
        assert all(np.array_equal(mine, its) for mine, its in zip(first.finals, second.finals, strict=True))


@pytest.mark.parametrize(("task", "env", "options"), CASES, ids=lambda value: str(value))
def test_saved_and_restored_they_go_on_alike(task: str | None, env: str | None, options: dict[str, Any]) -> None:
    def make(seed: int) -> Environments:
        return make_environments(task, env, 3, seed, options)

    generator = named_generator(0, "actions")
    first, second = make(1), make(2)
    first.reset()
    second.reset()
    for _ in range(57):
        first.step(generator.integers(first.num_actions, size=3))
    second.load_state(*first.state())
    for _ in range(80):
        actions = generator.integers(first.num_actions, size=3)
        _same(first.step(actions), second.step(actions))
    first.close()
    second.close()


def test_the_last_observation_of_an_episode_is_delivered() -> None:
    for task, env in (("nchain-5", None), (None, "CartPole-v1")):
        envs = make_environments(task, env, 1, 0, {})
        envs.reset()
        while True:
            outcome = envs.step(np.zeros(1, np.int64))
            if outcome.terminated[0] or outcome.truncated[0]:
                break
        assert outcome.finals is not None
        assert not np.array_equal(outcome.finals[0], outcome.observations[0])
        envs.close()


class Moody(gym.Env[np.ndarray, int]):
    """An environment that does not do the same thing twice."""

    observation_space = gym.spaces.Box(0, 1, (1,), np.float32)
    action_space = gym.spaces.Discrete(2)
    resets = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict[str, Any]]:
        self.resets += 1
        return np.zeros(1, np.float32), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        return np.zeros(1, np.float32), 0.0, self.resets > 1, False, {}


def test_an_environment_that_cannot_be_repeated_is_found_out() -> None:
    envs = ForeignEnvironments([Moody], 0)
    envs.reset()
    for _ in range(3):
        envs.step(np.zeros(1, np.int64))
    with pytest.raises(ValueError, match="not deterministic given its seed"):
        envs.load_state(*envs.state())


class Double(Moody):
    """An environment whose observations have more digits than its space says."""

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict[str, Any]]:
        return np.full(1, 0.1), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        return np.full(1, 0.3), 0.0, True, False, {}


def test_observations_have_the_floats_of_their_space() -> None:
    envs = ForeignEnvironments([Double], 0)
    assert envs.reset().dtype == np.float32
    outcome = envs.step(np.zeros(1, np.int64))
    assert outcome.finals is not None
    assert outcome.observations.dtype == outcome.finals[0].dtype == np.float32
    assert outcome.finals[0] == np.float32(0.3)
