"""Streams of transitions, as environments would produce them.

`GridWalk` is a random walk over a fixed number of states, as in a grid world; `FreshWalk` never sees a state twice.
Both have episodes that terminate and some that are cut off. A `Stream` walks on several lanes at once and turns state
numbers into observations, freshly made arrays as an environment would return them.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

ACTIONS = 3
LONGEST_EPISODE = 200


class Transition(NamedTuple):
    """The arguments of `Replay.add`; arrays with a leading axis if there are several lanes."""

    observation: Any
    action: Any
    reward: Any
    next_observation: Any
    terminated: Any
    truncated: Any


class Frames(Protocol):
    """Turns state numbers into observations."""

    space: gym.Space[Any]

    def one(self, state: int) -> Any:
        """Return a new observation."""
        ...

    def many(self, states: list[int]) -> NDArray[Any]:
        """Return a new array of observations."""
        ...


class PooledFrames:
    """Noise images (or float vectors), drawn once and copied out."""

    def __init__(self, shape: tuple[int, ...], dtype: str, count: int, seed: int = 0) -> None:
        generator = np.random.default_rng(seed)
        self.space: gym.Space[Any]
        if dtype == "uint8":
            self._pool: NDArray[Any] = generator.integers(0, 256, (count, *shape), np.uint8)
            self.space = gym.spaces.Box(0, 255, shape, np.uint8)
        else:
            self._pool = generator.standard_normal((count, *shape), np.float32)
            self.space = gym.spaces.Box(-np.inf, np.inf, shape, np.float32)

    def one(self, state: int) -> NDArray[Any]:
        """Return a copy of the state's frame."""
        frame: NDArray[Any] = self._pool[state].copy()
        return frame

    def many(self, states: list[int]) -> NDArray[Any]:
        """Return copies of the states' frames."""
        frames: NDArray[Any] = self._pool[states]
        return frames


class FreshFrames(PooledFrames):
    """Frames for any number of states: noise with the number of the state written into it."""

    POOL = 257

    def __init__(self, shape: tuple[int, ...], dtype: str, seed: int = 0) -> None:
        super().__init__(shape, dtype, self.POOL, seed)

    def one(self, state: int) -> NDArray[Any]:
        """Return the state's frame."""
        frame = super().one(state % self.POOL)
        flat = frame.reshape(-1)
        if frame.dtype == np.uint8:
            flat[:8].view(np.int64)[0] = state
        else:
            flat[0], flat[1] = state >> 12, state & 4095
        return frame

    def many(self, states: list[int]) -> NDArray[Any]:
        """Return the states' frames."""
        return self._stamped(super().many([state % self.POOL for state in states]), states)

    @staticmethod
    def _stamped(frames: NDArray[Any], states: list[int]) -> NDArray[Any]:
        flat = frames.reshape(len(frames), -1)
        if frames.dtype == np.uint8:
            flat[:, :8] = np.array(states, np.int64).view(np.uint8).reshape(-1, 8)
        else:  # both parts are exact as float32
            flat[:, 0] = [state >> 12 for state in states]
            flat[:, 1] = [state & 4095 for state in states]
        return frames


class Numbers:
    """Discrete observations."""

    def __init__(self, count: int) -> None:
        self.space: gym.Space[Any] = gym.spaces.Discrete(count)

    def one(self, state: int) -> np.int64:
        """Return the number."""
        return np.int64(state)

    def many(self, states: list[int]) -> NDArray[np.int64]:
        """Return the numbers."""
        return np.array(states, np.int64)


class StackedFrames:
    """Stacks of four frames along the first axis, as of an Atari game: state i shows the frames i .. i+3."""

    DEPTH = 4

    def __init__(self, shape: tuple[int, ...]) -> None:
        self._frames = FreshFrames(shape, "uint8")
        self.space: gym.Space[Any] = gym.spaces.Box(0, 255, (self.DEPTH, *shape), np.uint8)

    def one(self, state: int) -> NDArray[Any]:
        """Return the stack of the state."""
        return self._frames.many([state + i for i in range(self.DEPTH)])

    def many(self, states: list[int]) -> NDArray[Any]:
        """Return the stacks of the states."""
        return np.stack([self.one(state) for state in states])


class Walk(Protocol):
    """Episodes of state numbers."""

    def begin(self) -> int:
        """Return the first state of a new episode."""
        ...

    def step(self, state: int, action: int) -> tuple[int, bool]:
        """Return the next state and whether the episode terminates there."""
        ...


