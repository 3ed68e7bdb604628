"""A small task in Stable-Baselines3's environments, and small models for it."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from stable_baselines3.common.vec_env import DummyVecEnv


def small(**changes: Any) -> dict[str, Any]:
    """Options of a small model; new ones each time, because algorithms write into them."""
    return {"policy_kwargs": {"net_arch": [16]}, "learning_starts": 20, "device": "cpu", "seed": 0, **changes}


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
