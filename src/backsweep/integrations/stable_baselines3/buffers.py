"""Replay buffers for Stable-Baselines3's off-policy algorithms (``replay_buffer_class``)."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common import buffers as sb3_buffers
from stable_baselines3.common.type_aliases import DictReplayBufferSamples, ReplayBufferSamples
from stable_baselines3.common.vec_env import VecNormalize

from backsweep.integrations import seed_from_numpy
from backsweep.minari_data import add_minari
from backsweep.replay import Replay
from backsweep.samplers import Sampler
from backsweep.store.layout import host_array
from backsweep.trees import map_tree
from backsweep.types import Batch

Samples = ReplayBufferSamples | DictReplayBufferSamples
PATIENCE = 100
"""After so many batches without TD errors, a sampler that needs them causes a warning."""


class ReplayBuffer(sb3_buffers.ReplayBuffer):
    """A `Replay` with the interface of Stable-Baselines3's buffer, for DQN, QR-DQN, SAC, TD3 and DDPG.

    Parameters
    ----------
    buffer_size, observation_space, action_space, device, n_envs, handle_timeout_termination
        As in Stable-Baselines3. Dict observations are supported.
    optimize_memory_usage
        Ignored: each observation is stored once anyway, including the last one of an episode.
    sampler
        Chooses the rows of a batch; by default `Uniform()`. `Prioritized` needs a `ReplayCallback`, which applies
        importance weights and returns TD errors.
    n_steps, gamma
        Combine up to `n_steps` steps into one; `gamma` must then be given and be the algorithm's.
    seed
        By default derived from the algorithm's seed.
    options
        Other arguments of `Replay`: `encoder`, `values`, `frame_stack`, `file`.

    Examples
    --------
    >>> kwargs = {"sampler": Prioritized()}  # doctest: +SKIP
    >>> model = DQN("MlpPolicy", env, replay_buffer_class=ReplayBuffer, replay_buffer_kwargs=kwargs)  # doctest: +SKIP
    """

    _unreported = 0
    """Batches drawn since TD errors were last reported."""

    def __init__(
        self,
        buffer_size: int,
        observation_space: spaces.Space[Any],
        action_space: spaces.Space[Any],
        device: torch.device | str = "auto",
        n_envs: int = 1,
        optimize_memory_usage: bool = False,
        handle_timeout_termination: bool = True,
        *,
        sampler: Sampler | None = None,
        n_steps: int = 1,
        gamma: float | None = None,
        seed: int | None = None,
        **options: Any,
    ) -> None:
        _check_names(options)
        if gamma is None and n_steps > 1:
            raise TypeError(
                f"gamma must be given with n_steps={n_steps}, and be the algorithm's: "
                f'replay_buffer_kwargs={{"n_steps": {n_steps}, "gamma": 0.99}}'
            )
        # The parent's __init__ would allocate the arrays that this class replaces.
        sb3_buffers.BaseBuffer.__init__(self, buffer_size, observation_space, action_space, device, n_envs=n_envs)
        self.buffer_size = max(buffer_size // n_envs, 1)
        self.optimize_memory_usage = optimize_memory_usage
        self.handle_timeout_termination = handle_timeout_termination
        self.dones = _NoDones()  # type: ignore[assignment]
        self.n_steps = n_steps
        self.replay = Replay(
            observation_space,
            _stored_actions(action_space),
            max(buffer_size, n_envs),
            sampler,
            num_envs=n_envs,
            n_step=n_steps,
            gamma=0.99 if gamma is None else gamma,
            autoreset="disabled",  # algorithms replace the next episode's first observations before they add
            check_autoreset="off",
            cast=True,
            seed=seed_from_numpy() if seed is None else seed,
            **options,
        )
        self.last_batch: Batch | None = None
        self.last_samples: Samples | None = None

    @property
    def replay(self) -> Replay:
        """The replay that holds the transitions. A saved one of the same environments can be put in its place."""
        found: Replay = self.__dict__["replay"]
        return found

    @replay.setter
    def replay(self, replay: Replay) -> None:
        own = self.__dict__.get("replay", replay)
        for name in ("observation_space", "action_space", "num_envs", "n_step", "gamma"):
            expected, found = getattr(own, name), getattr(replay, name, None)
            if found != expected:
                raise ValueError(f"replay must have {name}={expected} as the buffer's own, got {found}")
        self.__dict__["replay"] = replay

    @property
    def pos(self) -> int:
        """The position of the next step of each environment."""
        return self.replay.total // self.n_envs % self.buffer_size

    @pos.setter
    def pos(self, value: int) -> None:
        """Ignored: the replay keeps its own position; the parent's constructor sets one."""

    @property
    def full(self) -> bool:
        """Whether new transitions overwrite old ones."""
        return len(self.replay) == self.replay.capacity

    @full.setter
    def full(self, value: bool) -> None:
        """See `pos`."""

    def size(self) -> int:
        """Return the number of stored steps of each environment."""
        return len(self.replay) // self.n_envs

    def add(
        self,
        obs: Any,
        next_obs: Any,
        action: NDArray[Any],
        reward: NDArray[Any],
        done: NDArray[Any],
        infos: list[dict[str, Any]],
    ) -> None:
        """Add a step of every environment."""
        done = np.asarray(host_array(done), np.bool_).reshape(self.n_envs)
        truncated = np.zeros(self.n_envs, np.bool_)
        unknown = None
        if done.any():
            if self.handle_timeout_termination:
                timeouts = [bool(info.get("TimeLimit.truncated", False)) for info in infos]
                truncated = done & np.array(timeouts)
            unknown = done & np.array([info.get("terminal_observation") is None for info in infos])
        self.replay.add(
            _batched(obs, self.observation_space, self.n_envs),
            host_array(action).reshape(self.n_envs, *(self.action_space.shape or ())),
            reward,
            _batched(next_obs, self.observation_space, self.n_envs),
            done & ~truncated,
            truncated,
            successor_unknown=unknown,
        )

    def explore(self, obs: Any, generator: np.random.Generator) -> NDArray[Any]:
        """Return a random action for each environment, preferring what the graph knows little about.

        Needs graph values; `obs` is not normalised.
        """
        seen = _batched(obs, self.observation_space, self.n_envs)
        return self.replay.explore(seen, generator.random(self.n_envs))

    def sample(self, batch_size: int, env: VecNormalize | None = None) -> Any:
        """Return a batch for the algorithm; `last_batch` has row numbers, weights and graph targets."""
        batch = self.replay.sample(batch_size)
        self.last_batch = batch
        self._unreported += 1
        if self._unreported == PATIENCE and self.replay.machinery.sampler.uses_priorities:
            warnings.warn(
                f"{PATIENCE} batches were drawn and no TD errors came back, so priorities and importance weights have "
                "no effect: learn(..., callback=ReplayCallback()) reports them",
                stacklevel=2,
            )
        self.last_samples = self._to_samples(batch, env)
        return self.last_samples

    def _get_samples(self, batch_inds: NDArray[Any], env: VecNormalize | None = None) -> Any:
        """Return the rows with the given serial numbers."""
        return self._to_samples(self.replay.read(batch_inds), env)

    def _to_samples(self, batch: Batch, env: VecNormalize | None) -> Samples:
        size = len(batch)
        many = self.n_steps > 1
        tensors = {
            "observations": self._tensors(self._normalize_obs(batch.observation, env)),
            "actions": self._tensors(batch.action.reshape(size, self.action_dim)),
            "next_observations": self._tensors(self._normalize_obs(batch.next_observation, env)),
            "dones": self._tensors(batch.terminated.astype(np.float32).reshape(size, 1)),
            "rewards": self._tensors(self._normalised_reward(batch, env).reshape(size, 1)),
            "discounts": self._tensors(self._discounts(batch).reshape(size, 1)) if many else None,
        }
        kind = DictReplayBufferSamples if isinstance(self.observation_space, spaces.Dict) else ReplayBufferSamples
        return kind(**tensors)

    def _normalised_reward(self, batch: Batch, env: VecNormalize | None) -> NDArray[np.float32]:
        if env is None or not env.norm_reward or self.n_steps == 1:
            normalised: NDArray[np.float32] = self._normalize_reward(batch.reward, env)
            return normalised
        # A sum of rewards is scaled like a single one; single rewards can no longer be clipped.
        return (batch.reward / np.sqrt(env.ret_rms.var + env.epsilon)).astype(np.float32)

    def _discounts(self, batch: Batch) -> NDArray[np.float32]:
        return np.power(self.replay.gamma, batch.steps).astype(np.float32)

    def _tensors(self, value: Any) -> Any:
        return map_tree(lambda array: torch.from_numpy(np.ascontiguousarray(array)).to(self.device), value)

    def update_priorities(self, td_error: Any) -> None:
        """Report the TD errors of the last batch."""
        if self.last_batch is None:
            raise ValueError("update_priorities needs a batch: call sample first")
        self._unreported = 0
        self.replay.update_priorities(self.last_batch.row, td_error)

    def preload(self, dataset: Any) -> int:
        """Add every transition of a Minari data set (or its id) and return their number.

        Continuous actions are scaled to -1..1, as the algorithms store them.
        """
        return len(add_minari(self.replay, dataset, actions=self._scaled))

    def _scaled(self, actions: NDArray[Any]) -> NDArray[Any]:
        if not isinstance(self.action_space, spaces.Box):
            return actions
        low, high = self.action_space.low, self.action_space.high
        scaled: NDArray[Any] = (2.0 * ((actions - low) / (high - low)) - 1.0).astype(np.float32)
        return scaled

    def reset(self) -> None:
        """Remove all transitions."""
        self.replay.clear()

    def __getstate__(self) -> dict[str, Any]:
        """Leave the last batch out of pickles."""
        return {**self.__dict__, "last_batch": None, "last_samples": None}


