"""The buffers and the algorithm inside the real Stable-Baselines3."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

pytest.importorskip("stable_baselines3", reason="needs stable-baselines3: make test-integrations installs it")

import torch
from sb3_corridor import corridors, small
from stable_baselines3 import DQN, SAC, TD3
from stable_baselines3.common import buffers as theirs
from stable_baselines3.common.vec_env import VecFrameStack, VecNormalize, VecTransposeImage

from backsweep import GraphValues, Mixture, Prioritized, Replay, Topological, Uniform
from backsweep.integrations.stable_baselines3 import DictReplayBuffer, ReplayBuffer, ReplayCallback, TopologicalDQN

BOTH = Mixture([(0.5, Topological()), (0.5, Prioritized())])


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


def play(buffers: list[Any], envs: Any, steps: int = 60) -> None:
    """Let a model that never learns fill several buffers with the same steps."""
    model = DQN("MlpPolicy", envs, **small(learning_starts=10**9, train_freq=1))
    model.replay_buffer = _Tee(buffers)
    model.learn(steps)


class _Tee(theirs.ReplayBuffer):
    """Hands every step to several buffers."""

    def __init__(self, buffers: list[Any]) -> None:
        self.buffers = buffers

    def add(self, *args: Any) -> None:
        for buffer in self.buffers:
            buffer.add(*copy.deepcopy(args))


@pytest.mark.parametrize("n_envs", [1, 3])
@pytest.mark.parametrize("handle_timeouts", [True, False])
def test_the_same_transitions_as_in_their_buffer(n_envs: int, handle_timeouts: bool) -> None:
    envs = corridors(n_envs, limit=24)
    args = (1_000, envs.observation_space, envs.action_space, "cpu", n_envs)
    ours = ReplayBuffer(*args, handle_timeout_termination=handle_timeouts, optimize_memory_usage=True)
    other = theirs.ReplayBuffer(*args, handle_timeout_termination=handle_timeouts)
    play([ours, other], envs, 150 * n_envs)
    assert ours.size() == other.size() == 150
    found = ours._get_samples(np.arange(150 * n_envs))
    for name in ("observations", "next_observations", "actions"):
        expected = getattr(other, name)[:150].reshape(150 * n_envs, -1)
        np.testing.assert_array_equal(getattr(found, name).numpy(), expected)
    dones = other.dones * (1 - other.timeouts)
    np.testing.assert_array_equal(found.dones.numpy().reshape(150, n_envs), dones[:150])
    np.testing.assert_array_equal(found.rewards.numpy().reshape(150, n_envs), other.rewards[:150])
    assert dones.sum() > 0
    if handle_timeouts:
        assert other.timeouts.sum() > 0


def test_steps_are_folded_as_in_their_buffer() -> None:
    envs = corridors(1)
    args = (1_000, envs.observation_space, envs.action_space, "cpu")
    ours = ReplayBuffer(*args, n_steps=3, gamma=0.9)
    other = theirs.NStepReplayBuffer(*args, n_steps=3, gamma=0.9)
    play([ours, other], envs, 80)
    rows = np.arange(70)
    found, expected = ours._get_samples(rows), other._get_samples(rows)
    for name in ("observations", "next_observations", "actions", "dones", "rewards", "discounts"):
        torch.testing.assert_close(getattr(found, name), getattr(expected, name), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("kind", ["number", "dict"])
def test_other_observations(kind: str) -> None:
    envs = corridors(2, kind=kind)
    policy = "MultiInputPolicy" if kind == "dict" else "MlpPolicy"
    model = DQN(
        policy,
        envs,
        replay_buffer_class=DictReplayBuffer if kind == "dict" else ReplayBuffer,
        replay_buffer_kwargs={"sampler": BOTH},
        **small(),
    )
    model.learn(100, callback=ReplayCallback())
    buffer = model.replay_buffer
    assert isinstance(buffer, ReplayBuffer)
    places = buffer.replay.read(range(buffer.replay.oldest, buffer.replay.total)).next_observation
    places = places["place"] if kind == "dict" else places
    assert set(np.unique(places)) <= set(range(7))
    with pytest.raises(TypeError, match="DictReplayBuffer needs a Dict observation space"):
        DictReplayBuffer(10, gym.spaces.Discrete(3), envs.action_space)


def test_stacked_frames_are_kept_once() -> None:
    envs = VecTransposeImage(VecFrameStack(corridors(2, kind="image"), 4))
    model = DQN(
        "CnnPolicy",
        envs,
        buffer_size=500,
        optimize_memory_usage=True,
        replay_buffer_class=ReplayBuffer,
        replay_buffer_kwargs={"frame_stack": 4, "sampler": BOTH},
        learning_starts=20,
        device="cpu",
        seed=0,
    )
    model.learn(60, callback=ReplayCallback())
    replay = model.replay_buffer.replay  # type: ignore[union-attr]
    assert replay.stats()["distinct_frames"] < replay.stats()["distinct_observations"]
    with pytest.warns(UserWarning, match="last trajectory"):  # theirs says so and marks it; nothing is needed here
        model.learn(20, callback=ReplayCallback())


def test_normalised_environments_are_stored_as_they_are_and_normalised_when_read() -> None:
    envs = VecNormalize(corridors(2))
    model = DQN("MlpPolicy", envs, replay_buffer_class=ReplayBuffer, **small())
    model.learn(200)
    buffer = model.replay_buffer
    assert isinstance(buffer, ReplayBuffer)
    rows = np.arange(40)
    raw, normal = buffer._get_samples(rows), buffer._get_samples(rows, env=envs)
    assert set(raw.rewards.numpy().ravel()) <= {0.0, 1.0}
    np.testing.assert_allclose(normal.observations, envs.normalize_obs(raw.observations.numpy()), rtol=1e-6)
    np.testing.assert_allclose(normal.rewards, envs.normalize_reward(raw.rewards.numpy()), rtol=1e-6)


def test_an_end_without_its_last_observation_is_kept_as_unknown() -> None:
    space, actions = gym.spaces.Discrete(9), gym.spaces.Discrete(2)
    buffer = ReplayBuffer(50, space, actions, "cpu", 2, sampler=Topological())
    buffer.add(np.array([1, 2]), np.array([0, 3]), np.zeros(2, int), np.ones(2), np.array([True, False]), [{}, {}])
    assert len(buffer.replay) == 2
    assert len(buffer.replay.graph.terminal_vertices) == 1
    assert buffer.replay.graph.vertex(0) is None


@pytest.mark.parametrize("algorithm", ["DQN", "QRDQN", "SAC", "TD3"])
def test_weights_and_priorities_reach_every_algorithm(algorithm: str) -> None:
    discrete = algorithm in ("DQN", "QRDQN")
    if algorithm == "QRDQN":
        make: Any = pytest.importorskip("sb3_contrib", reason="QR-DQN is in sb3-contrib").QRDQN
    else:
        make = {"DQN": DQN, "SAC": SAC, "TD3": TD3}[algorithm]
    model = make(
        "MlpPolicy",
        corridors(2, discrete=discrete),
        replay_buffer_class=ReplayBuffer,
        replay_buffer_kwargs={"sampler": Prioritized(alpha=0.6, beta=0.4)},
        **small(),
    )
    model.learn(120, callback=ReplayCallback())
    sampler = model.replay_buffer.replay.machinery.sampler
    priorities = sampler.priorities(np.arange(100))
    assert len(np.unique(priorities)) > 20
    assert not model.policy.q_net._forward_hooks if algorithm == "DQN" else True


def algorithm_of(name: str) -> Any:
    """Return one of the algorithms that take a replay buffer."""
    if name == "QRDQN":
        return pytest.importorskip("sb3_contrib", reason="QR-DQN is in sb3-contrib").QRDQN
    return {"DQN": DQN, "SAC": SAC, "TD3": TD3}[name]


def wrapped(wrappers: str, discrete: bool) -> Any:
    """Return two corridors in one of the usual sets of wrappers."""
    if wrappers == "images":
        return VecTransposeImage(VecFrameStack(corridors(2, kind="image", discrete=discrete), 4))
    envs = corridors(2, discrete=discrete)
    return VecNormalize(envs) if wrappers == "normalised" else envs


@pytest.mark.parametrize("algorithm", ["DQN", "QRDQN", "SAC", "TD3"])
@pytest.mark.parametrize("wrappers", ["normalised", "images", "plain"])
def test_every_algorithm_in_every_wrapper(algorithm: str, wrappers: str, tmp_path: Path) -> None:
    """With `optimize_memory_usage` and time limits, which Stable-Baselines3's own buffer refuses together."""
    discrete = algorithm in ("DQN", "QRDQN")
    images = wrappers == "images"
    options: dict[str, Any] = {"frame_stack": 4} if images else {}
    model = algorithm_of(algorithm)(
        "CnnPolicy" if images else "MlpPolicy",
        wrapped(wrappers, discrete),
        buffer_size=400,
        batch_size=8,
        optimize_memory_usage=True,
        replay_buffer_class=ReplayBuffer,
        replay_buffer_kwargs={"sampler": BOTH, "handle_timeout_termination": True, **options},
        **small(learning_starts=60),
    )
    model.learn(70, callback=ReplayCallback())
    model.save_replay_buffer(tmp_path / "buffer")
    model.load_replay_buffer(tmp_path / "buffer")
    replay = model.replay_buffer.replay
    rows = np.arange(len(replay))
    batch, cut = replay.read(rows), replay.truncated(rows)
    assert len(rows) >= 70
    assert cut.sum() >= 2
    # Time goes up by one in every step, also in those that a time limit ends; without last observations it would be 0.
    if images:
        now, after = (
            part.reshape(len(rows), 4, -1)[:, -1, 0].astype(int) for part in (batch.observation, batch.next_observation)
        )
        assert (after != now).all()
        assert (after[cut] % 10 == 8).all()
    else:
        # Stable-Baselines3 hands on an episode's last observation normalised and back, and so rounded.
        np.testing.assert_allclose(batch.next_observation[:, 1], batch.observation[:, 1] + 1, atol=1e-4)
        np.testing.assert_allclose(batch.next_observation[cut, 1], 8, atol=1e-4)
    assert not batch.terminated[cut].any()
    if not images:
        np.testing.assert_array_equal(batch.terminated, batch.next_observation[:, 0] > 5.5)


