"""The facade: what goes in through `add` comes out through `sample`, `read` and `episode`."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings

from backsweep import EpisodicBackward, Mixture, Prioritized, Replay, Topological, Uniform
from drive import drive
from states import assert_same_batch, assert_same_state, state_of
from strategies import Plan, examples, long_stream, plans
from twins.replay import Twin
from twins.store import Step
from worlds import WORLDS

NO = np.zeros(2, np.bool_)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, np.int64])
def test_rewards_may_have_any_dtype(dtype: type) -> None:
    given_as, as_usual = (Replay(gym.spaces.Discrete(9), gym.spaces.Discrete(3), 20, num_envs=2) for _ in range(2))
    rewards = np.array([1.0, -3.0])
    for replay, reward in ((given_as, rewards.astype(dtype)), (as_usual, rewards)):
        replay.add(np.array([1, 2]), np.array([0, 1]), reward, np.array([3, 4]), NO, NO)
    assert_same_state(state_of(given_as), state_of(as_usual))
    wrong = np.array([0.0, np.inf]).astype(dtype) if dtype is not np.int64 else np.array(["a", "b"])
    with pytest.raises((TypeError, ValueError), match="reward"):
        given_as.add(np.array([3, 4]), np.array([0, 1]), wrong, np.array([5, 6]), NO, NO)
    assert_same_state(state_of(given_as), state_of(as_usual))


@settings(max_examples=examples(100))
@given(plans())
def test_any_sampler_on_any_stream_gives_what_its_twin_gives(plan: Plan) -> None:
    drive(plan, check_every=7)


@pytest.mark.parametrize("world", ["uint8", "float32", "dict", "tuple", "4 frames"])
@settings(max_examples=examples(15))
@given(plan=plans())
def test_any_sampler_in_any_world(plan: Plan, world: str) -> None:
    drive(plan, world=WORLDS[world], check_every=10)


def test_n_steps_work_with_every_sampler() -> None:
    for sampler in (Uniform(), Prioritized(), EpisodicBackward(), Topological(), Mixture([(1.0, Topological())])):
        twin = Twin(sampler=sampler, capacity=40, num_envs=2, n_step=3, gamma=0.9)
        for steps in long_stream(2, 100, 2, states=12):
            twin.add(steps)
            twin.sample(10)


def test_row_numbers_stay_what_they_are_as_long_as_somebody_holds_them() -> None:
    replay = Replay(gym.spaces.Discrete(9), gym.spaces.Discrete(3), 20, num_envs=2)

    def add() -> Any:
        return replay.add(np.array([1, 2]), np.array([0, 1]), np.zeros(2), np.array([3, 4]), NO, NO)

    first, part = add(), add()[1:]
    held = [add() for _ in range(3)]
    part_as_bytes = memoryview(add())
    for _ in range(3):
        add()
    assert first.tolist() == [0, 1]
    assert part.tolist() == [3]
    assert [rows.tolist() for rows in held] == [[4, 5], [6, 7], [8, 9]]
    assert part_as_bytes.tolist() == [10, 11]
    replay.clear()
    assert add().tolist() == [18, 19]
    assert first.tolist() == [0, 1]


def test_rows_do_not_depend_on_how_lanes_are_masked_out() -> None:
    """A lane that sits out a call is as if it had not been there."""
    masked = Replay(gym.spaces.Discrete(9), gym.spaces.Discrete(2), 10, num_envs=2)
    single = Replay(gym.spaces.Discrete(9), gym.spaces.Discrete(2), 10)
    for t in range(25):
        masked.add([8, t % 8], [0, 0], [0.0, t], [8, (t + 1) % 8], NO, NO, mask=np.array([False, True]))
        single.add(t % 8, 0, float(t), (t + 1) % 8, False, False)
        assert_same_batch(masked.sample(4), single.sample(4))
    masked.add([0, 0], [0, 0], [0.0, 0.0], [0, 0], NO, NO, mask=NO)
    assert masked.stats()["rows_ever_added"] == 25


def test_next_step_autoreset_leaves_out_the_call_that_resets() -> None:
    replay = Replay(gym.spaces.Discrete(50), gym.spaces.Discrete(2), 20, num_envs=2, autoreset="next_step")
    yes_no, no_yes = np.array([True, False]), np.array([False, True])
    replay.add([1, 11], [0, 0], [1.0, 1.0], [2, 12], yes_no, NO)
    replay.add([2, 12], [0, 0], [0.0, 1.0], [30, 13], NO, no_yes)  # lane 0 is reset to 30
    replay.add([30, 13], [0, 0], [1.0, 0.0], [31, 40], NO, NO)  # lane 1 is reset to 40
    replay.add([31, 40], [0, 0], [1.0, 1.0], [32, 41], NO, NO)
    batch = replay.read(range(len(replay)))
    assert list(zip(batch.observation.tolist(), batch.next_observation.tolist(), strict=True)) == [
        (1, 2),
        (11, 12),
        (12, 13),
        (30, 31),
        (31, 32),
        (40, 41),
    ]
    assert batch.terminated.tolist() == [True, False, False, False, False, False]
    assert replay.stats()["episodes"] == 4
    assert replay.stats()["episodes_broken_off"] == 0


def test_same_step_autoreset_takes_the_final_observation() -> None:
    replay = Replay(gym.spaces.Discrete(50), gym.spaces.Discrete(2), 20, num_envs=2)
    replay.add([1, 11], [0, 0], [1.0, 1.0], [30, 12], np.array([True, False]), NO, final_observation=[2, None])
    replay.add([30, 12], [0, 0], [1.0, 1.0], [31, 40], NO, np.array([False, True]), final_observation=[None, 13])
    replay.add([31, 40], [0, 0], [1.0, 1.0], [32, 41], NO, NO, final_observation=[None, None])
    batch = replay.read(range(6))
    assert batch.next_observation.tolist() == [2, 12, 31, 13, 32, 41]
    assert replay.stats()["episodes_broken_off"] == 0
    assert replay.episode(2).tolist() == [2, 4]


@pytest.mark.parametrize("mode", ["next_step", "same_step"])
def test_a_vector_environment_is_stored_as_it_was(mode: str) -> None:
    """CartPole in gymnasium's own vector environment: every row is a step that some lane took."""
    environment = gym.make_vec(
        "CartPole-v1",
        num_envs=3,
        vectorization_mode="sync",
        vector_kwargs={"autoreset_mode": gym.vector.AutoresetMode[mode.upper()]},
    )
    replay = Replay(
        environment.single_observation_space,
        environment.single_action_space,
        5000,
        Topological(),
        num_envs=3,
        autoreset="next_step" if mode == "next_step" else None,
    )
    observation, _ = environment.reset(seed=0)
    environment.action_space.seed(0)
    steps = 0
    ended = np.zeros(3, np.bool_)
    for _ in range(200):
        action = environment.action_space.sample()
        next_observation, reward, terminated, truncated, info = environment.step(action)
        steps += int((~ended).sum()) if mode == "next_step" else 3
        finals: dict[str, Any] = {} if mode == "next_step" else {"final_observation": info.get("final_obs", [None] * 3)}
        replay.add(observation, action, reward, next_observation, terminated, truncated, **finals)
        ended = terminated | truncated
        observation = next_observation
    environment.close()
    stats = replay.stats()
    assert len(replay) == steps
    assert stats["episodes_broken_off"] == 0
    # Physics never repeats: one observation per row and one more per episode.
    assert stats["distinct_observations"] == steps + stats["episodes"]
    batch = replay.read(np.arange(steps))
    assert (np.abs(batch.next_observation[batch.terminated][:, [0, 2]]) > [2.39, 0.209]).any(axis=1).all()


