"""TopologicalDQN's random actions: by the graph, in every kind of observation, or as DQN draws them."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

pytest.importorskip("stable_baselines3")
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

from backsweep.integrations.stable_baselines3 import DictReplayBuffer, TopologicalDQN

LENGTH = 12


class Walk(gym.Env[Any, Any]):
    """A corridor: action 1 goes on, action 0 falls into a pit, the others change nothing; 40 steps at most."""

    def __init__(self, kind: str) -> None:
        spaces: dict[str, gym.Space[Any]] = {
            "number": gym.spaces.Discrete(LENGTH + 1),
            "vector": gym.spaces.Box(0.0, LENGTH, (2,), np.float32),
        }
        spaces["dict"] = gym.spaces.Dict({"place": spaces["vector"], "number": spaces["number"]})
        self.observation_space, self.action_space, self.kind = spaces[kind], gym.spaces.Discrete(5), kind
        self.place, self.steps, self.furthest = 0, 0, 0

    def seen(self) -> Any:
        vector = np.array([self.place, 1.0], np.float32)
        return {"number": self.place, "vector": vector, "dict": {"place": vector, "number": self.place}}[self.kind]

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.place, self.steps = 0, 0
        return self.seen(), {}

    def step(self, action: Any) -> Any:
        self.steps += 1
        self.place += int(action == 1)
        self.furthest = max(self.furthest, self.place)
        ended = self.place == LENGTH or action == 0
        return self.seen(), float(self.place == LENGTH), ended, self.steps == 40, {}


def furthest(kind: str, explore: str, normalised: bool = False, envs: int = 2) -> int:
    """Return how far random actions get in 600 steps, the network untrained."""
    walks = [Walk(kind) for _ in range(envs)]
    env: Any = DummyVecEnv([lambda walk=walk: walk for walk in walks])
    if normalised:
        env = VecNormalize(env, norm_reward=False)
    options: dict[str, Any] = {"replay_buffer_class": DictReplayBuffer} if kind == "dict" else {}
    policy = "MultiInputPolicy" if kind == "dict" else "MlpPolicy"
    model = TopologicalDQN(
        policy, env, explore=explore, learning_starts=10_000, buffer_size=2_000, seed=0, device="cpu", **options
    )
    model.learn(600)
    return max(walk.furthest for walk in walks)


@pytest.mark.parametrize(
    ("kind", "normalised"), [("number", False), ("vector", False), ("vector", True), ("dict", False)]
)
def test_exploring_by_the_graph_gets_through_a_corridor_with_pits(kind: str, normalised: bool) -> None:
    assert furthest(kind, "graph", normalised) == LENGTH
    assert furthest(kind, "uniform", normalised) < LENGTH


def test_an_unknown_way_to_explore_is_refused() -> None:
    with pytest.raises(ValueError, match="explore must be 'graph' or 'uniform', got 'novelty'"):
        TopologicalDQN("MlpPolicy", Walk("number"), explore="novelty")  # type: ignore[arg-type]


def test_the_choice_is_saved_with_the_model(tmp_path: Any) -> None:
    model = TopologicalDQN("MlpPolicy", Walk("number"), explore="uniform", buffer_size=100, device="cpu")
    model.save(tmp_path / "model")
    assert TopologicalDQN.load(tmp_path / "model", env=Walk("number")).explore == "uniform"