def test_n_steps_need_the_gamma_of_the_algorithm() -> None:
    with pytest.raises(TypeError, match=r"gamma must be given with n_steps=3, and be the algorithm's"):
        ReplayBuffer(10, gym.spaces.Discrete(3), gym.spaces.Discrete(2), n_steps=3)
    options = {"replay_buffer_class": ReplayBuffer, "replay_buffer_kwargs": {"n_steps": 3, "gamma": 0.99}}
    model = DQN("MlpPolicy", corridors(1), gamma=0.9, **options, **small())
    with pytest.raises(ValueError, match=r"gamma must be the algorithm's, 0.9, with n_steps=3, got 0.99"):
        model.learn(10, callback=ReplayCallback())


def test_seeds_give_streams_of_their_own() -> None:
    def rows(seed: int) -> list[int]:
        model = DQN("MlpPolicy", corridors(1), replay_buffer_class=ReplayBuffer, **small(seed=seed))
        buffer = model.replay_buffer
        assert isinstance(buffer, ReplayBuffer)
        buffer.replay.extend(np.zeros((51, 2), np.float32), [0] * 50, [0.0] * 50)
        return buffer.replay.pick(20).row.tolist()

    assert rows(1) == rows(1)
    assert rows(1) != rows(2)


def test_a_model_and_its_replay_go_on_after_a_save(tmp_path: Path) -> None:
    model = TopologicalDQN("MlpPolicy", corridors(2), buffer_size=400, target_update_interval=40, **small())
    model.learn(200)
    model.save(tmp_path / "model")
    model.save_replay_buffer(tmp_path / "replay")
    again = TopologicalDQN.load(tmp_path / "model", env=corridors(2))
    again.load_replay_buffer(tmp_path / "replay")
    assert again.replay_buffer.replay.pick(20).row.tolist() == model.replay_buffer.replay.pick(20).row.tolist()  # type: ignore[union-attr]
    again.learn(100, reset_num_timesteps=False)


