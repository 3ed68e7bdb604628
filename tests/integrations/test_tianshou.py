"""The buffers and the weighted loss inside the real Tianshou."""

from __future__ import annotations

import pickle
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

pytest.importorskip("tianshou", reason="needs tianshou: make test-integrations installs it")
import tianshou.data as theirs
import torch
from tianshou.algorithm.modelfree.dqn import DiscreteQLearningPolicy
from tianshou.algorithm.optim import AdamOptimizerFactory
from tianshou.data import Batch, Collector, PrioritizedReplayBuffer
from tianshou.env import DummyVectorEnv
from tianshou.utils.net.common import Net

from backsweep import Mixture, Prioritized, Topological
from backsweep.integrations.tianshou import DQN, ReplayBuffer, SampledCollectors, VectorReplayBuffer
from backsweep.samplers import Sampler

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")

BOTH = Mixture([(0.5, Topological()), (0.5, Prioritized())])


def algorithm(**options: Any) -> DQN:
    torch.manual_seed(0)
    env = gym.make("CartPole-v1")
    net = Net(state_shape=env.observation_space.shape, action_shape=2, hidden_sizes=[16])
    policy = DiscreteQLearningPolicy(model=net, action_space=env.action_space, eps_training=0.5)
    return DQN(policy=policy, optim=AdamOptimizerFactory(lr=1e-3), target_update_freq=50, **options)


def collected(sampler: Sampler | None, num_envs: int = 3, **options: Any) -> tuple[DQN, VectorReplayBuffer]:
    dqn = algorithm(**options)
    envs = DummyVectorEnv([lambda: gym.make("CartPole-v1")] * num_envs)
    envs.seed(0)
    buffer = VectorReplayBuffer(600, num_envs, sampler=sampler, seed=0)
    collector = Collector(dqn, envs, buffer, exploration_noise=True)
    collector.reset()
    collector.collect(n_step=300)
    return dqn, buffer


def test_the_picker_knows_the_same_transitions() -> None:
    _, buffer = collected(Topological())
    assert len(buffer.picker) == len(buffer) == 300
    terminated = int(buffer.terminated[buffer.sample_indices(0)].sum())
    assert terminated == len(buffer.picker.replay.graph.terminal_vertices) > 0
    # CartPole never repeats: a state for each step and one more for each episode.
    stats = buffer.picker.replay.stats()
    assert stats["distinct_observations"] == 300 + stats["episodes"]
    assert stats["episodes_broken_off"] == 0


@pytest.mark.parametrize("n_step", [1, 3])
@pytest.mark.parametrize("delta", [None, 1.0])
def test_updates_use_weights_and_report_priorities(n_step: int, delta: float | None) -> None:
    dqn, buffer = collected(Prioritized(), huber_loss_delta=delta, n_step_return_horizon=n_step)
    with torch.no_grad():
        before = [parameter.clone() for parameter in dqn.policy.model.parameters()]
    dqn.policy.is_within_training_step = True
    for _ in range(10):
        dqn.update(buffer=buffer, sample_size=32)
    assert any(not torch.equal(old, new) for old, new in zip(before, dqn.policy.model.parameters(), strict=True))
    priorities = buffer.picker.replay.machinery.sampler.priorities(np.arange(300))
    assert len(np.unique(priorities)) > 50
    batch, places = buffer.sample(16)
    assert batch.weight.shape == places.shape == (16,)
    assert batch.weight.min() < 1


def test_the_huber_loss_is_weighted_row_by_row() -> None:
    """Rows of weight 0 do not matter, and the rest is what the original makes of them alone."""
    gradients = []
    for rows, weight in (([0, 1, 2, 3], [1.0, 1.0, 0.0, 0.0]), ([0, 1], [0.5, 0.5])):
        dqn = algorithm(huber_loss_delta=1.0)
        observations = np.linspace(-1, 1, 16, dtype=np.float32).reshape(4, 4)[rows]
        batch = Batch(
            obs=observations,
            act=np.array([0, 1, 1, 0])[rows],
            info=Batch(),
            returns=torch.tensor([[3.0], [0.1], [9.0], [-9.0]])[rows],
            weight=np.array(weight),
        )
        dqn._update_with_batch(batch)
        gradients.append([parameter.grad.clone() for parameter in dqn.policy.model.parameters()])
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-7)


def test_one_environment_dictionaries_and_the_edges_of_sampling() -> None:
    buffer = ReplayBuffer(50, sampler=BOTH, seed=0)
    assert buffer.sample_indices(0).tolist() == []
    for step in range(70):
        now, following = {"a": np.array([step % 7]), "b": step % 2}, {"a": np.array([(step + 1) % 7]), "b": 1}
        buffer.add(
            Batch(
                obs=now,
                act=0,
                rew=1.0,
                terminated=step % 7 == 6,
                truncated=False,
                obs_next=following,
                info={},
            )
        )
    assert len(buffer.picker) == len(buffer) == 50
    assert sorted(buffer.sample_indices(0).tolist()) == list(range(50))
    assert buffer.sample_indices(-1).tolist() == []
    other = pickle.loads(pickle.dumps(buffer))
    assert other.sample_indices(8).tolist() == buffer.sample_indices(8).tolist()
    buffer.reset()
    assert len(buffer.picker) == 0


