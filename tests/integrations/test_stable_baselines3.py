"""The buffers, the callback and the algorithm inside the real Stable-Baselines3."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

pytest.importorskip("stable_baselines3", reason="needs stable-baselines3: make test-integrations installs it")

import torch
from stable_baselines3 import DQN, SAC, TD3
from stable_baselines3.common import buffers as theirs
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import DummyVecEnv, VecFrameStack, VecNormalize, VecTransposeImage
from torch.nn import functional

from backsweep import GraphValues, Mixture, Prioritized, Replay, Topological, Uniform
from backsweep.integrations.stable_baselines3 import DictReplayBuffer, ReplayBuffer, ReplayCallback, TopologicalDQN

BOTH = Mixture([(0.5, Topological()), (0.5, Prioritized())])


def small(**changes: Any) -> dict[str, Any]:
    """Options of a small model; new ones each time, because algorithms write into them."""
    return {"policy_kwargs": {"net_arch": [16]}, "learning_starts": 20, "device": "cpu", "seed": 0, **changes}


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


class Corridor(gym.Env[Any, Any]):
    """Six places in a row; the episode ends at the right end, or after `limit` steps."""

    def __init__(self, kind: str = "vector", limit: int = 8, discrete: bool = True) -> None:
        spaces: dict[str, gym.Space[Any]] = {
            "vector": gym.spaces.Box(0, 10, (2,), np.float32),
            "number": gym.spaces.Discrete(7),
            "image": gym.spaces.Box(0, 255, (36, 36, 1), np.uint8),
            "dict": gym.spaces.Dict(place=gym.spaces.Discrete(7), more=gym.spaces.Box(0, 10, (2,), np.float32)),
        }
        self.kind, self.limit = kind, limit
        self.observation_space = spaces[kind]
        self.action_space = gym.spaces.Discrete(2) if discrete else gym.spaces.Box(-3.0, 2.0, (1,), np.float32)

    def _look(self) -> Any:
        vector = np.array([self.place, self.time], np.float32)
        image = np.full((36, 36, 1), 10 * self.place + self.time, np.uint8)
        return {
            "vector": vector,
            "number": self.place,
            "image": image,
            "dict": {"place": self.place, "more": vector},
        }[self.kind]

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.place, self.time = 0, 0
        return self._look(), {}

    def step(self, action: Any) -> Any:
        right = action == 1 if isinstance(self.action_space, gym.spaces.Discrete) else action[0] > 0
        self.place = min(self.place + 1, 6) if right else max(self.place - 1, 0)
        self.time += 1
        ended = self.place == 6
        return self._look(), float(ended), ended, not ended and self.time == self.limit, {}


def corridors(n: int, **options: Any) -> DummyVecEnv:
    return DummyVecEnv([lambda: Corridor(**options)] * n)


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


def weighted_update(model: Any, batch_size: int) -> None:
    """One DQN update with weights, written out."""
    samples = model.replay_buffer.sample(batch_size)
    batch = model.replay_buffer.last_batch
    with torch.no_grad():
        following = model.q_net_target(samples.next_observations).max(dim=1, keepdim=True).values
        target = samples.rewards + (1 - samples.dones) * model.gamma * following
    values = model.q_net(samples.observations).gather(1, samples.actions.long())
    errors = functional.smooth_l1_loss(values, target, reduction="none")
    loss = (torch.tensor(batch.weight)[:, None] * errors).mean()
    model.policy.optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.policy.parameters(), model.max_grad_norm)
    model.policy.optimizer.step()
    model.replay_buffer.update_priorities(target - values)


def test_hooks_do_what_a_weighted_loss_does() -> None:
    def make() -> Any:
        model = DQN(
            "MlpPolicy",
            corridors(1),
            replay_buffer_class=ReplayBuffer,
            replay_buffer_kwargs={"sampler": Prioritized(beta=1.0)},
            **small(learning_starts=10**6, train_freq=1),
        )
        return model.learn(100)

    hooked, by_hand = make(), make()
    callback = ReplayCallback()
    callback.init_callback(hooked)
    callback.on_training_start({}, {})
    for _ in range(12):
        hooked.train(gradient_steps=1, batch_size=16)
        weighted_update(by_hand, 16)
    callback.on_training_end()
    moved = make()
    for found, expected, before in zip(
        hooked.q_net.parameters(), by_hand.q_net.parameters(), moved.q_net.parameters(), strict=True
    ):
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-6)
        assert not torch.allclose(found, before, rtol=1e-4, atol=1e-6)
    rows = np.arange(100)
    priorities = [model.replay_buffer.replay.machinery.sampler.priorities(rows) for model in (hooked, by_hand)]
    np.testing.assert_allclose(*priorities, rtol=1e-3)


class Interrupt(BaseCallback):
    """A notebook's stop button, pressed after some steps."""

    def _on_step(self) -> bool:
        if self.n_calls == 40:
            raise KeyboardInterrupt
        return True


def hooks_on(model: Any) -> int:
    return len(model.q_net._forward_hooks) + len(model.q_net_target._forward_hooks)


