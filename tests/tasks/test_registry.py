"""The table of tasks and the options."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from backsweep.tasks import TASKS, find_task, make, normalised_return
from backsweep.tasks.lane_envs import LaneVectorEnv
from backsweep.tasks.minigrid import MiniGridOptions


def test_every_task_is_there() -> None:
    assert list(TASKS) == [
        "nchain-20",
        "minigrid/doorkey",
        "minigrid/unlock",
        "minigrid/redbluedoors",
        "minigrid/simplecrossing-easy",
        "minigrid/simplecrossing-hard",
        "minigrid/lavacrossing-easy",
        "minigrid/lavacrossing-hard",
        "sokoban/5x5-1",
        "sokoban/5x5-2",
        "sokoban/6x6-1",
        "sokoban/6x6-2",
        "sokoban/6x6-3",
        "sokoban/7x7-1",
        "sokoban/7x7-2",
        "atari/pong",
        "atari/freeway",
        "atari/kangaroo",
        "atari/venture",
        "minatar/asterix",
        "minatar/breakout",
        "minatar/freeway",
        "minatar/seaquest",
        "minatar/space-invaders",
        "lunarlander",
    ]


def test_step_limits_and_budgets() -> None:
    limits = {task.id: task.step_limit for task in TASKS.values()}
    assert [limits[f"minigrid/{name}"] for name in ("doorkey", "unlock", "redbluedoors")] == [360, 288, 720]
    assert {limits[task] for task in limits if "crossing" in task} == {324}
    assert {limits[task] for task in limits if task.startswith("sokoban")} == {120}
    budgets = {task.id: task.training.budget // 1_000_000 for task in TASKS.values()}
    assert (budgets["minigrid/doorkey"], budgets["minigrid/unlock"], budgets["sokoban/6x6-3"]) == (6, 3, 10)
    assert (budgets["sokoban/5x5-1"], budgets["sokoban/7x7-1"], budgets["sokoban/7x7-2"]) == (1, 3, 5)
    sokoban, atari = TASKS["sokoban/6x6-1"].training, TASKS["atari/pong"].training
    assert (sokoban.batch_size, sokoban.target_interval) == (32, 10_000)
    assert (atari.optimiser, atari.learning_rate, atari.rmsprop_alpha, atari.rmsprop_eps) == (
        "rmsprop",
        2.5e-4,
        0.95,
        1e-2,
    )
    network = TASKS["minigrid/unlock"].training.network
    assert (network.convolutions, network.linear) == (((32, 8, 4), (64, 4, 2), (64, 3, 1)), (512,))


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        ("minigrid/dorkey", "'minigrid/doorkey'"),
        ("DoorKey", "'minigrid/doorkey'"),
        ("sokoban/5x5", "'sokoban/5x5-1'"),
        ("nchain", "'nchain-20'"),
        ("atari/Pong", "'atari/pong'"),
        ("lunar-lander", "'lunarlander'"),
        ("minatar/spaceinvaders", "'minatar/space-invaders'"),
        ("sokoban", "'sokoban/5x5-1'"),
        ("CartPole", "the Gymnasium id 'CartPole-v1'"),
        ("frozenlake", "the Gymnasium id 'FrozenLake-v1'"),
        ("Pendulun", "the Gymnasium id 'Pendulum-v1'"),
    ],
)
def test_an_unknown_id_suggests_the_nearest(wrong: str, hint: str) -> None:
    with pytest.raises(ValueError, match=f"unknown task '{wrong}'; did you mean {hint}"):
        make(wrong)


@pytest.mark.parametrize("wrong", ["Corridor", "MyEnv", "doom", "no-such-env"])
def test_nothing_far_away_is_suggested(wrong: str) -> None:
    with pytest.raises(ValueError, match=f"unknown task '{wrong}'; known tasks are nchain-20, "):
        make(wrong)


def test_a_gymnasium_id_is_no_task() -> None:
    with pytest.raises(ValueError, match="unknown task 'CartPole-v1': it is a Gymnasium id"):
        make("CartPole-v1")


def test_ids_of_any_size() -> None:
    assert find_task("nchain-7").options().length == 7
    assert find_task("sokoban/8x9-3").options().width == 9
    with pytest.raises(ValueError, match="length must be 2 or more"):
        find_task("nchain-1")
    with pytest.raises(TypeError, match="task must be a task id"):
        find_task(3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="known tasks are"):
        find_task("???")


@pytest.mark.parametrize(
    ("task", "options", "message"),
    [
        ("minigrid/doorkey", {"sizes": 8}, "no option 'sizes'; did you mean 'size'"),
        ("minigrid/doorkey", {"colour": "red"}, "no option 'colour'; it has level, size"),
        ("minigrid/doorkey", {"size": 4}, "size must be 5 or more, got 4"),
        ("minigrid/unlock", {"size": 8}, r"size must be in 6\.\.6, got 8"),
        ("minigrid/redbluedoors", {"size": 2}, "size must be 3 or more"),
        ("minigrid/lavacrossing-easy", {"size": 8}, "size must be odd"),
        ("minigrid/lavacrossing-easy", {"crossings": -1}, "crossings must be 0 or more"),
        ("minigrid/doorkey", {"crossings": 1}, "crossings must be left out"),
        ("minigrid/doorkey", {"reward": "sparse"}, "reward must be one of 'paper', 'package'"),
        ("minigrid/doorkey", {"actions": "all"}, "actions must be one of"),
        ("minigrid/doorkey", {"wrong_door": "released"}, "needs redbluedoors"),
        ("minigrid/unlock", {"goals_terminate": False}, "needs a task with a goal cell"),
        ("minigrid/doorkey", {"goals_terminate": False, "reward": "package"}, "needs reward='paper'"),
        ("minigrid/doorkey", {"random_action_chance": 1.1}, r"random_action_chance must be in 0\.\.1"),
        ("minigrid/doorkey", {"max_steps": 0}, "max_steps must be 1 or more"),
        ("minigrid/doorkey", {"image_size": 0}, "image_size must be 1 or more"),
        ("nchain-5", {"observation": "image"}, "observation must be one of"),
        ("sokoban/5x5-1", {"goals_terminate": False}, "no option 'goals_terminate'"),
        ("sokoban/5x5-1", {"actions": "released"}, "actions must be one of 'paper', 'package'"),
        ("lunarlander", {"max_steps": 0}, "max_steps must be 1 or more"),
        ("minatar/breakout", {"sticky_action_chance": -0.1}, r"sticky_action_chance must be in 0\.\.1"),
        ("minatar/breakout", {"ramping": True}, "no option 'ramping'; it has game, sticky_action_chance"),
    ],
)
def test_bad_options(task: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make(task, **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size": 6.0}, "size must be an int, got float"),
        ({"goals_terminate": 1}, "goals_terminate must be True or False"),
        ({"random_action_chance": "0.1"}, "random_action_chance must be a number"),
    ],
)
def test_options_of_the_wrong_type(options: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        make("minigrid/doorkey", **options)


def test_action_sets() -> None:
    def count(task: str, **options: Any) -> int:
        return int(make(task, **options).single_action_space.n)  # type: ignore[attr-defined]

    assert [count("minigrid/doorkey", actions=name) for name in ("paper", "released", "package")] == [6, 7, 7]
    assert [count("minigrid/lavacrossing-easy", actions=name) for name in ("paper", "released", "package")] == [6, 3, 7]
    assert [count("sokoban/5x5-1", actions=name) for name in ("paper", "package")] == [8, 9]


def test_return_bounds() -> None:
    assert TASKS["nchain-20"].return_bounds == (0.0, 1.0)
    assert TASKS["minigrid/doorkey"].return_bounds == (-360.0, 354.0)
    assert TASKS["minigrid/lavacrossing-hard"].return_bounds == (-647.0, 312.0)
    assert TASKS["atari/pong"].return_bounds == (-21.0, 21.0)
    assert TASKS["atari/venture"].return_bounds is None
    package = MiniGridOptions(level="doorkey", size=6, reward="package")
    assert package.return_bounds == (0.0, 1.0 - 0.9 * 7 / 360)
    assert normalised_return(-3.0, (-360.0, 354.0)) == pytest.approx(0.5)
    assert normalised_return(1.0, (2.0, 2.0)) == 0.0


def test_random_actions_replace_the_given_share() -> None:
    env = make("nchain-200", num_envs=400, seed=0, random_action_chance=0.3)
    assert isinstance(env, LaneVectorEnv)
    observations, _ = env.reset()
    moved_back = 0
    for _ in range(100):
        following, *_ = env.step(np.zeros(400, dtype=np.int64))
        moved_back += int((following <= observations).sum())
        observations = following
    # Half of the random actions go forward as well.
    assert moved_back / 40_000 == pytest.approx(0.15, abs=4 * np.sqrt(0.15 * 0.85 / 40_000))


def test_goals_that_do_not_terminate() -> None:
    """Entering pays the limit, staying nothing, leaving costs the limit, and nothing ends."""
    env = make("minigrid/simplecrossing-easy", crossings=0, size=5, goals_terminate=False, max_steps=30)
    env.reset()
    forward, right = 2, 1
    rewards, ends = [], []
    for action in (forward, forward, right, forward, forward, right, right, forward, right, right, forward):
        _, reward, terminated, truncated, _ = env.step(np.array([action]))
        rewards.append(reward[0])
        ends.append(bool(terminated[0] or truncated[0]))
    assert rewards == [-1, -1, -1, -1, 30, 0, 0, -30, -1, -1, 30]
    assert not any(ends)


def test_lava_still_ends_when_goals_do_not() -> None:
    env = make("minigrid/lavacrossing-hard", num_envs=64, seed=1, goals_terminate=False)
    env.reset()
    forward = np.full(64, 2)
    _, rewards, terminated, _, _ = env.step(forward)
    assert terminated.any()
    assert set(rewards[terminated]) == {-324.0}
    assert set(rewards[~terminated]) == {-1.0}
