"""Gymnasium's interfaces: autoreset, seeds, lanes that can be replayed alone, refusals."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from backsweep.tasks import TASKS, make
from backsweep.tasks.lane_envs import LaneVectorEnv
from backsweep.tasks.make import make_single

OWN = [task.id for task in TASKS.values() if task.family in ("nchain", "minigrid", "sokoban")]
SOME = ["nchain-20", "minigrid/lavacrossing-hard", "minigrid/unlock", "sokoban/6x6-2"]


def roll(env: Any, steps: int, seed: int = 0) -> list[tuple[Any, ...]]:
    """Step with random actions and return everything that came back."""
    generator = np.random.default_rng(seed)
    observations, _ = env.reset()
    history: list[tuple[Any, ...]] = [(observations,)]
    for _ in range(steps):
        actions = generator.integers(0, env.single_action_space.n, env.num_envs)
        history.append((actions, *env.step(actions)))
    return history


@pytest.mark.parametrize("task", OWN)
def test_single_environments_pass_gymnasiums_checks(task: str) -> None:
    env = gymnasium.make(TASKS[task].gymnasium_id)
    check_env(env.unwrapped, skip_render_check=True)
    assert env.action_space.n == len(TASKS[task].action_names)  # type: ignore[attr-defined]


def test_ids_work_without_an_import_and_with_options() -> None:
    env = gymnasium.make("backsweep.tasks:backsweep/DoorKey-v0", size=8, render_mode="rgb_array")
    observation, _ = env.reset(seed=1)
    assert observation.shape == (40, 40, 3)
    picture: Any = env.render()
    assert picture.shape == (8 * 32, 8 * 32, 3)
    vector = gymnasium.make_vec("backsweep/Sokoban-5x5-1-v0", num_envs=3)
    assert isinstance(vector.unwrapped, LaneVectorEnv)
    assert vector.reset(seed=1)[0].shape == (3, 84, 84, 3)


@pytest.mark.parametrize("task", SOME)
def test_same_step_agrees_with_gymnasiums_own_vector(task: str) -> None:
    """Our vector and Gymnasium's, made of our single environments with the lanes' seeds, return the same."""
    ours = make(task, num_envs=3, seed=9, max_steps=25)
    history = roll(ours, 120)
    theirs = SyncVectorEnv([lambda: make_single(task, max_steps=25)] * 3, autoreset_mode=AutoresetMode.SAME_STEP)
    observations, _ = theirs.reset(seed=ours.lane_seeds)  # type: ignore[attr-defined]
    np.testing.assert_array_equal(observations, history[0][0])
    finals = 0
    for actions, observations, rewards, terminated, truncated, infos in history[1:]:
        expected = theirs.step(actions)
        np.testing.assert_array_equal(observations, expected[0])
        np.testing.assert_array_equal(rewards, expected[1])
        np.testing.assert_array_equal(terminated, expected[2])
        np.testing.assert_array_equal(truncated, expected[3])
        assert ("final_obs" in infos) == ("final_obs" in expected[4])
        if "final_obs" in infos:
            assert set(infos) == set(expected[4])
            np.testing.assert_array_equal(infos["_final_obs"], expected[4]["_final_obs"])
            for last, other in zip(infos["final_obs"], expected[4]["final_obs"], strict=True):
                assert (last is None) == (other is None)
                if last is not None:
                    finals += 1
                    np.testing.assert_array_equal(last, other)
    assert finals >= 12


@pytest.mark.parametrize("task", SOME)
def test_next_step_agrees_with_gymnasiums_own_vector(task: str) -> None:
    ours = make(task, num_envs=3, seed=9, autoreset="next_step", max_steps=25)
    assert ours.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
    history = roll(ours, 120)
    theirs = SyncVectorEnv([lambda: make_single(task, max_steps=25)] * 3)
    observations, _ = theirs.reset(seed=ours.lane_seeds)  # type: ignore[attr-defined]
    np.testing.assert_array_equal(observations, history[0][0])
    for actions, *returned in history[1:]:
        for mine, other in zip(returned[:4], theirs.step(actions)[:4], strict=True):
            np.testing.assert_array_equal(mine, other)
        assert returned[4] == {}


@pytest.mark.parametrize("task", SOME)
def test_any_lane_can_be_replayed_alone(task: str) -> None:
    together = make(task, num_envs=5, seed=3, random_action_chance=0.2)
    history = roll(together, 150)
    seeds = together.lane_seeds  # type: ignore[attr-defined]
    alone = make(task, num_envs=1, seed=77, random_action_chance=0.2)
    observations, _ = alone.reset(seed=[seeds[3]])  # type: ignore[arg-type]
    np.testing.assert_array_equal(observations[0], history[0][0][3])
    for actions, observations, rewards, terminated, truncated, _ in history[1:]:
        lane = alone.step(actions[3:4])
        np.testing.assert_array_equal(lane[0][0], observations[3])
        assert (lane[1][0], lane[2][0], lane[3][0]) == (rewards[3], terminated[3], truncated[3])


def test_seeds() -> None:
    def levels(**given: Any) -> Any:
        return make("minigrid/simplecrossing-hard", num_envs=8, **given).reset()[0]

    np.testing.assert_array_equal(levels(seed=4), levels(seed=4))
    assert (levels(seed=4) != levels(seed=5)).any()
    few, many = make("nchain-4", num_envs=2, seed=6), make("nchain-4", num_envs=9, seed=6)
    few.reset()
    many.reset()
    assert many.lane_seeds[:2] == few.lane_seeds  # type: ignore[attr-defined]
    assert len(set(many.lane_seeds)) == 9  # type: ignore[attr-defined]
    # A second reset goes on with the streams; the same seed again starts them over.
    env = make("minigrid/simplecrossing-hard", num_envs=8, seed=4)
    first, second = env.reset()[0], env.reset()[0]
    assert (first != second).any()
    np.testing.assert_array_equal(env.reset(seed=4)[0], first)


def test_a_reset_of_some_lanes_leaves_the_others_alone() -> None:
    env = make("minigrid/doorkey", num_envs=3, seed=0)
    env.reset()
    before = env.step(np.zeros(3, dtype=np.int64))[0]
    after, _ = env.reset(options={"reset_mask": np.array([False, True, False])})
    np.testing.assert_array_equal(after[[0, 2]], before[[0, 2]])
    assert (after[1] != before[1]).any()


def test_time_limits_are_truncations_never_terminations() -> None:
    for task in OWN:
        # Actions that lead nowhere: backward at the chain's start, turning, the no-operation.
        given = {"actions": "package"} if task.startswith("sokoban") else {}
        env = make(task, num_envs=16, seed=1, max_steps=2, autoreset="next_step", **given)
        env.reset()
        still = np.full(16, 1 if task == "nchain-20" else 0)
        assert not env.step(still)[3].any()
        _, _, terminated, truncated, _ = env.step(still)
        assert truncated.all()
        assert not terminated.any()


def test_without_copies_the_array_is_the_live_one() -> None:
    env = make("minigrid/doorkey", num_envs=2, seed=0, copy=False)
    first, _ = env.reset()
    again = env.step(np.zeros(2, dtype=np.int64))[0]
    assert np.shares_memory(first, again)
    fresh = make("minigrid/doorkey", num_envs=2, seed=0)
    first, _ = fresh.reset()
    assert not np.shares_memory(first, fresh.step(np.zeros(2, dtype=np.int64))[0])


def test_spaces_hold_what_is_returned() -> None:
    for task in (*OWN, "nchain-5"):
        env = make(task, num_envs=2)
        observations, _ = env.reset()
        assert env.observation_space.contains(observations)
        assert env.single_observation_space.contains(observations[0])
        observations, rewards, terminated, truncated, _ = env.step(env.action_space.sample())
        assert env.observation_space.contains(observations)
        assert (rewards.dtype, terminated.dtype, truncated.dtype) == (np.float64, np.bool_, np.bool_)
        assert len(env.render() or ()) == 2


def test_one_hot_chains() -> None:
    env = make("nchain-4", num_envs=2, observation="one_hot")
    observations, _ = env.reset()
    np.testing.assert_array_equal(observations, [[1, 0, 0, 0]] * 2)
    observations, *_ = env.step(np.array([0, 1]))
    np.testing.assert_array_equal(observations, [[0, 1, 0, 0], [1, 0, 0, 0]])


def test_refusals() -> None:
    env = make("minigrid/doorkey", num_envs=2)
    with pytest.raises(RuntimeError, match="before reset"):
        env.step(np.zeros(2, dtype=np.int64))
    with pytest.raises(RuntimeError, match="before reset"):
        env.render()
    env.reset()
    before = env.step(np.zeros(2, dtype=np.int64))[0]
    for actions, error, message in (
        (np.array([0, 6]), ValueError, r"actions must be in 0\.\.5, got 6 in lane 1"),
        (np.array([-1, 0]), ValueError, r"got -1 in lane 0"),
        (np.array([0.0, 1.0]), TypeError, "actions must be integers, got float64"),
        (np.array([0]), ValueError, r"shape \(2,\), got \(1,\)"),
    ):
        with pytest.raises(error, match=message):
            env.step(actions)
    np.testing.assert_array_equal(env.lanes.observations, before)  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match="one entry per lane"):
        env.reset(seed=[1, 2, 3])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="seed must be 0 or more"):
        env.reset(seed=-1)
    with pytest.raises(TypeError, match="seed must be an int"):
        env.reset(seed=["a", "b"])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="reset_mask"):
        env.reset(options={"level": 3})
    with pytest.raises(ValueError, match="bool array of shape"):
        env.reset(options={"reset_mask": np.ones(3, dtype=np.bool_)})
    with pytest.raises(ValueError, match="every lane in the first reset"):
        make("nchain-4", num_envs=2).reset(options={"reset_mask": np.array([True, False])})
    with pytest.raises(ValueError, match="autoreset must be one of"):
        make("nchain-4", autoreset="disabled")
    with pytest.raises(ValueError, match="num_envs must be 1 or more"):
        make("nchain-4", num_envs=0)


def test_refusals_of_single_environments() -> None:
    env = make_single("minigrid/doorkey")
    with pytest.raises(RuntimeError, match="before reset"):
        env.step(0)
    env.reset(seed=0)
    with pytest.raises(ValueError, match=r"action must be in 0\.\.5, got 6"):
        env.step(6)
    with pytest.raises(TypeError, match="action must be an integer, got float"):
        env.step(1.0)
    with pytest.raises(ValueError, match="options must be None"):
        env.reset(options={"a": 1})
    with pytest.raises(ValueError, match="render_mode"):
        make_single("minigrid/doorkey", render_mode="ansi")
    env = make_single("nchain-2")
    env.reset(seed=0)
    assert env.step(0)[2]
    with pytest.raises(RuntimeError, match="after the episode's end"):
        env.step(0)