def test_topological_dqn_learns_the_corridor_from_planned_targets() -> None:
    model = TopologicalDQN(
        "MlpPolicy",
        corridors(1, kind="number"),
        learning_rate=5e-3,
        buffer_size=2_000,
        target_update_interval=100,
        exploration_fraction=0.9,
        exploration_final_eps=0.3,
        train_freq=1,
        learning_starts=100,
        seed=0,
        device="cpu",
    )
    model.learn(1_500)
    assert model.logger.name_to_value.get("train/planned_share", 1.0) > 0.5
    actions = [int(model.predict(place, deterministic=True)[0]) for place in range(6)]
    assert actions == [1] * 6


def test_topological_dqn_plans_with_its_own_gamma(tmp_path: Path) -> None:
    model = TopologicalDQN("MlpPolicy", corridors(1), 1e-3, gamma=0.5, **small())
    assert model.replay_buffer.replay.gamma == 0.5  # type: ignore[union-attr]
    model.save(tmp_path / "model")
    again = TopologicalDQN.load(tmp_path / "model", env=corridors(1), gamma=0.9)
    assert again.replay_buffer.replay.gamma == 0.9  # type: ignore[union-attr]
    with pytest.raises(ValueError, match=r"gamma must be the same for .*, got 0.99 and 0.5"):
        TopologicalDQN("MlpPolicy", corridors(1), replay_buffer_kwargs={"gamma": 0.5}, **small())
    again.save_replay_buffer(tmp_path / "buffer")
    model.load_replay_buffer(tmp_path / "buffer")
    with pytest.raises(ValueError, match=r"gamma must be the same for .*, got 0.5 and 0.9"):
        model.learn(10)


