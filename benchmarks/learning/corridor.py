"""A corridor with one right action per place and a reward only at the end, and a loop that trains agents in it.

What is learned has to travel from the end to the start, so it is the replay that matters.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

LENGTH, LIMIT = 12, 60
EVERY = 250
GAMMA = 0.9  # with more, a wasted step costs too little for any of them to notice
ROWS, BATCH, WARMUP, TRAIN_EVERY, TARGET_UPDATES = 50_000, 64, 500, 2, 25
LEARNING_RATE, HIDDEN = 1e-3, (64, 64)
FIRST_EPSILON, LAST_EPSILON, EXPLORATION = 1.0, 0.1, 0.8

Run = Callable[[int, int], list[bool]]
"""From a seed and a number of steps to whether the greedy policy solved the task, every 250 steps."""


class Corridor(gym.Env[Any, Any]):
    """A corridor of 12 places; one of four actions moves on, the others do nothing, and only the end has a reward."""

    def __init__(self) -> None:
        self.observation_space = gym.spaces.Box(0, 1, (LENGTH,), np.float32)
        self.action_space = gym.spaces.Discrete(4)

    def _look(self) -> Any:
        observation = np.zeros(LENGTH, np.float32)
        observation[self._place] = 1
        return observation

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        """Go to the start."""
        super().reset(seed=seed)
        self._place, self._time = 0, 0
        return self._look(), {}

    def step(self, action: Any) -> Any:
        """Move on with the right action."""
        right = (self._place * 7 + 3) % 4
        self._place += int(action == right)
        self._time += 1
        ended = self._place == LENGTH - 1
        return self._look(), float(ended), ended, not ended and self._time >= LIMIT, {}


class Agent(Protocol):
    """A framework's buffer and learner."""

    def values(self, observation: NDArray[np.float32]) -> NDArray[Any]:
        """Return the value of each action."""
        ...

    def add(self, step: tuple[Any, int, float, Any, bool, bool]) -> None:
        """Store observation, action, reward, next observation, terminated, truncated."""
        ...

    def update(self) -> None:
        """Take one step of learning, and copy the target network when it is time."""
        ...


def solves(values: Callable[[NDArray[np.float32]], NDArray[Any]]) -> bool:
    """Return whether the greedy policy reaches the end."""
    env = Corridor()
    observation, _ = env.reset()
    ended = truncated = False
    while not ended and not truncated:
        observation, _, ended, truncated, _ = env.step(int(np.argmax(values(observation))))
    return bool(ended)


def train(agent: Agent, seed: int, steps: int) -> list[bool]:
    """Train an agent that explores less and less; return whether it solved the task every 250 steps."""
    generator, env = np.random.default_rng(seed), Corridor()
    observation, _ = env.reset(seed=seed)
    solved = []
    for step in range(1, steps + 1):
        share = min(1.0, step / (EXPLORATION * steps))
        if step <= WARMUP or generator.random() < FIRST_EPSILON + share * (LAST_EPSILON - FIRST_EPSILON):
            action = int(generator.integers(4))
        else:
            action = int(np.argmax(agent.values(observation)))
        following, reward, terminated, truncated, _ = env.step(action)
        agent.add((observation, action, reward, following, terminated, truncated))
        observation = env.reset()[0] if terminated or truncated else following
        if step > WARMUP and step % TRAIN_EVERY == 0:
            agent.update()
        if step % EVERY == 0:
            solved.append(solves(agent.values))
    return solved
