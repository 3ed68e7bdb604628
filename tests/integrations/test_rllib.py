"""The episode replay inside the real RLlib."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

pytest.importorskip("ray.rllib", reason="needs ray and RLlib: make test-integrations installs them")

from ray.rllib.env.single_agent_episode import SingleAgentEpisode

from backsweep import Mixture, Prioritized, Topological
from backsweep.integrations.rllib import EpisodeReplay

BOTH = Mixture([(0.5, Topological()), (0.5, Prioritized())])
BOX, ACTIONS = gym.spaces.Box(-100, 100, (2,), np.float32), gym.spaces.Discrete(3)


def piece(name: str, first: int, last: int, ends: str = "") -> SingleAgentEpisode:
    """Steps first..last of an episode that walks along a line; each has a reward of its number."""
    return SingleAgentEpisode(
        id_=name,
        observations=[np.array([t, len(name)], np.float32) for t in range(first, last + 1)],
        observation_space=BOX,
        actions=[t % 3 for t in range(first, last)],
        action_space=ACTIONS,
        rewards=[float(t) for t in range(first, last)],
        terminated=ends == "terminated",
        truncated=ends == "truncated",
        t_started=first,
        len_lookback_buffer=0,
    )


def filled(sampler: Any = None, **options: Any) -> EpisodeReplay:
    buffer = EpisodeReplay(100, sampler=sampler, seed=0, **options)
    buffer.add([piece("a", 0, 4), piece("bb", 0, 3)])
    buffer.add([piece("a", 4, 9, "terminated").to_numpy(), piece("bb", 3, 6, "truncated")])
    buffer.add(piece("ccc", 0, 5))
    return buffer


def test_pieces_of_episodes_find_together() -> None:
    buffer = filled(Topological())
    replay = buffer.replay
    assert replay is not None
    assert (len(buffer), buffer.get_num_episodes(), buffer.get_added_timesteps()) == (20, 3, 20)
    assert replay.stats()["episodes_broken_off"] == 0
    assert len(replay.graph.terminal_vertices) == 1
    lengths = sorted({tuple(replay.episode(row)) for row in range(20)}, key=len)
    assert [len(rows) for rows in lengths] == [5, 6, 9]


@pytest.mark.parametrize("n_step", [1, 3, (1, 5), None])
def test_samples_are_steps_with_weights(n_step: Any) -> None:
    buffer = filled(BOTH)
    for episode in buffer.sample(num_items=40, n_step=n_step, gamma=0.5, beta=0.4, sample_episodes=True):
        first, last = episode.get_observations()
        steps = int(episode.get_extra_model_outputs("n_step")[0])
        start = int(first[0])
        assert last[0] - first[0] == steps
        assert steps <= {1: 1, None: 1, 3: 3}.get(n_step if not isinstance(n_step, tuple) else 0, 4)
        assert episode.get_rewards()[0] == pytest.approx(sum(0.5**k * (start + k) for k in range(steps)))
        assert episode.get_actions()[0] == start % 3
        assert episode.is_terminated == (first[1] == 1 and last[0] == 9)
        assert 0 < episode.get_extra_model_outputs("weights")[0] <= 1


def test_priorities_come_back() -> None:
    buffer = filled(Prioritized(alpha=1.0))
    episodes = buffer.sample(num_items=30)
    wanted = np.array([episode.get_rewards()[0] == 7.0 for episode in episodes])
    assert wanted.any()
    buffer.update_priorities(np.where(wanted, 1000.0, 1e-6))
    assert np.mean([episode.get_rewards()[0] == 7.0 for episode in buffer.sample(num_items=30)]) > 0.8


def test_a_state_goes_on_as_the_original_does() -> None:
    buffer = filled(BOTH)
    other = EpisodeReplay(100, sampler=BOTH, seed=7)
    other.set_state(pickle.loads(pickle.dumps(buffer.get_state())))
    for one in (buffer, other):
        one.add(piece("ccc", 5, 8))
    assert other.replay is not None
    assert other.replay.stats()["episodes_broken_off"] == 0
    first, second = (
        [episode.get_observations().tolist() for episode in one.sample(num_items=20, n_step=(1, 4))]
        for one in (buffer, other)
    )
    assert first == second


def test_what_is_refused() -> None:
    buffer = EpisodeReplay(10)
    with pytest.raises(ValueError, match="empty replay"):
        buffer.sample(num_items=3)
    with pytest.raises(ValueError, match="call sample first"):
        buffer.update_priorities(np.ones(3))
    episode = piece("a", 0, 2)
    episode.observation_space = None
    with pytest.raises(ValueError, match="observation_space"):
        buffer.add(episode)


def test_options_without_effect_and_large_batches_are_refused() -> None:
    for name in ("n_step", "gamma", "values"):
        with pytest.raises(TypeError, match=f"{name} must not be among the buffer's options, got 3"):
            EpisodeReplay(10, **{name: 3})
    with pytest.raises(TypeError, match=r"sampler must be a sampler configuration such as Uniform\(\), got 'per'"):
        EpisodeReplay(10, sampler="per")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"must be at most the capacity, 100, got 128"):
        filled().sample(num_items=128)


def test_actions_outside_of_the_bounds_are_stored() -> None:
    """A module's outputs lie in -1..1, whatever the bounds are; the environment's side scales them."""
    episode = piece("a", 0, 4)
    bounds = gym.spaces.Box(10, 20, (1,), np.float32)
    episode = SingleAgentEpisode(
        observations=episode.get_observations(),
        observation_space=BOX,
        actions=[np.array([-0.5], np.float32)] * 4,
        action_space=bounds,
        rewards=[0.0] * 4,
        len_lookback_buffer=0,
    )
    buffer = EpisodeReplay(10, seed=0)
    buffer.add(episode)
    other = EpisodeReplay(10, seed=0)
    other.set_state(pickle.loads(pickle.dumps(buffer.get_state())))
    for one in (buffer, other):
        (drawn,) = one.sample(num_items=1)
        assert drawn.action_space == bounds
        assert drawn.get_actions()[0] == [-0.5]


def test_a_restored_replay_with_other_settings_is_said() -> None:
    state = filled(Prioritized()).get_state()
    other = EpisodeReplay(200, seed=0)
    with pytest.warns(UserWarning, match="the restored replay's") as warned:
        other.set_state(state)
    said = [str(warning.message) for warning in warned]
    assert "capacity is 100, not 200 as configured" in said[0]
    assert "sampler is Prioritized" in said[1]
    assert other.capacity == 100


@pytest.fixture(scope="module")
def local_ray() -> Iterator[None]:
    import ray

    ray.init(num_cpus=1, include_dashboard=False, ignore_reinit_error=True, log_to_driver=False)
    yield
    ray.shutdown()


def small(config: Any, environment: str, **options: Any) -> Any:
    """Return a configuration of a short training with our buffer."""
    return (
        config.environment(environment)
        .env_runners(num_env_runners=0, num_envs_per_env_runner=2)
        .training(
            train_batch_size_per_learner=16,
            n_step=2,
            num_steps_sampled_before_learning_starts=50,
            replay_buffer_config={
                "type": "backsweep.integrations.rllib.EpisodeReplay",
                "capacity": 2_000,
                "sampler": Prioritized(),
                "seed": 3,
                **options,
            },
        )
        .reporting(min_sample_timesteps_per_iteration=200)
    )


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["DQN", "SAC"])
def test_training_and_checkpoints_hold_the_replay(name: str, tmp_path: Path, local_ray: None) -> None:
    from ray.rllib.algorithms.dqn import DQNConfig

    from backsweep.integrations.rllib import DQN, SACConfig

    config: Any = DQNConfig(algo_class=DQN) if name == "DQN" else SACConfig()
    config = small(config, "CartPole-v1" if name == "DQN" else "Pendulum-v1")
    algorithm = config.build_algo()
    algorithm.train()
    buffer = algorithm.local_replay_buffer
    assert isinstance(buffer, EpisodeReplay)
    assert len(buffer) >= 200
    stats = buffer.replay.stats()  # type: ignore[union-attr]
    assert stats["mean_priority"] != 1.0
    assert stats["episodes_broken_off"] == 0
    checkpoint = algorithm.save_to_path(str(tmp_path / "checkpoint"))
    again = config.build_algo()
    again.restore_from_path(checkpoint)
    whole = type(algorithm).from_checkpoint(checkpoint)
    expected = buffer.replay.pick(16).row.tolist()  # type: ignore[union-attr]
    for restored in (again, whole):
        assert restored.local_replay_buffer.replay.pick(16).row.tolist() == expected
        restored.stop()
    algorithm.stop()


@pytest.mark.filterwarnings("ignore")
def test_state_numbers_need_a_connector(local_ray: None) -> None:
    """As docs/frameworks/rllib.md says: RLlib has no network for them; its connector makes what the buffer takes."""
    from ray.rllib.algorithms.dqn import DQNConfig
    from ray.rllib.connectors.env_to_module import FlattenObservations

    from backsweep.integrations.rllib import DQN

    config = small(DQNConfig(algo_class=DQN), "FrozenLake-v1", sampler=Topological())
    with pytest.raises(ValueError, match=r"No default encoder config for obs space=Discrete\(16\)"):
        config.copy(copy_frozen=False).build_algo()
    algorithm = config.env_runners(
        env_to_module_connector=lambda env, spaces, device: FlattenObservations()
    ).build_algo()
    algorithm.train()
    replay = algorithm.local_replay_buffer.replay
    assert replay.observation_space.shape == (16,)
    assert replay.stats()["vertices"] == replay.stats()["distinct_observations"] <= 16
    assert len(replay.graph.terminal_vertices) > 0
    algorithm.stop()


@pytest.mark.filterwarnings("ignore")
def test_a_checkpoint_for_another_buffer_is_said(tmp_path: Path, local_ray: None) -> None:
    from ray.rllib.algorithms.dqn import DQNConfig

    from backsweep.integrations.rllib import DQN

    algorithm = small(DQNConfig(algo_class=DQN), "CartPole-v1").build_algo()
    state = algorithm.get_state()
    other = DQNConfig(algo_class=DQN).environment("CartPole-v1").env_runners(num_env_runners=0).build_algo()
    with pytest.warns(UserWarning, match="the configured PrioritizedEpisodeReplayBuffer cannot take"):
        other.set_state(state)
    algorithm.stop()
    other.stop()