def test_what_topological_dqn_refuses() -> None:
    with pytest.raises(ValueError, match=r"bounds must be finite, the lowest first, got \(1.0, 0.0\)"):
        TopologicalDQN("MlpPolicy", corridors(1), bounds=(1.0, 0.0), **small())
    for other, said in ((None, "None"), (theirs.ReplayBuffer, "ReplayBuffer")):
        with pytest.raises(TypeError, match=rf"replay_buffer_class must be backsweep's ReplayBuffer, got .*{said}"):
            TopologicalDQN("MlpPolicy", corridors(1), replay_buffer_class=other, **small())
    model = TopologicalDQN("MlpPolicy", VecNormalize(corridors(1)), target_update_interval=30, **small())
    with pytest.raises(ValueError, match="norm_reward=False"):
        model.learn(80)
    without = TopologicalDQN(
        "MlpPolicy", corridors(1), replay_buffer_kwargs={"values": None, "sampler": Uniform()}, **small()
    )
    without.learn(60)
    assert without.replay_buffer.last_batch.target is None  # type: ignore[union-attr]
    assert GraphValues() == TopologicalDQN("MlpPolicy", corridors(1), **small()).replay_buffer.replay.values  # type: ignore[union-attr]


@pytest.mark.filterwarnings("ignore::UserWarning:minari")
def test_a_data_set_is_loaded_with_scaled_actions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("minari")
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    actions = gym.spaces.Box(-3.0, 2.0, (1,), np.float32)
    recorded = Replay(gym.spaces.Box(0, 10, (2,), np.float32), actions, 20)
    look = np.arange(8, dtype=np.float32).reshape(4, 2)
    recorded.extend(look, np.array([[-3.0], [-0.5], [2.0]], np.float32), [0.0, 0.0, 1.0], True)
    dataset = recorded.to_minari("corridor/recorded-v0")
    model = SAC("MlpPolicy", corridors(1, discrete=False), replay_buffer_class=ReplayBuffer, **small())
    assert isinstance(model.replay_buffer, ReplayBuffer)
    assert model.replay_buffer.preload(dataset) == 3
    assert model.replay_buffer.replay.read([0, 1, 2]).action.ravel().tolist() == [-1.0, 0.0, 1.0]
    model.learn(60)
    model.replay_buffer.reset()
    assert model.replay_buffer.size() == 0


def test_a_replay_of_another_environment_is_refused(tmp_path: Path) -> None:
    model = DQN("MlpPolicy", "CartPole-v1", replay_buffer_class=ReplayBuffer, learning_starts=10, seed=0)
    model.learn(50)
    buffer = model.replay_buffer
    assert isinstance(buffer, ReplayBuffer)
    buffer.replay.save(tmp_path / "replay")
    again = DQN("MlpPolicy", "CartPole-v1", replay_buffer_class=ReplayBuffer, learning_starts=10, seed=0)
    assert isinstance(again.replay_buffer, ReplayBuffer)
    again.replay_buffer.replay = Replay.load(tmp_path / "replay")
    assert len(again.replay_buffer.replay) == len(buffer.replay)
    again.learn(20)
    other = DQN("MlpPolicy", "Acrobot-v1", replay_buffer_class=ReplayBuffer)
    assert isinstance(other.replay_buffer, ReplayBuffer)
    with pytest.raises(ValueError, match=r"replay must have observation_space=Box.* as the buffer's own, got Box"):
        other.replay_buffer.replay = Replay.load(tmp_path / "replay")
    with pytest.raises(ValueError, match="got None"):
        other.replay_buffer.replay = "replay"  # type: ignore[assignment]
