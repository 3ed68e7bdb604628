"""How environments reset: modes read from them, streams that contradict their mode, and ends that nobody saw."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from backsweep import GraphValues, Replay, Topological
from states import assert_same_state, state_of

STATES, ACTIONS = gym.spaces.Discrete(50), gym.spaces.Discrete(2)
NO = np.array([False, False])


def vector_env(mode: str, num_envs: int = 3) -> Any:
    return gym.make_vec(
        "CartPole-v1",
        num_envs=num_envs,
        vectorization_mode="sync",
        vector_kwargs={"autoreset_mode": gym.vector.AutoresetMode[mode.upper()]},
    )


def play(envs: Any, replay: Replay, steps: int, *, finals: bool) -> None:
    """Random play."""
    observation, _ = envs.reset(seed=0)
    envs.action_space.seed(0)
    for _ in range(steps):
        action = envs.action_space.sample()
        following, reward, terminated, truncated, infos = envs.step(action)
        final = infos.get("final_obs") if finals else None
        replay.add(observation, action, reward, following, terminated, truncated, final_observation=final)
        observation = following


@pytest.mark.parametrize("mode", ["next_step", "same_step"])
def test_a_replay_for_a_vector_environment_reads_its_mode(mode: str) -> None:
    envs = vector_env(mode)
    replay = Replay.for_envs(envs, 5_000, Topological(), check_autoreset="refuse", seed=3)
    assert replay.observation_space == envs.single_observation_space
    assert replay.num_envs == 3
    play(envs, replay, 200, finals=mode == "same_step")
    envs.close()
    batch = replay.read(np.arange(len(replay)))
    # The pole has fallen, or the cart has left, in every last state and in no first one.
    outside = (np.abs(batch.next_observation[:, [0, 2]]) > [2.4, 0.2095]).any(axis=1)
    assert (outside == batch.terminated).all()
    assert not (np.abs(batch.observation[:, [0, 2]]) > [2.4, 0.2095]).any()
    assert batch.terminated.sum() > 10


def test_a_replay_for_one_environment() -> None:
    env = gym.make("CartPole-v1")
    replay = Replay.for_env(env, 100, seed=1)
    assert (replay.observation_space, replay.action_space) == (env.observation_space, env.action_space)
    with pytest.raises(TypeError, match=r"use Replay\.for_envs"):
        Replay.for_env(vector_env("same_step"))
    with pytest.raises(TypeError, match="vector environment with num_envs, got"):
        Replay.for_envs(env)
    with pytest.raises(TypeError, match="env must be an environment"):
        Replay.for_env(3)


@pytest.mark.parametrize("mode", ["next_step", "same_step"])
@pytest.mark.parametrize("said", [None, "disabled"])
def test_a_vector_environment_taken_for_another_kind_is_noticed(mode: str, said: Any) -> None:
    envs = vector_env(mode)
    replay = Replay.for_envs(envs, 5_000, autoreset=said)
    with pytest.warns(UserWarning, match="for_envs"):
        play(envs, replay, 100, finals=False)
    with pytest.raises(ValueError, match="next_step"):
        play(envs, Replay.for_envs(envs, 5_000, autoreset=said, check_autoreset="refuse"), 100, finals=False)
    play(envs, Replay.for_envs(envs, 5_000, autoreset=said, check_autoreset="off"), 100, finals=False)
    envs.close()


def test_a_same_step_environment_taken_for_a_next_step_one_is_noticed() -> None:
    envs = vector_env("same_step")
    with pytest.raises(ValueError, match="Steps would be lost"):
        play(envs, Replay.for_envs(envs, 5_000, autoreset="next_step", check_autoreset="refuse"), 100, finals=True)
    with pytest.warns(UserWarning, match="Steps would be lost"):
        play(envs, Replay.for_envs(envs, 5_000, autoreset="next_step"), 100, finals=True)
    envs.close()


def test_same_step_mode_asks_for_last_observations() -> None:
    replay = Replay(STATES, ACTIONS, 20, num_envs=2, autoreset="same_step")
    replay.add([1, 11], [0, 0], [0.0, 0.0], [2, 12], NO, NO)
    before = state_of(replay)
    with pytest.raises(ValueError, match="final_observation must be given where a lane has ended \\(lane 1\\)"):
        replay.add([2, 12], [0, 0], [0.0, 0.0], [3, 0], [False, True], NO)
    assert_same_state(state_of(replay), before)
    replay.add([2, 12], [0, 0], [0.0, 0.0], [3, 0], [False, True], NO, final_observation=[None, 13])
    assert replay.read([3]).next_observation.tolist() == [13]


def test_ends_that_come_back_to_the_start_now_and_then_are_no_mistake() -> None:
    replay = Replay(STATES, ACTIONS, 100, autoreset="disabled", check_autoreset="refuse")
    for episode in range(30):
        replay.add(0, 0, 1.0, 5 if episode == 3 else 0, True, False)


@pytest.mark.parametrize("sampler", [None, Topological()])
@pytest.mark.parametrize("num_envs", [1, 3])
def test_hidden_ends_have_a_state_of_their_own(sampler: Any, num_envs: int) -> None:
    """A corridor 0 1 2 3 whose environment shows the next episode's 0 after the step out of it."""
    replay = Replay(STATES, ACTIONS, 60, sampler, num_envs=num_envs, autoreset="hidden", n_step=2, gamma=0.5)
    for step in range(40):
        place = step % 4
        arguments = (place, 0, 1.0, (place + 1) % 4, place == 3, False)
        replay.add(*(arguments if num_envs == 1 else (np.full(num_envs, each) for each in arguments)))
    graph = replay.graph
    start = graph.vertex(0)
    assert start is not None
    assert start not in graph.terminal_vertices
    assert len(graph.terminal_vertices) == 1
    assert graph.num_vertices == 5
    assert graph.predecessors(graph.terminal_vertices[0]).tolist() == [graph.vertex(3)]
    batch = replay.read(np.arange(replay.oldest, replay.total))
    last = batch.terminated
    assert last.any()
    # The step before the last folds the last one in; both give the last state that was seen.
    assert set(batch.next_observation[last].tolist()) == {3}
    assert set(batch.observation[last].tolist()) == {2, 3}
    assert (batch.discount[last] == 0).all()
    assert batch.steps[last].tolist() == [2 if place == 2 else 1 for place in batch.observation[last]]


