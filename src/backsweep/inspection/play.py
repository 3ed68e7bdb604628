"""Random episodes of an environment, stored as keys instead of observations."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from backsweep.encoding import DiscreteKey, Encoder, ExactBytes, RandomProjection
from backsweep.encoding.discrete import is_discrete
from backsweep.jit.random_streams import named_generator
from backsweep.store.layout import Layout
from backsweep.tasks.environments import LARGEST_RESET_SEED
from backsweep.trees import leaves

MOST_NUMBERS = 64
"""Observations of more numbers get no grid: hardly any two would share a cell."""


@dataclass(frozen=True)
class Play:
    """Random episodes. An episode of n steps has n + 1 moments, numbered consecutively."""

    keys: dict[Encoder, NDArray[np.int64]]
    """By encoder: the key of each moment, shape (moments, words)."""
    numbers: NDArray[np.float64] | None
    """The flattened observation of each moment, if it is made of a few floats; else None."""
    moment: NDArray[np.int64]
    """Of each step: the moment that it started from. It led to the next one."""
    action: NDArray[np.int64]
    """Of each step: the number of its action; equal actions have equal numbers."""
    reward: NDArray[np.float64]
    terminated: NDArray[np.bool_]
    starts: NDArray[np.int64]
    """The moments at which episodes began."""
    truncations: int


def encoders_for(space: gym.Space[Any]) -> tuple[Encoder, ...]:
    """Return the encoders that distinguish all observations of a space, a replay's default first."""
    return (DiscreteKey(),) if is_discrete(space) else (RandomProjection(), ExactBytes())


class _Moments:
    """Collects observations as keys."""

    def __init__(self, space: gym.Space[Any], seed: int) -> None:
        self._layout = Layout(space, "observation", check_box_bounds=False, cast=True)
        self._live = {
            encoder: encoder.build(space, named_generator(seed, "encoder")) for encoder in encoders_for(space)
        }
        self.keys: dict[Encoder, list[NDArray[np.int64]]] = {encoder: [] for encoder in self._live}
        leaf_spaces = list(leaves(space))
        floats = all(np.dtype(leaf.dtype).kind == "f" for leaf in leaf_spaces)
        few = sum(math.prod(leaf.shape or ()) for leaf in leaf_spaces) <= MOST_NUMBERS
        self.numbers: list[NDArray[np.float64]] | None = [] if floats and few else None
        self.count = 0

    def add(self, observation: Any) -> None:
        """Add one moment."""
        batch = self._layout.as_given(self._layout.check(observation, 1, "observation"))
        for encoder, live in self._live.items():
            self.keys[encoder].append(live.encode(batch)[0].copy())
        if self.numbers is not None:
            self.numbers.append(np.concatenate([leaf.reshape(-1).astype(np.float64) for leaf in leaves(batch)]))
        self.count += 1


def play_randomly(env: gym.Env[Any, Any], steps: int, seed: int) -> Play:
    """Take `steps` random actions; the same seed plays the same episodes where the environment is deterministic."""
    moments = _Moments(env.observation_space, seed)
    # A copy: the environment's own stream of random actions is not used.
    actions = copy.deepcopy(env.action_space)
    seeds = named_generator(seed, "inspection")
    actions.seed(int(seeds.integers(LARGEST_RESET_SEED)))
    moment, action, reward, terminated, starts, truncations = [], [], [], [], [], 0
    begin = True
    for _ in range(steps):
        if begin:
            starts.append(moments.count)
            moments.add(env.reset(seed=int(seeds.integers(LARGEST_RESET_SEED)))[0])
        chosen = actions.sample()
        observation, paid, ended, cut, _ = env.step(chosen)
        moment.append(moments.count - 1)
        action.append(np.asarray(chosen).tobytes())
        reward.append(float(paid))
        terminated.append(bool(ended))
        truncations += bool(cut and not ended)
        moments.add(observation)
        begin = bool(ended or cut)
    kinds: Mapping[bytes, int] = {kind: number for number, kind in enumerate(sorted(set(action)))}
    return Play(
        {encoder: np.stack(keys) for encoder, keys in moments.keys.items()},
        None if moments.numbers is None else np.stack(moments.numbers),
        np.array(moment, np.int64),
        np.array([kinds[kind] for kind in action], np.int64),
        np.array(reward),
        np.array(terminated, np.bool_),
        np.array(starts, np.int64),
        truncations,
    )
