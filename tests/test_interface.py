"""What makes a replay easy to put into other people's programs: forms of input, lanes, trajectories, copies."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from backsweep import ExactBytes, Mixture, Prioritized, Quantized, Replay, Topological, Uniform
from states import assert_same_batch, assert_same_state, state_of
from test_saving import Newest
from worlds import WORLDS, assert_same_data, stacked

STATES, ACTIONS = gym.spaces.Discrete(50), gym.spaces.Discrete(3)
BOTH = Mixture([(0.5, Topological()), (0.5, Prioritized())])
NO = np.array([False, False, False])


def filled(sampler: Any = BOTH, steps: int = 70, **options: Any) -> Replay:
    """A ring of 30 rows that has been written around twice."""
    replay = Replay(STATES, ACTIONS, 30, sampler, **options)
    walk(replay, 0, steps)
    return replay


def walk(replay: Replay, start: int, stop: int) -> None:
    for t in range(start, stop):
        replay.add(t % 7, t % 3, float(t), (t + 1) % 7, t % 7 == 6, t % 11 == 10)
        if t % 5 == 4:
            batch = replay.sample(8)
            replay.update_priorities(batch.row, np.sin(batch.row + 1.0))


def test_add_returns_the_numbers_of_the_rows() -> None:
    replay = Replay(STATES, ACTIONS, 30, num_envs=3)
    assert replay.add([1, 2, 3], [0] * 3, [0.0] * 3, [2, 3, 4], NO, NO).tolist() == [0, 1, 2]
    mask = np.array([True, False, True])
    assert replay.add([2, 3, 4], [0] * 3, [0.0] * 3, [3, 4, 5], NO, NO, mask=mask).tolist() == [3, -1, 4]
    assert (replay.total, replay.oldest) == (5, 0)


def test_some_lanes_at_a_time_are_stored_as_all_with_a_mask() -> None:
    masked = Replay(STATES, ACTIONS, 40, BOTH, num_envs=3)
    named = Replay(STATES, ACTIONS, 40, BOTH, num_envs=3)
    generator = np.random.default_rng(0)
    for _ in range(50):
        lanes = generator.permutation(3)[: generator.integers(1, 4)]
        states, following = generator.integers(0, 50, (2, 3))
        action, reward = generator.integers(0, 3, 3), generator.normal(size=3)
        terminated, truncated = generator.random((2, 3)) < 0.2
        mask = np.isin(np.arange(3), lanes)
        rows = masked.add(states, action, reward, following, terminated, truncated, mask=mask)
        parts = [array[lanes] for array in (states, action, reward, following, terminated, truncated)]
        assert named.add(*parts, lanes=lanes).tolist() == rows[lanes].tolist()
    found, expected = state_of(named), state_of(masked)
    # A lane that is masked may have been reset meanwhile; one that is not named has not moved.
    del found["ended"], expected["ended"]
    assert_same_state(found, expected)


def test_lanes_follow_their_autoreset_each_for_itself() -> None:
    replay = Replay(STATES, ACTIONS, 20, num_envs=2, autoreset="next_step", check_autoreset="refuse")
    assert replay.add([1], [0], [0.0], [2], [True], [False], lanes=[1]).tolist() == [0]
    assert replay.add([5], [0], [0.0], [6], [False], [False], lanes=[0]).tolist() == [1]
    assert replay.add([2, 6], [0, 0], [0.0, 0.0], [30, 7], [0, 0], [0, 0], lanes=[1, 0]).tolist() == [-1, 2]
    assert replay.add([30], [0], [0.0], [31], [False], [False], lanes=[1]).tolist() == [3]


@pytest.mark.parametrize("num_envs", [1, 2])
def test_what_loses_nothing_is_taken(num_envs: int) -> None:
    box = gym.spaces.Box(-1, 1, (2,), np.float32)
    plain, odd = (Replay(box, ACTIONS, 20, BOTH, num_envs=num_envs) for _ in range(2))
    generator = np.random.default_rng(0)
    for _ in range(8):
        now, following = generator.uniform(-1, 1, (2, num_envs, 2)).astype(np.float32)
        action = generator.integers(0, 3, num_envs)
        reward = generator.normal(size=num_envs).astype(np.float32)
        ended = generator.random(num_envs) < 0.5
        plain.add(now, action, reward, following, ended, ~ended)
        odd.add(
            now.tolist(),
            action.astype(np.int32)[:, None],
            reward[:, None],
            following.tolist(),
            ended.astype(np.float32)[:, None],
            (~ended).astype(np.uint8),
        )
        plain.update_priorities([0, 0], [0.5, 0.25])
        odd.update_priorities([0, 0], [[0.5], [0.25]])
    assert_same_state(state_of(odd), state_of(plain))


def test_floats_of_another_size_are_rounded_only_if_that_is_wanted() -> None:
    box = gym.spaces.Box(-1, 1, (2,), np.float32)
    value = np.array([0.1, 0.2])
    with pytest.raises(TypeError, match=r"observation must have dtype float32, got float64.*cast=True"):
        Replay(box, box, 5).add(value, value, 0.0, value, False, False)
    replay = Replay(box, box, 5, cast=True)
    replay.add(value, value, 0.0, value, False, False)
    batch = replay.read([0])
    assert batch.observation.dtype == batch.action.dtype == np.float32
    np.testing.assert_array_equal(batch.observation[0], value.astype(np.float32))
    for bad in (np.array([np.nan, 0]), np.array([1e300, 0])):
        with pytest.raises(ValueError, match="observation must be finite"):
            replay.add(bad, value, 0.0, value, False, False)


def test_actions_that_rounding_carried_past_their_bounds_are_taken_as_the_bounds() -> None:
    box = gym.spaces.Box(-2, 2, (2,), np.float32)
    replay = Replay(STATES, box, 5)
    past = np.array([np.nextafter(np.float32(2), np.float32(3)), np.nextafter(np.float32(-2), np.float32(-3))])
    replay.add(0, past, 0.0, 1, False, False)
    assert replay.read([0]).action.tolist() == [[2.0, -2.0]]
    with pytest.raises(ValueError, match="action must lie within its space"):
        replay.add(0, np.array([2.001, 0], np.float32), 0.0, 1, False, False)


class Lazy:
    """An observation that becomes an array when it is asked to, as LazyFrames does."""

    def __init__(self, array: Any) -> None:
        self._array = array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return self._array if dtype is None else self._array.astype(dtype)


def test_arrays_of_other_libraries() -> None:
    torch = pytest.importorskip("torch")
    jax = pytest.importorskip("jax")
    box = gym.spaces.Box(0, 255, (2, 2), np.uint8)
    replay = Replay(box, ACTIONS, 20, num_envs=2)
    image = np.arange(8, dtype=np.uint8).reshape(2, 2, 2)
    for convert in (Lazy, torch.from_numpy, jax.numpy.asarray):
        rows = replay.add(
            convert(image), convert(np.array([1, 2])), convert(np.ones(2)), convert(image), [0, 0], [0, 0]
        )
        np.testing.assert_array_equal(replay.read(rows).observation, image)


def test_a_trajectory_is_stored_as_its_steps() -> None:
    for world in ("discrete", "uint8", "dict", "tuple", "4 frames"):
        look = WORLDS[world]
        single, whole = (Replay(look.space, ACTIONS, 20, BOTH, frame_stack=look.frame_stack) for _ in range(2))
        for first, terminated in ((3, True), (9, False), (20, True)):
            states = [first, first + 1, first + 2, first + 1, first]
            for t in range(4):
                last = t == 3
                single.add(
                    look.observe(states[t]), t % 3, t / 2, look.observe(states[t + 1]), last and terminated, last
                )
            rows = whole.extend(
                stacked([look.observe(state) for state in states]),
                [0, 1, 2, 0],
                [0.0, 0.5, 1.0, 1.5],
                terminated,
                [False, False, False, True],
            )
            assert rows.tolist() == list(range(whole.total - 4, whole.total))
        assert_same_state(state_of(whole), state_of(single))


def test_a_bad_trajectory_leaves_the_replay_as_it_was() -> None:
    replay = filled(num_envs=1)
    good: dict[str, Any] = {"observation": [1, 2, 3], "action": [0, 1], "reward": [0.0, 1.0]}
    before = state_of(replay)
    for changes, words in (
        ({"observation": [1, 2]}, "observation must have shape"),
        ({"observation": [1, 2, 99]}, "observation must lie within"),
        ({"action": []}, "action must hold at least one step"),
        ({"action": [0, 7]}, "action must lie within"),
        ({"reward": [0.0, np.nan]}, "reward must be finite"),
        ({"terminated": [True, False]}, "only for the last of 2 steps, got True for step 0"),
        ({"lane": 1}, "lane must be an int from 0 to 0, got 1"),
    ):
        with pytest.raises(ValueError, match=words):
            replay.extend(**{**good, **changes})
    with pytest.raises(TypeError, match="action must hold one action for each step"):
        replay.extend([1, 2], 0, 0.0)
    assert_same_state(state_of(replay), before)


@pytest.mark.parametrize("sampler", [Uniform(), BOTH, Prioritized(normalise="buffer")])
def test_a_cleared_replay_starts_anew_but_numbers_and_streams_go_on(sampler: Any, tmp_path: Any) -> None:
    replay = filled(sampler)
    replay.save(tmp_path)
    late = replay.sample(8)
    replay.clear()
    assert (len(replay), replay.total, replay.oldest) == (0, 70, 70)
    with pytest.raises(ValueError, match="empty"):
        replay.sample(1)
    replay.update_priorities(late.row, late.reward)
    assert replay.stats()["late_priority_updates"] == 8
    walk(replay, 70, 90)
    batch = replay.sample(30)
    assert batch.row.min() >= 70
    assert (batch.weight > 0).all()
    assert (batch.reward == batch.row).all()  # rewards count steps
    if replay._graph is not None:
        assert replay.graph.num_vertices == 7
    replay.save(tmp_path)
    again = Replay.load(tmp_path)
    assert_same_state(state_of(again), state_of(replay))
    for one in (replay, again):
        walk(one, 90, 150)  # around the ring
    assert_same_batch(again.sample(16), replay.sample(16))


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda replay: pickle.loads(pickle.dumps(replay))])
@pytest.mark.parametrize("sampler", [BOTH, Newest()])
def test_copies_go_on_as_the_original_does(copied: Any, sampler: Any) -> None:
    replay = filled(sampler, autoreset="next_step", seed=5)
    other = copied(replay)
    assert_same_state(state_of(other), state_of(replay))
    for one in (replay, other):
        walk(one, 70, 110)
    assert_same_batch(other.sample(16), replay.sample(16))


def test_a_copy_in_between_does_not_spoil_the_next_save(tmp_path: Any) -> None:
    replay = filled()
    replay.save(tmp_path)
    walk(replay, 70, 100)
    copy.deepcopy(replay)
    replay.save(tmp_path)
    assert_same_state(state_of(Replay.load(tmp_path)), state_of(replay))


def test_picks_are_those_of_sample() -> None:
    one, other = filled(), filled()
    picks, batch = one.pick(8), other.sample(8)
    for name in ("row", "weight", "source"):
        np.testing.assert_array_equal(getattr(picks, name), getattr(batch, name))
    assert filled(Uniform()).pick(4).weight.tolist() == [1.0] * 4  # type: ignore[union-attr]
    for bad, error in ((0, ValueError), (31, ValueError), (2.0, TypeError)):
        with pytest.raises(error, match="count"):
            one.pick(bad)  # type: ignore[arg-type]


@pytest.mark.parametrize("encoder", [None, ExactBytes(), Quantized(1.0)])
@pytest.mark.parametrize(("shape", "kept"), [((6, 4, 8), (3, 2)), ((4, 8, 6), (3, 2)), ((4, 4, 3), (3, 1))])
def test_frames_of_several_channels_first_or_last(shape: tuple[int, ...], kept: tuple[int, int], encoder: Any) -> None:
    """Stacks of three frames that move on by one: each frame is kept once, and stacks come back as they went in."""
    frames, channels = kept
    axis = 0 if shape[0] == frames * channels else 2
    size = list(shape)
    size[axis] = channels
    images = np.random.default_rng(0).integers(0, 255, (12, *size), dtype=np.uint8)
    stacks = [np.concatenate(images[t : t + frames], axis=axis) for t in range(10)]
    replay = Replay(
        gym.spaces.Box(0, 255, shape, np.uint8), ACTIONS, 20, Topological(), frame_stack=frames, encoder=encoder
    )
    for t in range(9):
        replay.add(stacks[t], 0, 0.0, stacks[t + 1], t == 8, False)
    assert replay.stats()["distinct_frames"] == 12
    assert replay.stats()["distinct_observations"] == 10
    batch = replay.read(range(9))
    assert_same_data(batch.observation, np.stack(stacks[:9]), "observation")
    assert_same_data(batch.next_observation, np.stack(stacks[1:]), "next_observation")
    assert all(replay.graph.vertex(stack) is not None for stack in stacks)
    late = Replay(replay.observation_space, ACTIONS, 20, Uniform(), frame_stack=frames, encoder=encoder)
    late.extend(np.stack(stacks), [0] * 9, [0.0] * 9, True)
    assert late.graph.num_vertices == replay.graph.num_vertices


def test_stacks_that_cannot_be_are_refused() -> None:
    with pytest.raises(ValueError, match=r"frame_stack=3 needs a Box observation space whose first or last axis"):
        Replay(gym.spaces.Box(0, 255, (4, 8, 8), np.uint8), ACTIONS, 20, frame_stack=3)
    with pytest.raises(ValueError, match="frame_stack=2 needs a Box"):
        Replay(STATES, ACTIONS, 20, frame_stack=2)


def test_rows_are_read_with_as_many_steps_as_wanted() -> None:
    replay = Replay(STATES, ACTIONS, 20, n_step=2, gamma=0.5)
    replay.extend([0, 1, 2, 3], [0, 0, 0], [1.0, 2.0, 4.0], True)
    assert replay.read([0, 2]).reward.tolist() == [2.0, 4.0]
    batch = replay.read([0, 1], n_step=3, gamma=1.0)
    assert (batch.reward.tolist(), batch.steps.tolist()) == ([7.0, 6.0], [3, 2])
    assert batch.next_observation.tolist() == [3, 3]
    with pytest.raises(ValueError, match="n_step must be 1 or more, got 0"):
        replay.read([0], n_step=0)
    with pytest.raises(ValueError, match="gamma must be between 0 and 1, got 2"):
        replay.read([0], gamma=2)


def test_messages_name_the_class_that_users_know() -> None:
    replay: Any = Replay(STATES, ACTIONS, 10)
    for call, missing in ((replay.add, "action"), (replay.extend, "action"), (replay.sample, "batch_size")):
        with pytest.raises(TypeError, match=rf"^Replay\.{call.__name__}\(\) missing .*'{missing}'"):
            call(*() if call == replay.sample else (0,))


def test_methods_are_pickled_by_the_name_in_their_messages() -> None:
    assert pickle.loads(pickle.dumps(Replay.add)) is Replay.add