class GridWalk:
    """A sparse random graph: each action is a permutation of the states, one state in a hundred is terminal."""

    def __init__(self, states: int, seed: int = 0) -> None:
        generator = np.random.default_rng(seed)
        self._successor = [generator.permutation(states).tolist() for _ in range(ACTIONS)]
        self._terminal = (generator.random(states) < 0.01).tolist()
        self._starts = generator.integers(0, states, 1 << 12).tolist()
        self._episodes = 0

    def begin(self) -> int:
        """Return the first state of a new episode."""
        self._episodes += 1
        start: int = self._starts[self._episodes % len(self._starts)]
        return start

    def step(self, state: int, action: int) -> tuple[int, bool]:
        """Follow the action's edge."""
        successor = self._successor[action][state]
        return successor, self._terminal[successor]


class FreshWalk:
    """States that never repeat. Episodes terminate after 100 steps on average."""

    def __init__(self, seed: int = 0, gap: int = 1) -> None:
        self._ends = (np.random.default_rng(seed).random(1 << 16) < 0.01).tolist()
        self._gap = gap
        self._last = 0

    def begin(self) -> int:
        """Return the first state of a new episode; with a gap, stacks of two episodes share no frames."""
        self._last += self._gap
        return self._last

    def step(self, state: int, action: int) -> tuple[int, bool]:
        """Return a state never seen before."""
        self._last += 1
        return self._last, self._ends[self._last & 0xFFFF]


class Stream:
    """Endless transitions from `lanes` parallel walks."""

    def __init__(self, frames: Frames, walk: Walk, lanes: int = 1, seed: int = 0) -> None:
        self.frames = frames
        self.lanes = lanes
        self._walk = walk
        self._generator = np.random.default_rng(seed)
        self._states = [walk.begin() for _ in range(lanes)]
        self._ages = [0] * lanes
        self._observation = frames.one(self._states[0]) if lanes == 1 else frames.many(self._states)

    def take(self, steps: int) -> list[Transition]:
        """Return the next transitions, one of all lanes per step."""
        actions = self._generator.integers(0, ACTIONS, (steps, self.lanes))
        if self.lanes == 1:
            return [self._step_one(action) for action in actions[:, 0].tolist()]
        return [self._step_all(actions[i]) for i in range(steps)]

    def _step_one(self, action: int) -> Transition:
        state, terminated = self._walk.step(self._states[0], action)
        self._ages[0] += 1
        truncated = not terminated and self._ages[0] >= LONGEST_EPISODE
        observation, shown = self._observation, self.frames.one(state)
        self._observation = shown
        if terminated or truncated:
            self._ages[0] = 0
            state = self._walk.begin()
            self._observation = self.frames.one(state)
        self._states[0] = state
        return Transition(observation, action, float(terminated), shown, terminated, truncated)

    def _step_all(self, action: NDArray[np.int64]) -> Transition:
        reached, begun = [], []
        terminated, truncated = np.zeros(self.lanes, np.bool_), np.zeros(self.lanes, np.bool_)
        for lane, choice in enumerate(action.tolist()):
            state, ends = self._walk.step(self._states[lane], choice)
            self._ages[lane] += 1
            reached.append(state)
            terminated[lane] = ends
            truncated[lane] = not ends and self._ages[lane] >= LONGEST_EPISODE
            if ends or truncated[lane]:
                self._ages[lane] = 0
                state = self._walk.begin()
            begun.append(state)
        shown = self.frames.many(reached)
        observation, self._observation = self._observation, shown if begun == reached else self.frames.many(begun)
        self._states = begun
        return Transition(observation, action, terminated.astype(np.float32), shown, terminated, truncated)


def make_stream(kind: str, shape: tuple[int, ...], dtype: str, lanes: int = 1, states: int = 10_000) -> Stream:
    """Return a stream by the name of its kind: grid, fresh, numbers or stacked."""
    if kind == "grid":
        return Stream(PooledFrames(shape, dtype, states), GridWalk(states), lanes)
    if kind == "numbers":
        return Stream(Numbers(states), GridWalk(states), lanes)
    if kind == "stacked":
        return Stream(StackedFrames(shape), FreshWalk(gap=StackedFrames.DEPTH), lanes)
    return Stream(FreshFrames(shape, dtype), FreshWalk(), lanes)
