"""Made-up worlds: numbered states, and what each looks like in one observation space or another.

The twins in plain Python know states by their numbers alone. An observation is a fixed function of the number, and
different numbers give different observations, so whatever the replay returns can be looked up.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np


@dataclass(frozen=True)
class World:
    """An observation space, and the observation of each state."""

    space: gym.Space[Any]
    observe: Callable[[int], Any]
    frame_stack: int = 1


def _pixels(state: int) -> np.ndarray:
    return ((np.arange(12) * 37 + state * 101 + (np.arange(12) == state % 12)) % 251).astype(np.uint8).reshape(3, 4)


def _dictionary(state: int) -> dict[str, Any]:
    return {
        "where": np.array([state / 3, -state], np.float32),
        "bits": np.array([state >> bit & 1 for bit in range(7)], np.int8),
        "kind": state % 5,
    }


def _frames(depth: int) -> Callable[[int], np.ndarray]:
    """Neighbouring states share all frames but one, as a stack that moves on by a frame does."""
    return lambda state: np.stack([np.full((2, 8), state + k, np.uint8) for k in range(depth)])


MOST_STATES = 128

WORLDS = {
    "discrete": World(gym.spaces.Discrete(MOST_STATES), lambda state: state),
    "discrete from -5": World(gym.spaces.Discrete(MOST_STATES, start=-5), lambda state: state - 5),
    "uint8": World(gym.spaces.Box(0, 255, (3, 4), np.uint8), _pixels),
    "odd size": World(
        gym.spaces.Box(0, 255, (3,), np.uint8), lambda state: np.array([state, 7, 255 - state], np.uint8)
    ),
    "float32": World(
        gym.spaces.Box(-np.inf, np.inf, (3,), np.float32), lambda state: np.array([state / 7, -state, 0.5], np.float32)
    ),
    "float64": World(gym.spaces.Box(-1e9, 1e9, (2,), np.float64), lambda state: np.array([state / 7, 1e6 - state])),
    "int32": World(gym.spaces.Box(-500, 500, (2, 1), np.int32), lambda state: np.array([[state], [-state]], np.int32)),
    "scalar": World(gym.spaces.Box(-500, 500, (), np.float32), lambda state: np.float32(state) / np.float32(8)),
    "multi discrete": World(
        gym.spaces.MultiDiscrete([4, 8, 4]), lambda state: np.array([state % 4, state // 4 % 8, state // 32])
    ),
    "multi discrete from 3": World(
        gym.spaces.MultiDiscrete([16, 8], start=[3, -2]), lambda state: np.array([state % 16 + 3, state // 16 - 2])
    ),
    "multi binary": World(
        gym.spaces.MultiBinary(7), lambda state: np.array([state >> bit & 1 for bit in range(7)], np.int8)
    ),
    "dict": World(
        gym.spaces.Dict(
            where=gym.spaces.Box(-1e6, 1e6, (2,), np.float32),
            bits=gym.spaces.MultiBinary(7),
            kind=gym.spaces.Discrete(5),
        ),
        _dictionary,
    ),
    "tuple": World(
        gym.spaces.Tuple((gym.spaces.Discrete(MOST_STATES), gym.spaces.Box(0, 1, (2,), np.float64))),
        lambda state: (state, np.array([state / 1000, 1.0])),
    ),
    "2 frames": World(gym.spaces.Box(0, 255, (2, 2, 8), np.uint8), _frames(2), frame_stack=2),
    "4 frames": World(gym.spaces.Box(0, 255, (4, 2, 8), np.uint8), _frames(4), frame_stack=4),
}

ACTIONS: dict[str, World] = {
    "discrete": World(gym.spaces.Discrete(7), lambda number: number % 7),
    "discrete from 2": World(gym.spaces.Discrete(5, start=2), lambda number: 2 + number % 5),
    "box": World(gym.spaces.Box(-1, 1, (3,), np.float32), lambda number: np.array([number % 7 / 7, 0, -1], np.float32)),
    "multi discrete": World(gym.spaces.MultiDiscrete([3, 5]), lambda number: np.array([number % 3, number % 5])),
    "multi binary": World(
        gym.spaces.MultiBinary(3), lambda number: np.array([number >> bit & 1 for bit in range(3)], np.int8)
    ),
}


def stacked(items: list[Any]) -> Any:
    """Put single observations or actions into one batch, as a vector environment hands them out."""
    if isinstance(items[0], dict):
        return {key: stacked([item[key] for item in items]) for key in items[0]}
    if isinstance(items[0], tuple):
        return tuple(stacked([item[i] for item in items]) for i in range(len(items[0])))
    return np.stack([np.asarray(item) for item in items])


def assert_same_data(found: Any, expected: Any, what: str) -> None:
    """Compare nested observations exactly, dtypes too."""
    if isinstance(expected, dict):
        assert isinstance(found, dict), what
        assert list(found) == list(expected), what
        for key in expected:
            assert_same_data(found[key], expected[key], f"{what}[{key!r}]")
    elif isinstance(expected, tuple):
        assert isinstance(found, tuple), what
        assert len(found) == len(expected), what
        for i, part in enumerate(expected):
            assert_same_data(found[i], part, f"{what}[{i}]")
    else:
        assert found.dtype == expected.dtype, (what, found.dtype, expected.dtype)
        np.testing.assert_array_equal(found, expected, err_msg=what)