def test_an_interrupted_learn_leaves_no_second_weights() -> None:
    options = {"replay_buffer_class": ReplayBuffer, "replay_buffer_kwargs": {"sampler": Prioritized()}}
    model = DQN("MlpPolicy", corridors(1), train_freq=1, batch_size=8, **options, **small())
    first = ReplayCallback()
    with pytest.raises(KeyboardInterrupt):
        model.learn(100, callback=[first, Interrupt()])
    assert hooks_on(model) == 2
    reported: list[int] = []
    buffer = model.replay_buffer
    assert isinstance(buffer, ReplayBuffer)
    report = buffer.update_priorities
    buffer.update_priorities = lambda error: reported.append(len(error)) or report(error)  # type: ignore[method-assign]
    # Another callback takes the place of the first one.
    model.learn(10, callback=ReplayCallback(), reset_num_timesteps=False)
    assert (reported, hooks_on(model)) == ([8] * 10, 0)
    # Without a callback nothing is weighted any more.
    with pytest.raises(KeyboardInterrupt):
        model.learn(100, callback=[ReplayCallback(), Interrupt()], reset_num_timesteps=False)
    reported.clear()
    model.learn(10, reset_num_timesteps=False)
    assert (reported, hooks_on(model)) == ([], 0)


def test_the_same_callback_reports_to_a_buffer_that_was_loaded(tmp_path: Path) -> None:
    options = {"replay_buffer_class": ReplayBuffer, "replay_buffer_kwargs": {"sampler": Prioritized()}}
    model = DQN("MlpPolicy", corridors(1), train_freq=1, batch_size=8, **options, **small())
    callback = ReplayCallback()
    with pytest.raises(KeyboardInterrupt):
        model.learn(100, callback=[callback, Interrupt()])
    model.save_replay_buffer(tmp_path / "buffer")
    model.load_replay_buffer(tmp_path / "buffer")
    model.learn(10, callback=callback, reset_num_timesteps=False)
    assert model.replay_buffer._unreported == 0  # type: ignore[union-attr]


def test_the_callback_refuses_what_it_cannot_do() -> None:
    for name, value in (("save_every", 0), ("stats_every", -1), ("save_every", 0.5)):
        with pytest.raises(ValueError, match=rf"{name} must be an int of . or more, got {value}"):
            ReplayCallback(**{name: value})
    contrib = pytest.importorskip("sb3_contrib", reason="TQC is in sb3-contrib")
    model = contrib.TQC("MlpPolicy", corridors(1, discrete=False), replay_buffer_class=ReplayBuffer, **small())
    with pytest.raises(TypeError, match=r"DQN, QR-DQN, SAC, TD3 and DDPG, got TQC; use weights=False"):
        model.learn(10, callback=ReplayCallback())
    model.learn(30, callback=ReplayCallback(weights=False))


def test_the_callback_logs_and_saves_and_mistakes_are_named(tmp_path: Path) -> None:
    model = DQN("MlpPolicy", corridors(1), replay_buffer_class=ReplayBuffer, **small())
    callback = ReplayCallback(stats_every=10, save_folder=tmp_path / "replay", save_every=30)
    model.learn(96, callback=callback, log_interval=10**9)  # what is logged is kept until it is written
    assert model.logger.name_to_value["replay/rows"] == 89
    again = Replay.load(tmp_path / "replay")
    assert again.total == 96
    plain = DQN("MlpPolicy", corridors(1), **small())
    with pytest.raises(TypeError, match=r"ReplayCallback needs .*, got stable_baselines3.common.buffers.ReplayBuffer"):
        plain.learn(10, callback=ReplayCallback())
    with pytest.raises(TypeError, match=r"replay_buffer_kwargs must hold .*n_steps.*, got 'n_step'"):
        ReplayBuffer(10, gym.spaces.Discrete(3), gym.spaces.Discrete(2), n_step=3)


def test_n_steps_need_the_gamma_of_the_algorithm() -> None:
    with pytest.raises(TypeError, match=r"gamma must be given with n_steps=3, and be the algorithm's"):
        ReplayBuffer(10, gym.spaces.Discrete(3), gym.spaces.Discrete(2), n_steps=3)
    options = {"replay_buffer_class": ReplayBuffer, "replay_buffer_kwargs": {"n_steps": 3, "gamma": 0.99}}
    model = DQN("MlpPolicy", corridors(1), gamma=0.9, **options, **small())
    with pytest.raises(ValueError, match=r"gamma must be the algorithm's, 0.9, with n_steps=3, got 0.99"):
        model.learn(10, callback=ReplayCallback())


def test_the_callback_leaves_weights_to_an_algorithm_that_has_them() -> None:
    def trained(callback: ReplayCallback | None) -> dict[str, torch.Tensor]:
        kwargs = {"sampler": Prioritized()}
        model = TopologicalDQN("MlpPolicy", corridors(1), replay_buffer_kwargs=kwargs, **small())
        model.learn(80, callback=callback)
        return model.q_net.state_dict()

    alone, watched = trained(None), trained(ReplayCallback())
    assert all(torch.equal(alone[name], watched[name]) for name in alone)


def test_priorities_that_are_never_reported_cause_one_warning() -> None:
    def model() -> DQN:
        options = {"replay_buffer_class": ReplayBuffer, "replay_buffer_kwargs": {"sampler": Prioritized()}}
        return DQN("MlpPolicy", corridors(1), train_freq=1, batch_size=4, **options, **small())

    with pytest.warns(UserWarning, match=r"no TD errors came back.*callback=ReplayCallback\(\)") as told:
        model().learn(300)
    assert len(told) == 1
    model().learn(200, callback=ReplayCallback())  # a warning would be an error


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
