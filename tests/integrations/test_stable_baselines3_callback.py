"""The callback that brings weights and priorities, inside the real Stable-Baselines3."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

pytest.importorskip("stable_baselines3", reason="needs stable-baselines3: make test-integrations installs it")

import torch
from sb3_corridor import corridors, small
from stable_baselines3 import DQN
from stable_baselines3.common.callbacks import BaseCallback
from torch.nn import functional

from backsweep import Mixture, Prioritized, Replay, Topological
from backsweep.integrations.stable_baselines3 import ReplayBuffer, ReplayCallback, TopologicalDQN

BOTH = Mixture([(0.5, Topological()), (0.5, Prioritized())])


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


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
