"""The ring: rows, episodes, n steps, and each distinct observation once."""

from __future__ import annotations

from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backsweep import Replay, Topological, Uniform
from backsweep.store import reading_kernels
from drive import drive
from strategies import Plan, episodic_backward, examples, long_stream, plans, samplers
from twins.replay import Twin
from twins.store import Step, Unseen
from worlds import ACTIONS, WORLDS


@pytest.mark.kernels
@settings(max_examples=examples(100))
@given(plans(episodic_backward()))
def test_rows_episodes_and_contents_are_those_of_the_twin(plan: Plan) -> None:
    drive(plan)


@pytest.mark.kernels
@pytest.mark.parametrize("world", WORLDS)
def test_every_kind_of_observation_comes_back_as_it_went_in(world: str) -> None:
    for num_envs in (1, 3):
        twin = Twin(sampler=Topological(), capacity=12, num_envs=num_envs, world=WORLDS[world], n_step=2)
        for number, steps in enumerate(long_stream(7, 100, num_envs, states=9 if num_envs == 1 else 40)):
            twin.add(steps)
            twin.sample(5)
            if number % 5 == 0:
                twin.check()


@pytest.mark.kernels
@pytest.mark.parametrize("actions", ACTIONS)
def test_every_kind_of_action_comes_back_as_it_went_in(actions: str) -> None:
    for num_envs in (1, 3):
        twin = Twin(sampler=Uniform(), capacity=10, num_envs=num_envs, actions=ACTIONS[actions])
        for steps in long_stream(8, 30, num_envs, states=9):
            twin.add(steps)
            twin.sample(5)
        twin.check()


@pytest.mark.kernels
@given(st.integers(1, 50), st.integers(0, 2**40), st.integers(0, 50), st.integers(-(2**62), 2**62))
def test_slots_are_those_of_a_division(capacity: int, oldest: int, later: int, any_number: int) -> None:
    start = oldest - oldest % capacity
    for serial in (oldest, oldest + later % capacity, oldest + capacity - 1, any_number):
        assert reading_kernels.live_slot(serial, start, capacity) == serial % capacity


