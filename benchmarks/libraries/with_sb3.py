"""Stable-Baselines3."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

from benchmarks.libraries.base import Library, MissingError, Wanted, load
from benchmarks.streams import ACTIONS, Transition


class StableBaselines3(Library):
    """`ReplayBuffer`; with the variant "optimize_memory_usage" s' is the next row's s, also at time limits."""

    def __init__(self, wanted: Wanted) -> None:
        if wanted.method != "uniform":
            raise MissingError("has none")
        buffers = load("stable_baselines3.common.buffers", "stable-baselines3")
        shares_frames = wanted.variant == "optimize_memory_usage"
        self._buffer = buffers.ReplayBuffer(
            wanted.rows,
            wanted.space,
            gym.spaces.Discrete(ACTIONS),
            device="cpu",
            n_envs=wanted.lanes,
            optimize_memory_usage=shares_frames,
            handle_timeout_termination=not shares_frames,
        )

    def prepare(self, transition: Transition) -> Any:
        """Give every array the leading axis that its vector environments return."""
        observation, action, reward, next_observation, terminated, truncated = transition
        ended = np.atleast_1d(np.logical_or(terminated, truncated))
        if np.ndim(terminated) == 0:
            observation, next_observation = observation[None], next_observation[None]
        infos = [{"TimeLimit.truncated": bool(cut)} if cut else {} for cut in np.atleast_1d(truncated)]
        return observation, next_observation, np.atleast_1d(action), np.atleast_1d(reward), ended, infos

    def add(self, prepared: Any) -> None:
        """Add as its algorithms do."""
        self._buffer.add(*prepared)

    def sample(self, batch: int) -> Any:
        """Return a tuple of tensors."""
        return self._buffer.sample(batch)