class DictReplayBuffer(ReplayBuffer, sb3_buffers.DictReplayBuffer):
    """`ReplayBuffer` for Dict observations, under Stable-Baselines3's name."""

    def __init__(self, buffer_size: int, observation_space: spaces.Space[Any], *args: Any, **options: Any) -> None:
        if not isinstance(observation_space, spaces.Dict):
            raise TypeError(f"DictReplayBuffer needs a Dict observation space, got {observation_space}")
        super().__init__(buffer_size, observation_space, *args, **options)


class _NoDones:
    """Ignores the flags that algorithms set at the end of training: the replay detects lanes that do not continue."""

    def __setitem__(self, place: Any, value: Any) -> None:
        pass


def _check_names(options: dict[str, Any]) -> None:
    """Refuse options that a replay does not have, or that are set here."""
    others = ("encoder", "values", "frame_stack", "file")
    for name in options:
        if name not in others:
            taken = ", ".join(("sampler", "n_steps", "gamma", "seed", *others))
            raise TypeError(f"replay_buffer_kwargs must hold options of the replay ({taken}), got {name!r}")


def _stored_actions(space: spaces.Space[Any]) -> spaces.Space[Any]:
    """Return the space of stored actions: continuous ones are scaled to -1..1."""
    return spaces.Box(-1.0, 1.0, space.shape, np.float32) if isinstance(space, spaces.Box) else space


def _batched(obs: Any, space: spaces.Space[Any], n_envs: int) -> Any:
    """Return observations of discrete spaces without the extra axis that they may come with."""

    def flat(leaf: spaces.Space[Any], seen: Any) -> Any:
        return host_array(seen).reshape(n_envs) if isinstance(leaf, spaces.Discrete) else seen

    return map_tree(flat, space, obs)