@pytest.mark.parametrize(("world", "num_envs"), [("uint8", 1), ("uint8", 5), ("2 frames", 1), ("4 frames", 4)])
def test_hundreds_of_times_around_the_ring(world: str, num_envs: int) -> None:
    """Long enough that record tables are full of holes, runs and wrapped runs."""
    twin = Twin(sampler=Topological(), capacity=40, num_envs=num_envs, world=WORLDS[world])
    for number, steps in enumerate(long_stream(9, 8000 // num_envs, num_envs, states=100, terminals=10)):
        twin.add(steps)
        if number % 100 == 0:
            twin.check()
    twin.check()


def n_steps_by_hand(
    steps: list[tuple[int, Step]], start: int, n_step: int, gamma: float, capacity: int
) -> tuple[float, float, int, bool]:
    """Return reward, discount, next state and terminated of a row, from one lane's whole history (serial, step)."""
    reward, discount, place = 0.0, 1.0, start
    while True:
        serial, step = steps[place]
        reward += discount * step.reward
        discount *= gamma
        taken = place - start + 1
        ended = step.terminated or step.truncated
        if taken == n_step or ended or place + 1 == len(steps):
            break
        next_serial, following = steps[place + 1]
        if following.observation != step.next_observation or next_serial - serial >= capacity:
            break  # steps were left out, or the row was overwritten before the lane went on
        place += 1
    successor = step.observation if isinstance(step.next_observation, Unseen) else step.next_observation
    assert isinstance(successor, int)
    return reward, 0.0 if step.terminated else discount, successor, step.terminated


@settings(max_examples=examples(60))
@given(plans(samplers()), st.integers(1, 6))
def test_n_steps_are_those_worked_out_by_hand(plan: Plan, n_step: int) -> None:
    twin = Twin(
        sampler=plan.sampler,
        capacity=plan.capacity,
        num_envs=plan.num_envs,
        n_step=n_step,
        gamma=plan.gamma,
        seed=plan.seed,
    )
    history: list[list[tuple[int, Step]]] = [[] for _ in range(plan.num_envs)]
    where: list[tuple[int, int]] = []
    for kind, argument in plan.run():
        if kind == "add":
            twin.add(argument)
            for lane, step in enumerate(argument):
                if step is not None:
                    history[lane].append((len(where), step))
                    where.append((lane, len(history[lane]) - 1))
        elif kind == "sample" and (batch := twin.sample(min(argument, plan.capacity))) is not None:
            for item, row in enumerate(batch.row.tolist()):
                lane, place = where[row]
                reward, discount, state, terminated = n_steps_by_hand(
                    history[lane], place, n_step, plan.gamma, plan.capacity
                )
                assert batch.reward[item] == np.float32(reward)
                assert batch.discount[item] == np.float32(discount)
                assert batch.next_observation[item] == state
                assert batch.terminated[item] == terminated


def test_the_successor_is_the_true_one_at_both_kinds_of_end() -> None:
    twin = Twin(sampler=Uniform(), capacity=10, n_step=3, gamma=0.5)
    twin.add([Step(1, 0, 1.0, 2, False, False)])
    twin.add([Step(2, 0, 1.0, 3, False, True)])  # truncated in 3; the next episode starts in 1
    twin.add([Step(1, 0, 1.0, 4, True, False)])
    twin.add([Step(1, 0, 1.0, 5, True, True)])  # both at once counts as terminated
    twin.add([Step(1, 0, 1.0, 1, False, False)])  # still running
    batch = twin.replay.read(range(5))
    assert batch.next_observation.tolist() == [3, 3, 4, 5, 1]
    assert batch.terminated.tolist() == [False, False, True, True, False]
    assert batch.discount.tolist() == [0.25, 0.5, 0.0, 0.0, 0.5]
    assert batch.reward.tolist() == [1.5, 1.0, 1.0, 1.0, 1.0]


def test_a_stream_that_never_repeats_keeps_one_frame_per_transition() -> None:
    capacity = 50
    replay = Replay(WORLDS["float64"].space, ACTIONS["discrete"].space, capacity)
    rng = np.random.default_rng(0)
    state = 0
    for number in range(400):
        end = bool(rng.random() < 0.1)
        replay.add(np.array([state, 0.0]), 0, 0.0, np.array([state + 1, 0.0]), end, False)
        state += 2 if end else 1
        assert len(replay) == min(number + 1, capacity)
        # One observation for each row, and the last one of each episode.
        stats = replay.stats()
        assert stats["distinct_observations"] == len(replay) + stats["episodes"]


def test_a_stack_that_moves_on_keeps_one_frame_per_transition() -> None:
    depth, capacity = 4, 64
    replay = Replay(WORLDS["4 frames"].space, ACTIONS["discrete"].space, capacity, frame_stack=depth)
    frames = np.random.default_rng(0).integers(0, 256, (500, 2, 8), np.uint8)
    for t in range(400):
        replay.add(frames[t : t + depth], 0, 0.0, frames[t + 1 : t + 1 + depth], False, False)
        rows = min(t + 1, capacity)
        stats = replay.stats()
        assert stats["distinct_observations"] == rows + 1
        assert stats["distinct_frames"] == rows + depth
    batch = replay.read(range(400 - capacity, 400))
    for item, t in enumerate(batch.row.tolist()):
        np.testing.assert_array_equal(batch.observation[item], frames[t : t + depth])
        np.testing.assert_array_equal(batch.next_observation[item], frames[t + 1 : t + 1 + depth])


def test_memory_grows_with_what_is_distinct() -> None:
    frame = 40 * 40 * 3
    space_bytes = []
    for states in (10, 1000):
        replay = Replay(gym.spaces.Box(0, 255, (40, 40, 3), np.uint8), gym.spaces.Discrete(2), 4000)
        looks = np.random.default_rng(0).integers(0, 256, (states, 40, 40, 3), np.uint8)
        before = replay.nbytes
        for t in range(2000):
            replay.add(looks[t % states], 0, 0.0, looks[(t + 1) % states], False, False)
        space_bytes.append(replay.nbytes - before)
    grown = space_bytes[1] - space_bytes[0]
    assert 990 * frame <= grown <= 990 * (frame + 64)
    assert space_bytes[0] <= 10 * (frame + 64) + 2000 * 200


def test_the_file_is_gone_from_its_folder_and_the_replay_works(tmp_path: Path) -> None:
    replay = Replay(gym.spaces.Box(0, 255, (3, 4), np.uint8), gym.spaces.Discrete(2), 10, file=tmp_path)
    looks = WORLDS["uint8"].observe
    for t in range(25):
        replay.add(looks(t), 0, float(t), looks(t + 1), False, False)
    assert not list(tmp_path.iterdir())
    batch = replay.read([15, 24])
    np.testing.assert_array_equal(batch.observation, np.stack([looks(15), looks(24)]))
    np.testing.assert_array_equal(batch.next_observation, np.stack([looks(16), looks(25)]))