def walked(buffer: Any, steps: int, offset: float = 0.0) -> Any:
    """Fill a buffer with episodes of seven steps."""
    for step in range(steps):
        place = step % 7
        buffer.add(
            Batch(
                obs=np.array([offset + place]),
                act=0,
                rew=1.0,
                terminated=place == 6,
                truncated=False,
                obs_next=np.array([offset + place + 1]),
                info={},
            )
        )
    return buffer


@pytest.mark.parametrize("options", [{}, {"ignore_obs_next": True}, {"stack_num": 3}])
def test_transitions_of_another_buffer_are_drawn_too(options: dict[str, Any]) -> None:
    buffer = walked(ReplayBuffer(60, sampler=Prioritized(), seed=0, **options), 14)
    places = buffer.update(walked(theirs.ReplayBuffer(100, **options), 20, offset=100.0))
    assert places.tolist() == list(range(14, 34))
    walked(buffer, 7)
    drawn = {int(place) for _ in range(40) for place in buffer.sample_indices(40)}
    # What followed the last step is not known if it is not stored; such a step has no target.
    assert set(range(41)) - drawn == ({33} if "ignore_obs_next" in options else set())
    assert len(buffer.picker.replay.graph.terminal_vertices) == 2
    full = ReplayBuffer(10, sampler=Topological(), seed=0)
    full.update(walked(theirs.ReplayBuffer(100), 20))
    assert len(full) == len(full.picker) == 10


def test_data_that_were_never_added_step_by_step(tmp_path: Path) -> None:
    flags = np.arange(20) % 5 == 4
    columns = {
        "obs": np.arange(20.0)[:, None],
        "act": np.zeros(20),
        "rew": np.ones(20),
        "terminated": flags,
        "truncated": np.zeros(20, np.bool_),
        "done": flags,
        "obs_next": np.arange(20.0)[:, None] + 1,
    }
    buffer = ReplayBuffer.from_data(**columns)
    assert len(buffer.picker) == 20
    buffer.save_hdf5(str(tmp_path / "ours"))
    assert len(ReplayBuffer.load_hdf5(str(tmp_path / "ours")).picker) == 20
    walked(theirs.ReplayBuffer(100), 20).save_hdf5(str(tmp_path / "theirs"))
    with pytest.raises(ValueError, match="theirs was saved by another buffer, without a sampler"):
        ReplayBuffer.load_hdf5(str(tmp_path / "theirs"))


def test_a_buffer_of_several_environments_says_where_data_can_go_instead() -> None:
    other = walked(theirs.ReplayBuffer(100), 20)
    buffer = VectorReplayBuffer(100, 2, sampler=Topological(), seed=0)
    with pytest.raises(NotImplementedError, match=r"^update: .* copy them into a ReplayBuffer, or add them to this"):
        buffer.update(other)
    assert len(buffer) == len(buffer.picker) == 0
    with pytest.raises(NotImplementedError, match=r"^from_data: .* copy them into a ReplayBuffer"):
        VectorReplayBuffer.from_data(obs=np.zeros(3))
    for row in other.sample_indices(0):
        for lane in range(2):
            buffer.add(other[np.array([row])], [lane])
    assert len(buffer) == len(buffer.picker) == 40


def test_options_that_would_be_ignored_are_refused() -> None:
    for make in (partial(ReplayBuffer, 30), partial(VectorReplayBuffer, 30, 2)):
        with pytest.raises(TypeError, match=r"options must be among sampler, .*, got 'smapler'"):
            make(smapler=Prioritized())
        with pytest.raises(ValueError, match="sample_avail must be False, got True"):
            make(stack_num=4, sample_avail=True)
    with pytest.raises(ValueError, match="batch_size must be at most the buffer's size, 10, got 64"):
        walked(ReplayBuffer(10), 10).sample(64)


@pytest.mark.parametrize("num_envs", [1, 3])
def test_collectors_of_high_level_experiments_have_buffers_with_a_sampler(num_envs: int) -> None:
    envs = DummyVectorEnv([lambda: gym.make("CartPole-v1")] * num_envs)
    given: Any = (
        theirs.VectorReplayBuffer(600, num_envs, ignore_obs_next=True)
        if num_envs > 1
        else theirs.ReplayBuffer(600, ignore_obs_next=True)
    )
    factory = SampledCollectors(Prioritized(), seed=5)
    learner = algorithm()
    collector: Any = factory.create_collector(learner, envs, given, exploration_noise=True)
    assert type(collector.buffer) is (VectorReplayBuffer if num_envs > 1 else ReplayBuffer)
    assert (collector.buffer.maxsize, collector.buffer.options) == (given.maxsize, given.options)
    collector.reset()
    collector.collect(n_step=60 * num_envs, random=True)
    batch, places = collector.buffer.sample(16)
    assert batch.weight.shape == (16,)
    collector.buffer.update_weight(places, np.ones(16))
    for_tests: Any = factory.create_collector(learner, envs)
    assert type(for_tests.buffer).__module__.startswith("tianshou.")
    with pytest.raises(TypeError, match="sampler must be a sampler configuration"):
        SampledCollectors(Prioritized)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="seed must be 0 or more, got -1"):
        SampledCollectors(Prioritized(), seed=-1)
    with pytest.raises(TypeError, match=r"buffer must be a ReplayBuffer or .*, got PrioritizedReplayBuffer"):
        factory.create_collector(learner, envs, PrioritizedReplayBuffer(10, alpha=0.6, beta=0.4))
