"""Ours and the original MiniGrid in lock-step: same level, same actions, same everything."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
import pytest
from minigrid.wrappers import RGBImgObsWrapper
from minigrid_oracle import copy_level, original, original_image, original_tile, put_into_original
from placing import place_grid, situation_of

from backsweep.tasks import TASKS, ExactTask, exact, make
from backsweep.tasks.lane_envs import LaneVectorEnv
from backsweep.tasks.minigrid import MiniGridLanes, MiniGridOptions, codes, tiles
from backsweep.tasks.minigrid.enumeration import MiniGridStates
from backsweep.tasks.resize import nearest_sources

TASK_IDS = [task.id for task in TASKS.values() if task.family == "minigrid"]
OTHER_SIZES = [
    {"level": "doorkey", "size": 5},
    {"level": "doorkey", "size": 8},
    {"level": "redbluedoors", "size": 3},
    {"level": "redbluedoors", "size": 5},
    {"level": "redbluedoors", "size": 8},
    {"level": "simplecrossing", "size": 3, "crossings": 1},
    {"level": "simplecrossing", "size": 5, "crossings": 0},
    {"level": "lavacrossing", "size": 5, "crossings": 9},
    {"level": "lavacrossing", "size": 11, "crossings": 5},
    {"level": "simplecrossing", "size": 11, "crossings": 3},
]
RESTING = np.zeros(1, dtype=np.bool_)


def paper_reward(options: MiniGridOptions, reward: float, terminated: bool) -> float:
    """Return the paper's reward for what the original gave."""
    limit = float(options.step_limit)
    if terminated and reward > 0:
        return limit
    if terminated and (options.level == "lavacrossing" or options.wrong_door == "released"):
        return -limit
    return -1.0


def step_both(env: Any, lanes: MiniGridLanes, action: int) -> tuple[float, bool, bool]:
    """Step the original and ours, compare everything, and return the original's outcome."""
    _, reward, terminated, truncated, _ = env.step(action)
    lanes.step(np.array([action]), RESTING)
    options = lanes.options
    expected = reward if options.reward == "package" else paper_reward(options, reward, terminated)
    assert lanes.rewards[0] == expected
    assert (bool(lanes.terminated[0]), bool(lanes.truncated[0])) == (terminated, truncated)
    np.testing.assert_array_equal(lanes.observations[0], original_image(env))
    return float(reward), bool(terminated), bool(truncated)


def play(options: MiniGridOptions, episodes: int, seed: int) -> set[str]:
    """Play random episodes in both and return the kinds of ends that were met."""
    env, lanes = original(options), MiniGridLanes(options, 1)
    generator = np.random.default_rng(seed)
    ends = set()
    for episode in range(episodes):
        env.reset(seed=seed + episode)
        copy_level(env, lanes)
        np.testing.assert_array_equal(lanes.observations[0], original_image(env))
        # Some episodes walk more than they turn, so that they get somewhere.
        weights = [np.ones(7) / 7, np.array([2, 2, 5, 2, 1, 2, 0]) / 14][episode % 2]
        while True:
            reward, terminated, truncated = step_both(env, lanes, int(generator.choice(7, p=weights)))
            if terminated or truncated:
                ends.add("timeout" if not terminated else "success" if reward > 0 else "failure")
                break
    return ends


@pytest.mark.parametrize("code", range(codes.NUM_CODES))
def test_tiles_equal_the_originals(code: int) -> None:
    for direction in (None, 0, 1, 2, 3):
        for tile_pixels in (8, 16):
            ours = tiles.paint_tile(code, direction, tile_pixels)
            np.testing.assert_array_equal(ours, original_tile(code, direction, tile_pixels))


