"""backsweep in RLlib (new API stack): an episode replay buffer with any sampler, which checkpoints include.

buffer = {"type": "backsweep.integrations.rllib.EpisodeReplay", "capacity": 50_000, "sampler": Prioritized()}
config = DQNConfig(algo_class=backsweep.integrations.rllib.DQN).training(replay_buffer_config=buffer)
config = backsweep.integrations.rllib.SACConfig().training(replay_buffer_config=buffer)
"""

from __future__ import annotations

import warnings
from typing import Any

try:
    import ray.rllib  # noqa: F401
except ImportError as error:
    raise ImportError("backsweep.integrations.rllib needs Ray with RLlib: pip install 'backsweep[rllib]'") from error

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray
from ray.rllib.algorithms import dqn, sac
from ray.rllib.core import DEFAULT_AGENT_ID, DEFAULT_MODULE_ID
from ray.rllib.env.single_agent_episode import SingleAgentEpisode
from ray.rllib.utils import force_list
from ray.rllib.utils.replay_buffers.episode_replay_buffer import EpisodeReplayBuffer
from ray.rllib.utils.replay_buffers.prioritized_episode_buffer import PrioritizedEpisodeReplayBuffer
from ray.rllib.utils.spaces.space_utils import batch as batched

from backsweep.integrations import LanePool, seed_from_numpy
from backsweep.jit.random_streams import named_generator
from backsweep.replay import Replay
from backsweep.replay.argument_checks import checked_sampler
from backsweep.samplers import Sampler
from backsweep.store.layout import host_array
from backsweep.trees import map_tree
from backsweep.types import Batch

__all__ = ["DQN", "SAC", "EpisodeReplay", "SACConfig"]

STATE = "backsweep_replay"
NAME = "backsweep.integrations.rllib.EpisodeReplay"


