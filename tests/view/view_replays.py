"""Replays whose graphs are known."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

from backsweep import GraphValues, Mixture, Prioritized, Replay, Topological
from backsweep.tasks import make

SAMPLER = Mixture([(0.5, Topological(roots=2, predecessors=3)), (0.5, Prioritized())])


def small_replay(**options: Any) -> Replay:
    """Return a replay of ten rows: 0 -> 1 -> 2 -> 3 (an end), 5 -> 1, and 7 -> 8 -> 7 without a way to an end."""
    replay = Replay(gym.spaces.Discrete(10), gym.spaces.Discrete(3, start=1), 10, SAMPLER, **options)
    for source, action, reward, target, terminated, truncated in [
        (0, 1, 0.0, 1, False, False),
        (1, 2, 0.5, 2, False, False),
        (2, 1, 1.0, 3, True, False),
        (5, 3, 0.0, 1, False, False),
        (1, 2, 1.5, 2, False, False),
        (2, 1, 1.0, 3, True, False),
        (7, 1, 0.0, 8, False, False),
        (8, 1, 0.0, 7, False, False),
        (7, 2, 0.0, 7, False, False),
        (7, 1, 0.0, 8, False, True),
    ]:
        replay.add(source, action, reward, target, terminated, truncated)
    return replay


def planned_replay() -> Replay:
    """Return the small replay with values."""
    replay = small_replay(values=GraphValues(untried="never"), gamma=0.5)
    replay.renew_values(lambda states: np.zeros((len(states), 3)))
    return replay


def played(task: str, steps: int, seed: int = 0, **options: Any) -> Replay:
    """Return a replay of random play."""
    env = make(task, num_envs=1, seed=seed)
    replay = Replay(env.single_observation_space, env.single_action_space, steps, SAMPLER, num_envs=1, **options)
    generator, space = np.random.default_rng(seed), env.single_action_space
    observations, _ = env.reset()
    for _ in range(steps):
        actions = generator.integers(0, getattr(space, "n", 2), 1)
        following, rewards, terminated, truncated, infos = env.step(actions)
        final = infos.get("final_obs")
        successor = following[0] if final is None else final[0]
        replay.add(observations[0], actions[0], rewards[0], successor, terminated[0], truncated[0])
        observations = following
    return replay