def test_graph_values_never_ask_about_a_state_that_nobody_saw() -> None:
    replay = Replay(STATES, ACTIONS, 60, values=GraphValues(), autoreset="hidden")
    for step in range(40):
        place = step % 4
        replay.add(place, 0, float(place == 3), (place + 1) % 4, place == 3, False)
    asked: list[int] = []

    def q_values(observations: Any) -> Any:
        asked.extend(observations.tolist())
        return np.zeros((len(observations), 2))

    replay.renew_values(q_values)
    assert set(asked) <= {0, 1, 2, 3}
    target = replay.read([0, 1, 2, 3]).target
    assert target is not None
    np.testing.assert_allclose(target, [0.99**3, 0.99**2, 0.99, 1.0], rtol=1e-6)


def test_a_truncation_whose_successor_is_hidden_is_left_out_and_counted() -> None:
    replay = Replay(STATES, ACTIONS, 20, num_envs=2, autoreset="hidden")
    rows = replay.add([1, 11], [0, 0], [0.0, 0.0], [0, 12], NO, [True, False])
    assert rows.tolist() == [-1, 0]
    assert replay.stats()["truncations_left_out"] == 1
    assert replay.add([0, 12], [0, 0], [0.0, 0.0], [1, 0], [False, True], [False, True]).tolist() == [1, 2]
    assert replay.stats()["truncations_left_out"] == 1


def test_unknown_successors_of_some_lanes(tmp_path: Any) -> None:
    floats = gym.spaces.Box(-np.inf, np.inf, (2,), np.float32)
    replay = Replay(floats, ACTIONS, 30, Topological(), num_envs=3)
    now = np.array([[0, 0], [1, 0], [2, 0]], np.float32)
    garbage = np.full((3, 2), 77, np.float32)
    replay.add(now, [0] * 3, [0.0] * 3, garbage, [1, 1, 0], [0] * 3, successor_unknown=[1, 0, 0])
    replay.add(now[[1]], [0], [0.0], garbage[[1]], [1], [0], lanes=[1], successor_unknown=[True])
    assert replay.graph.num_vertices == 3 + 2 + 1  # three states, two hidden ends, 77
    assert len(replay.graph.terminal_vertices) == 3
    np.testing.assert_array_equal(replay.read([0, 3]).next_observation, now[[0, 1]])
    replay.save(tmp_path)
    assert_same_state(state_of(Replay.load(tmp_path)), state_of(replay))


