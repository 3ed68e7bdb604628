"""Atari and LunarLander through their own packages; MinAtar has a module of its own."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest

from backsweep.tasks import TASKS, make
from backsweep.tasks.foreign import RandomActions
from backsweep.tasks.minatar import _game_module

GAMES = ["atari/pong", "atari/freeway", "atari/kangaroo", "atari/venture"]


@pytest.mark.parametrize("task", [*GAMES, "lunarlander"])
def test_shapes_and_actions(task: str) -> None:
    env = make(task, num_envs=2, seed=0)
    observations, _ = env.reset()
    shape = (8,) if task == "lunarlander" else (4, 84, 84)
    assert observations.shape == (2, *shape)
    assert observations.dtype == (np.float32 if task == "lunarlander" else np.uint8)
    space: Any = env.single_action_space
    assert space.n == len(TASKS[task].action_names)
    for _ in range(5):
        observations, rewards, *_ = env.step(np.ones(2, dtype=np.int64))
    assert rewards.shape == (2,)
    env.close()


@pytest.mark.parametrize("game", ["pong", "freeway"])
def test_action_names_are_the_emulators(game: str) -> None:
    env: Any = gymnasium.make(TASKS[f"atari/{game}"].gymnasium_id)
    names = [name.lower() for name in env.unwrapped.get_action_meanings()]
    assert tuple(names) == TASKS[f"atari/{game}"].action_names
    env.close()


@pytest.mark.parametrize("task", ["atari/freeway", "lunarlander"])
def test_lanes_are_seeded_and_can_be_replayed(task: str) -> None:
    def play(env: Any, seeds: Any, lane: int, lanes: int) -> list[Any]:
        observations, _ = env.reset(seed=seeds)
        seen = [observations[lane]]
        for action in (1, 2, 1, 0, 2, 2, 1):
            observations, *_ = env.step(np.full(lanes, action))
            seen.append(observations[lane])
        return seen

    together = make(task, num_envs=2, seed=5, random_action_chance=0.5)
    first = play(together, None, 1, 2)
    seeds = together.lane_seeds  # type: ignore[attr-defined]
    np.testing.assert_array_equal(play(together, 5, 1, 2), first)
    np.testing.assert_array_equal(play(make(task, random_action_chance=0.5), [seeds[1]], 0, 1), first)


def test_time_limits_truncate_and_the_last_observation_is_delivered() -> None:
    for task in ("atari/pong", "lunarlander"):
        env = make(task, num_envs=1, seed=0, max_steps=3)
        env.reset()
        for _ in range(2):
            *_, truncated, infos = env.step(np.zeros(1, dtype=np.int64))
            assert not truncated.any()
        observations, _, terminated, truncated, infos = env.step(np.zeros(1, dtype=np.int64))
        assert (bool(terminated[0]), bool(truncated[0])) == (False, True)
        assert infos["final_obs"][0].shape == observations[0].shape


def test_refusals() -> None:
    env = make("lunarlander", num_envs=2)
    with pytest.raises(RuntimeError, match="before reset"):
        env.step(np.zeros(2, dtype=np.int64))
    env.reset()
    with pytest.raises(ValueError, match=r"actions must be in 0\.\.3, got 4 in lane 1"):
        env.step(np.array([0, 4]))
    with pytest.raises(ValueError, match="no option 'gravity'"):
        make("lunarlander", gravity=-5.0)
    with pytest.raises(ValueError, match="sticky_action_chance"):
        make("atari/pong", sticky_action_chance=2.0)


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib.util

    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"backsweep\[atari\]"):
        make("atari/pong")
    with pytest.raises(ImportError, match=r"backsweep\[lunarlander\]"):
        make("lunarlander")
    _game_module.cache_clear()
    with pytest.raises(ImportError, match=r"backsweep\[minatar\]"):
        make("minatar/breakout")


def test_random_actions_are_random() -> None:
    env = RandomActions(gymnasium.make("LunarLander-v3"), 1.0)
    env.reset(seed=3)
    drawn = [env.action(0) for _ in range(200)]
    assert set(drawn) == {0, 1, 2, 3}
    env.reset(seed=3)
    assert [env.action(0) for _ in range(200)] == drawn