def test_the_order_of_calls_fixes_the_rows_and_reading_does_not_disturb_them() -> None:
    replays = [Replay(gym.spaces.Discrete(20), gym.spaces.Discrete(7), 30, Topological(), seed=4) for _ in range(2)]
    for steps in long_stream(6, 80, 1, states=15):
        step = steps[0]
        if step is None:
            continue
        for replay in replays:
            replay.add(
                step.observation,
                step.action % 7,
                step.reward,
                step.next_observation,
                step.terminated,
                step.truncated,
            )
        before = state_of(replays[0])
        newest = int(replays[0].stats()["rows_ever_added"]) - 1
        replays[0].read(np.arange(newest + 1 - len(replays[0]), newest + 1))
        replays[0].episode(newest)
        repr(replays[0])
        replays[0].nbytes  # noqa: B018
        replays[0].graph.to_networkx()
        assert_same_state(state_of(replays[0]), before)
        assert_same_batch(*(replay.sample(5) for replay in replays))


def test_different_seeds_give_different_rows() -> None:
    rows = []
    for seed in range(3):
        twin = Twin(sampler=Uniform(), capacity=50, seed=seed)
        for t in range(50):
            twin.add([Step(t, 0, 0.0, t + 1, False, False)])
        rows.append(tuple(twin.replay.sample(30).row.tolist()))
    assert len(set(rows)) == 3


def test_what_a_replay_says_about_itself() -> None:
    replay = Replay(gym.spaces.Discrete(20), gym.spaces.Discrete(2), 30, Uniform())
    assert repr(replay) == "Replay(0 of 30 transitions, sampler=Uniform(), num_envs=1)"
    assert (len(replay), replay.capacity, replay.num_envs, replay.sampler) == (0, 30, 1, Uniform())
    before = replay.nbytes
    replay.add(1, 0, 0.0, 2, False, False)
    assert len(replay) == 1
    assert replay.nbytes > before


def test_a_batch_as_tensors() -> None:
    import torch

    twin = Twin(sampler=Prioritized(), capacity=10, world=WORLDS["dict"])
    for steps in long_stream(1, 20, 1, states=8):
        twin.add(steps)
    batch = twin.replay.sample(6)
    tensors = batch.to_torch()
    assert len(tensors) == 6
    for name in ("action", "reward", "terminated", "discount", "weight", "row", "source"):
        np.testing.assert_array_equal(getattr(tensors, name).numpy(), getattr(batch, name))
    for key, part in tensors.observation.items():
        np.testing.assert_array_equal(part.numpy(), batch.observation[key])
    assert tensors.reward.dtype == torch.float32
    twin.replay.update_priorities(tensors.row, tensors.reward.clone().requires_grad_())
    uniform = Twin(sampler=Uniform(), capacity=10)
    uniform.add([Step(0, 0, 0.0, 1, False, False)])
    weight = uniform.replay.sample(4).to_torch().weight
    weight += 1  # a tensor of its own, not the constant that all batches share
    assert uniform.replay.sample(4).weight.tolist() == [1.0] * 4
