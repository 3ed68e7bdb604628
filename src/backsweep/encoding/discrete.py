"""Discrete observations are their own keys."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from backsweep.encoding.base import LiveEncoder
from backsweep.trees import leaves
from backsweep.types import Observations

_DISCRETE = (gym.spaces.Discrete, gym.spaces.MultiDiscrete, gym.spaces.MultiBinary)


def is_discrete(space: gym.Space[Any]) -> bool:
    """Return whether `DiscreteKey` can number the states of `space`."""
    leaf_spaces = list(leaves(space))
    return all(isinstance(leaf, _DISCRETE) for leaf in leaf_spaces) and math.prod(map(_count, leaf_spaces)) < 2**62


def _count(space: gym.Space[Any]) -> int:
    return math.prod(int(n) for n in _radices(space))


def _radices(space: gym.Space[Any]) -> NDArray[np.int64]:
    if isinstance(space, gym.spaces.Discrete):
        return np.array([space.n], np.int64)
    if isinstance(space, gym.spaces.MultiDiscrete):
        return np.asarray(space.nvec, np.int64).reshape(-1)
    return np.full(math.prod(space.shape or ()), 2, np.int64)


@dataclass(frozen=True)
class DiscreteKey:
    """Number the states of a Discrete, MultiDiscrete or MultiBinary space (or a Dict of them)."""

    def build(self, space: gym.Space[Any], generator: np.random.Generator) -> LiveDiscreteKey:
        """Compute the place value of every digit."""
        if not is_discrete(space):
            raise ValueError(
                f"DiscreteKey needs Discrete, MultiDiscrete or MultiBinary observations with fewer than 2**62 states, "
                f"got {space}; ExactBytes works with any space"
            )
        radices = [_radices(leaf) for leaf in leaves(space)]
        digits = np.concatenate(radices)
        values = np.concatenate([[1], np.cumprod(digits[:-1])]).astype(np.int64)
        sizes = [len(leaf) for leaf in radices]
        return LiveDiscreteKey(np.split(values, np.cumsum(sizes)[:-1]))


class LiveDiscreteKey(LiveEncoder):
    """States as numbers in a mixed radix."""

    words = 1

    def __init__(self, place_values: list[NDArray[np.int64]]) -> None:
        self._place_values = place_values

    def encode(self, observations: Observations) -> NDArray[np.int64]:
        """Return the numbers of the states, shape (batch, 1)."""
        total: Any = 0
        for leaf, values in zip(leaves(observations), self._place_values, strict=True):
            total = total + leaf.reshape(len(leaf), -1).astype(np.int64) @ values
        return np.asarray(total, np.int64).reshape(-1, 1)