def test_lanes_that_are_not_in_a_call_stay_where_they_are() -> None:
    """A demonstration moves a lane on while its environment waits to be reset; another lane's step does not count."""
    replay = Replay(STATES, ACTIONS, 100, num_envs=2, autoreset="next_step", check_autoreset="refuse")
    replay.add([0, 10], [0, 0], [0.0, 0.0], [1, 11], [True, False], NO)  # lane 0 ends in 1
    replay.extend([20, 21, 22], [0, 0], [0.0, 0.0], lane=0)
    assert replay.add([11], [0], [0.0], [12], [False], [False], lanes=[1]).tolist() == [4]
    assert replay.add([1], [0], [0.0], [5], [False], [False], lanes=[0]).tolist() == [-1]  # the call that resets
    assert replay.add([5, 12], [0, 0], [0.0, 0.0], [6, 13], NO, NO).tolist() == [5, 6]


def test_a_masked_lane_has_taken_its_step_and_one_without_a_step_is_no_lane_of_the_call() -> None:
    def ended() -> Replay:
        replay = Replay(STATES, ACTIONS, 100, num_envs=2, autoreset="next_step", check_autoreset="refuse")
        replay.add([0, 10], [0, 0], [0.0, 0.0], [1, 11], [True, False], NO)
        return replay

    masked = ended()  # as in loops that leave the resetting step out themselves
    assert masked.add([1, 11], [0, 0], [0.0, 0.0], [5, 12], NO, NO, mask=[False, True]).tolist() == [-1, 2]
    assert masked.add([5, 12], [0, 0], [0.0, 0.0], [6, 13], NO, NO).tolist() == [3, 4]
    waiting = ended()
    assert waiting.add([11], [0], [0.0], [12], [False], [False], lanes=[1]).tolist() == [2]
    assert waiting.add([1, 12], [0, 0], [0.0, 0.0], [5, 13], NO, NO).tolist() == [-1, 3]
    assert waiting.add([5, 13], [0, 0], [0.0, 0.0], [6, 14], NO, NO).tolist() == [4, 5]


@pytest.mark.parametrize("wrong", [5, "ab", {0: 1, 1: 2}, {1, 2}, np.array(3)])
@pytest.mark.parametrize("ends", [False, True])
def test_last_observations_that_are_no_list_are_refused(wrong: Any, ends: bool) -> None:
    replay = Replay(STATES, ACTIONS, 20, num_envs=2, autoreset="same_step")
    before = state_of(replay)
    with pytest.raises(TypeError, match="final_observation must be a list, a tuple or an array with one entry per"):
        replay.add([2, 12], [0, 0], [0.0, 0.0], [3, 0], [False, ends], NO, final_observation=wrong)
    assert_same_state(state_of(replay), before)


@pytest.mark.parametrize("extended", [False, True], ids=["environments reset anew", "a trajectory in between"])
def test_the_check_leaves_out_ends_before_a_save_and_looks_at_those_after_it(extended: bool, tmp_path: Any) -> None:
    replay = Replay(STATES, ACTIONS, 100, num_envs=2, autoreset="next_step", check_autoreset="refuse", seed=0)

    def add(states: list[int], following: list[int], ends: bool) -> list[int]:
        rows = replay.add(np.array(states), [0, 0], [0.0, 0.0], np.array(following), [ends, ends], NO)
        return rows.tolist()

    add([1, 1], [2, 2], True)
    if extended:
        for lane in range(2):
            replay.extend(np.array([7, 8, 9]), [0, 0], [0.0, 0.0], lane=lane)
    replay.save(tmp_path / "saved")
    replay = Replay.load(tmp_path / "saved")
    assert add([2, 2] if extended else [20, 20], [20, 20], False) == [-1, -1]  # a reset, as before the save
    assert min(add([20, 20], [21, 21], True)) >= 0
    with pytest.raises(ValueError, match="autoreset='next_step' says that the call after an episode's end is no step"):
        add([30, 30], [31, 31], False)