class EpisodeReplay(PrioritizedEpisodeReplayBuffer):
    """A `Replay` with the interface of RLlib's prioritized episode buffer, the class to which RLlib reports TD errors.

    Parameters
    ----------
    capacity, batch_size_B, metrics_num_episodes_for_smoothing
        As in RLlib.
    sampler
        By default `Uniform()`.
    lanes
        Number of episodes that may run at the same time: at least all environments of all runners.
    seed
        By default derived from numpy's global random state.
    options
        Other arguments of `Replay`, such as `encoder`. RLlib's own settings (`alpha`, `beta`, ...) are ignored: the
        sampler has them.

    Notes
    -----
    In a configuration its type must be the name above, a str: RLlib looks into names only.
    """

    IGNORED = ("alpha", "beta", "batch_length_T", "type", "storage_unit")
    WITHOUT_EFFECT = ("n_step", "gamma", "values")
    capacity: int

    def __init__(
        self,
        capacity: int = 10_000,
        *,
        sampler: Sampler | None = None,
        lanes: int = 64,
        seed: int | None = None,
        batch_size_B: int = 16,
        metrics_num_episodes_for_smoothing: int = 100,
        **options: Any,
    ) -> None:
        # The prioritized buffer's __init__ would build its trees, which are not needed.
        EpisodeReplayBuffer.__init__(
            self,
            capacity=capacity,
            batch_size_B=batch_size_B,
            batch_length_T=1,
            metrics_num_episodes_for_smoothing=metrics_num_episodes_for_smoothing,
        )
        for name in self.WITHOUT_EFFECT:
            if name in options:
                raise TypeError(
                    f"{name} must not be among the buffer's options, got {options[name]!r}: the algorithm makes "
                    "targets itself; n_step and gamma are its settings"
                )
        self._seed = seed_from_numpy() if seed is None else seed
        self._generator = named_generator(self._seed, "n steps")
        self._options = {name: value for name, value in options.items() if name not in self.IGNORED}
        self._sampler = checked_sampler(sampler)
        self._lanes = LanePool(min(lanes, capacity))
        self._last_rows: NDArray[np.int64] | None = None
        self._action_space: gym.Space[Any] | None = None
        self.replay: Replay | None = None
        """Made with the spaces of the first episode."""

    def _replay_for(self, episode: SingleAgentEpisode) -> Replay:
        if self.replay is None:
            for name in ("observation_space", "action_space"):
                if getattr(episode, name) is None:
                    raise ValueError(f"episodes must know their {name}, got None")
            self._action_space = episode.action_space
            self.replay = Replay(
                episode.observation_space,
                _stored_as(episode.action_space),
                self.capacity,
                self._sampler,
                num_envs=self._lanes.count,
                check_autoreset="off",
                **{"cast": True, "seed": self._seed, **self._options},
            )
        return self.replay

    def add(self, episodes: Any, weight: float | None = None) -> None:  # type: ignore[override]
        """Add episodes or pieces of them; a piece continues the one before."""
        steps = ended = 0
        for episode in force_list(episodes):
            if len(episode) == 0:
                continue
            replay = self._replay_for(episode)
            replay.extend(
                _stacked(episode.get_observations()),
                _stacked(episode.get_actions()),
                np.asarray(host_array(episode.get_rewards()), np.float64),
                bool(episode.is_terminated),
                bool(episode.is_truncated),
                lane=self._lanes.take(episode.id_, ends=bool(episode.is_done)),
            )
            steps += len(episode)
            ended += bool(episode.is_done)
        self._num_timesteps_added += steps
        nothing: dict[Any, int] = {DEFAULT_AGENT_ID: 0}
        self._update_add_metrics(
            num_episodes_added=ended,
            num_env_steps_added=steps,
            num_episodes_evicted=0,
            num_env_steps_evicted=0,
            agent_to_num_episodes_added={DEFAULT_AGENT_ID: ended},
            agent_to_num_steps_added={DEFAULT_AGENT_ID: steps},
            agent_to_num_episodes_evicted=nothing,
            agent_to_num_steps_evicted=nothing,
            module_to_num_steps_added={DEFAULT_MODULE_ID: steps},
            module_to_num_episodes_added={DEFAULT_MODULE_ID: ended},
            module_to_num_episodes_evicted={DEFAULT_MODULE_ID: 0},
            module_to_num_steps_evicted={DEFAULT_MODULE_ID: 0},
        )

    def sample(  # type: ignore[override]  # RLlib's annotation does not match what it returns
        self,
        num_items: int | None = None,
        *,
        batch_size_B: int | None = None,
        n_step: int | tuple[int, int] | None = None,
        gamma: float = 0.99,
        **others: Any,
    ) -> list[SingleAgentEpisode]:
        """Return episodes of one n-step transition each, with ``weights`` and ``n_step`` as extra outputs.

        With a tuple for `n_step`, a number below its second entry is drawn for each row. Near an episode's end a
        transition spans fewer steps; ``n_step`` says how many.
        """
        if self.replay is None or len(self.replay) == 0:
            raise ValueError("cannot sample from an empty replay: add episodes first")
        size = num_items or batch_size_B or self.batch_size_B
        if size > self.capacity:
            raise ValueError(
                f"the batch size (num_items, train_batch_size_per_learner) must be at most the capacity, "
                f"{self.capacity}, got {size}"
            )
        picks = self.replay.pick(size)
        assert picks.weight is not None
        wanted = (
            self._generator.integers(n_step[0], n_step[1], size)
            if isinstance(n_step, tuple)
            else np.full(size, n_step or 1)
        )
        made: list[Any] = [None] * size
        for steps in np.unique(wanted).tolist():
            places = np.flatnonzero(wanted == steps)
            batch = self.replay.read(picks.row[places], n_step=steps, gamma=gamma)
            for i, place in enumerate(places.tolist()):
                made[place] = self._one_step(batch, i, float(picks.weight[place]))
        self._last_rows = picks.row.copy()
        self.sampled_timesteps += size
        return made

    def _one_step(self, batch: Batch, i: int, weight: float) -> SingleAgentEpisode:
        assert self.replay is not None
        return SingleAgentEpisode(
            observations=[_at(batch.observation, i), _at(batch.next_observation, i)],
            observation_space=self.replay.observation_space,
            actions=[batch.action[i].copy()],
            action_space=self._action_space or self.replay.action_space,
            rewards=[batch.reward[i]],
            terminated=bool(batch.terminated[i]),
            truncated=False,
            extra_model_outputs={"weights": [weight], "n_step": [int(batch.steps[i])]},
            len_lookback_buffer=0,
        ).to_numpy()

    def update_priorities(self, priorities: NDArray[Any], module_id: Any = None) -> None:
        """Report the TD errors of the last sample."""
        if self._last_rows is None or self.replay is None:
            raise ValueError("update_priorities needs a sample: call sample first")
        self.replay.update_priorities(self._last_rows, host_array(priorities).reshape(-1))

    # -- counts and state -----------------------------------------------------------------------------------------

    def get_num_timesteps(self, module_id: Any = None) -> int:
        """Return the number of stored steps."""
        return 0 if self.replay is None else len(self.replay)

    def get_num_episodes(self, module_id: Any = None) -> int:
        """Return the number of episodes with stored steps."""
        return 0 if self.replay is None else int(self.replay.stats()["episodes"])

    def get_state(self) -> dict[str, Any]:
        """Return the whole state; the replay is pickled as the files of a save."""
        return {
            "replay": self.replay,
            "action_space": self._action_space,
            "lanes": dict(self._lanes.of),
            "generator": self._generator.bit_generator.state,
            "added": self._num_timesteps_added,
            "sampled": self.sampled_timesteps,
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore what `get_state` returned, its capacity and sampler included; warn if they differ from the own ones.

        After an error everything is as it was.
        """
        replay, lanes, added, sampled = state["replay"], dict(state["lanes"]), state["added"], state["sampled"]
        if replay is not None:
            self._warn_of_other_settings(replay)
        self._generator.bit_generator.state = state["generator"]
        self.replay, self._lanes.of, self._action_space = replay, lanes, state.get("action_space")
        self._num_timesteps_added, self.sampled_timesteps = added, sampled
        self._last_rows = None

    def _warn_of_other_settings(self, restored: Replay) -> None:
        for name, here, there in (
            ("capacity", self.capacity, restored.capacity),
            ("sampler", str(self._sampler), str(restored.sampler)),
        ):
            if here != there:
                warnings.warn(
                    f"the restored replay's {name} is {there}, not {here} as configured; it continues as it was saved",
                    stacklevel=4,
                )
        self.capacity = restored.capacity


class ReplayInCheckpoints:
    """Adds the replay to an algorithm's checkpoints."""

    def get_state(self, components: Any = None, *, not_components: Any = None, **options: Any) -> dict[str, Any]:
        """Return the algorithm's state and that of its replay."""
        state: dict[str, Any] = super().get_state(components, not_components=not_components, **options)  # type: ignore[misc]
        if components is None and isinstance(self.local_replay_buffer, EpisodeReplay):  # type: ignore[attr-defined]
            state[STATE] = self.local_replay_buffer.get_state()  # type: ignore[attr-defined]
        return state

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore what `get_state` returned."""
        super().set_state(state)  # type: ignore[misc]
        if STATE not in state:
            return
        buffer = self.local_replay_buffer  # type: ignore[attr-defined]
        if isinstance(buffer, EpisodeReplay):
            buffer.set_state(state[STATE])
        else:
            warnings.warn(
                f"the checkpoint holds a replay of {NAME}, which the configured {type(buffer).__name__} cannot take: "
                "it starts empty",
                stacklevel=3,
            )


class DQN(ReplayInCheckpoints, dqn.DQN):
    """RLlib's DQN with its replay in checkpoints: ``DQNConfig(algo_class=DQN)``."""


class SACConfig(sac.SACConfig):
    """RLlib's `SACConfig`, which also takes `EpisodeReplay` and makes the `SAC` of this module."""

    replay_buffer_config: dict[str, Any]

    def __init__(self, algo_class: Any = None) -> None:
        super().__init__(algo_class=algo_class or SAC)

    def validate(self) -> None:
        """Check all settings."""
        own = self.replay_buffer_config
        if own["type"] != NAME:
            super().validate()
            return
        # RLlib accepts only its own names here. Ours is a subclass of the buffer with this one.
        self.replay_buffer_config = {**own, "type": "PrioritizedEpisodeReplayBuffer"}
        try:
            super().validate()
        finally:
            self.replay_buffer_config = own


class SAC(ReplayInCheckpoints, sac.SAC):
    """RLlib's SAC with its replay in checkpoints; `SACConfig` makes it."""

    @classmethod
    def get_default_config(cls) -> Any:
        """Return the configuration that takes `EpisodeReplay`."""
        return SACConfig(algo_class=cls)


def _stored_as(actions: gym.Space[Any]) -> gym.Space[Any]:
    """Return the space of stored actions: episodes hold a module's outputs, which RLlib scales to the bounds later."""
    if not isinstance(actions, gym.spaces.Box) or actions.dtype is None or actions.dtype.kind != "f":
        return actions
    return gym.spaces.Box(-np.inf, np.inf, actions.shape, actions.dtype.type)


def _stacked(values: Any) -> Any:
    """Return a list of single values as arrays with a leading axis; arrays unchanged."""
    return batched(values) if isinstance(values, list) else values


def _at(tree: Any, i: int) -> Any:
    return map_tree(lambda array: array[i].copy(), tree)