def test_resizing_follows_the_image_library() -> None:
    for source in (24, 40, 48, 64, 72, 88, 96, 128):
        for target in (40, 84, 100):
            ramp = np.arange(source, dtype=np.uint8)[None]
            resized = cv2.resize(ramp, (target, 1), interpolation=cv2.INTER_NEAREST)[0]
            np.testing.assert_array_equal(nearest_sources(source, target), resized)
    whole = [(i * 72) // 40 for i in range(40)]
    assert int((nearest_sources(72, 40) != whole).sum()) == 4


@pytest.mark.parametrize("task", TASK_IDS)
def test_the_wrappers_observation_is_the_grids_render(task: str) -> None:
    """What the package's own RGB wrapper shows without highlighting is what the comparisons use, and what we show."""
    options = TASKS[task].options()
    env, lanes = original(options), MiniGridLanes(options, 1)
    env.highlight = False
    observation, _ = RGBImgObsWrapper(env, tile_size=8).reset(seed=3)
    copy_level(env, lanes)
    resized = cv2.resize(observation["image"], (40, 40), interpolation=cv2.INTER_NEAREST)
    np.testing.assert_array_equal(resized, original_image(env))
    np.testing.assert_array_equal(resized, lanes.observations[0])


@pytest.mark.parametrize("reward", ["paper", "package"])
@pytest.mark.parametrize("task", TASK_IDS)
def test_random_play(task: str, reward: str) -> None:
    options = TASKS[task].options(actions="package", reward=reward, max_steps=130)
    assert play(options, 4, 10 if reward == "paper" else 50)


@pytest.mark.parametrize("given", OTHER_SIZES, ids=lambda given: "-".join(str(value) for value in given.values()))
def test_random_play_at_other_sizes(given: dict[str, Any]) -> None:
    options = MiniGridOptions(**given, actions="package", reward="package", max_steps=80)
    assert play(options, 3, 100)


def test_released_rewards_of_the_wrong_door() -> None:
    options = TASKS["minigrid/redbluedoors"].options(actions="package", wrong_door="released", max_steps=150)
    assert play(options, 6, 7) >= {"failure"}


@pytest.mark.parametrize("task", TASK_IDS)
def test_scripted_successes_on_every_task(task: str) -> None:
    """The exact optimal policy solves the level in both, also with a limit that makes its last step the last one."""
    model = exact(task, actions="package")
    best = model.optimal_values(0.99).argmax(axis=1)
    lanes_by_limit: dict[int, MiniGridLanes] = {}
    for start in np.random.default_rng(1).choice(model.graph.start_state.size, 3):
        actions, state = [], int(model.graph.start_state[start])
        while state < model.num_states:
            actions.append(int(best[state]))
            state = int(model.graph.next_state[state, best[state]])
        for limit in (TASKS[task].step_limit, len(actions), len(actions) - 1):
            options = TASKS[task].options(actions="package", reward="package", max_steps=limit)
            env = original(options)
            env.reset(seed=0)
            lanes = lanes_by_limit.setdefault(limit, MiniGridLanes(options, 1))
            place_state(model, int(model.graph.start_state[start]), env, lanes)
            for number, action in enumerate(actions[:limit], start=1):
                outcome = step_both(env, lanes, action)
                solved = number == len(actions)
                assert outcome[1:] == (solved, number == limit)


def place_state(model: ExactTask, state: int, env: Any, lanes: MiniGridLanes) -> None:
    """Put an enumerated state into the original and into our lane."""
    states = model.observer
    assert isinstance(states, MiniGridStates)
    cells, row = situation_of(states, state)
    place_grid(lanes, 0, cells, row)
    put_into_original(cells, row, env)


def test_lava_and_the_wrong_door_end_in_failure() -> None:
    lava = TASKS["minigrid/lavacrossing-hard"].options(actions="package", reward="package", max_steps=150)
    doors = TASKS["minigrid/redbluedoors"].options(actions="package", reward="package", max_steps=150)
    assert "failure" in play(lava, 4, 3)
    assert "failure" in play(doors, 6, 3)


@pytest.mark.parametrize("task", TASK_IDS)
def test_a_vector_of_lanes_matches_originals(task: str) -> None:
    """Through the public interface, with resets in between: every level that we draw is one that the original plays."""
    env = make(task, num_envs=3, seed=5, actions="package", reward="package", max_steps=30)
    assert isinstance(env, LaneVectorEnv)
    lanes = env.lanes
    assert isinstance(lanes, MiniGridLanes)
    observations, _ = env.reset()
    originals = [original(lanes.options) for _ in range(3)]
    for twin in originals:
        twin.reset(seed=0)

    def copy_to_original(lane: int) -> None:
        put_into_original(lanes.cells[lane], lanes.lanes[lane], originals[lane])

    for lane in range(3):
        copy_to_original(lane)
        np.testing.assert_array_equal(observations[lane], original_image(originals[lane]))
    generator = np.random.default_rng(2)
    for _ in range(90):
        actions = generator.integers(0, 7, 3)
        observations, rewards, terminated, truncated, infos = env.step(actions)
        for lane, twin in enumerate(originals):
            _, reward, was_terminated, was_truncated, _ = twin.step(int(actions[lane]))
            assert (rewards[lane], terminated[lane], truncated[lane]) == (reward, was_terminated, was_truncated)
            ended = was_terminated or was_truncated
            last = infos["final_obs"][lane] if ended else observations[lane]
            np.testing.assert_array_equal(last, original_image(twin))
            if ended:
                copy_to_original(lane)
                np.testing.assert_array_equal(observations[lane], original_image(twin))
