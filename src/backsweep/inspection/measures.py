"""Random episodes of an environment, and properties of their graph under each encoder."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from backsweep.encoding import DiscreteKey, Encoder, ExactBytes, Quantized, RandomProjection
from backsweep.encoding.discrete import is_discrete
from backsweep.encoding.exact_bytes import digest_keys
from backsweep.graph.distances import reverse_distances
from backsweep.jit.random_streams import named_generator
from backsweep.planning.noise_kernels import ENOUGH_REPEATED, ENOUGH_ROWS
from backsweep.store.layout import Layout
from backsweep.tasks.environments import LARGEST_RESET_SEED
from backsweep.tasks.gymnasium_env import first_observation, take_step
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
    moment, action, terminated, starts, truncations = [], [], [], [], 0
    reward: list[float] = []
    begin = True
    for _ in range(steps):
        if begin:
            starts.append(moments.count)
            moments.add(first_observation(env, int(seeds.integers(LARGEST_RESET_SEED))))
        chosen = actions.sample()
        observation, paid, ended, cut, _ = take_step(env, chosen)
        moment.append(moments.count - 1)
        action.append(np.asarray(chosen).tobytes())
        if not math.isfinite(paid):
            raise ValueError(f"the environment's rewards must be finite, got {paid} in step {len(reward) + 1}")
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


CELLS = (100, 50, 20, 10, 5)
"""The number of cells into which a grid divides the observed range of each number, finest first."""


@dataclass(frozen=True)
class Measures:
    """Properties of random episodes under one encoder; shares are from 0 to 1."""

    encoder: Encoder
    """Decides which observations are the same state."""
    states: int
    """Different states."""
    repeated: float
    """Share of steps that led to a state seen before."""
    end_states: int
    """Different states in which an episode terminated."""
    reach_end: float
    """Share of episodes from whose first state an end can be reached on the graph."""
    agreement: float
    """Share of steps that led where most steps with the same state and action led; NaN if none was taken twice.
    Low if the environment is random, or if the encoder merges different states."""
    noise: float
    """How much of an average action's outcome is chance, as `GraphValues` measures it: the chance that two steps with
    the same state and action led to different states, divided by the mean number of steps of a state and action."""


def measure(play: Play, encoder: Encoder, keys: NDArray[np.int64]) -> Measures:
    """Return the properties of the graph under one encoder."""
    _, first, state = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    state = state.reshape(-1)  # numpy 2.0 gives it another axis
    source, target, arrival = state[play.moment], state[play.moment + 1], play.moment + 1
    ends = np.unique(target[play.terminated])
    distance = reverse_distances(len(first), source, target, ends)
    return Measures(
        encoder,
        len(first),
        float(np.mean(first[target] < arrival)),
        len(ends),
        float(np.mean(distance[state[play.starts]] >= 0)),
        _agreement(source, play.action, target),
        _noise(source, play.action, np.where(play.terminated, -1, target)),
    )


Numbers = NDArray[np.int64]


def _tries(source: Numbers, action: Numbers, target: Numbers) -> tuple[Numbers, Numbers, Numbers]:
    """Return how often each pair of state and action was tried, and of each arc its pair and how often it was taken."""
    _, pair = np.unique(np.stack([source, action]), axis=1, return_inverse=True)
    pair = pair.reshape(-1)
    arcs, times = np.unique(np.stack([pair, target]), axis=1, return_counts=True)
    return np.bincount(pair), arcs[0], times


def _noise(source: Numbers, action: Numbers, target: Numbers) -> float:
    """Return what `planning.noise_kernels` measures in a replay with these steps."""
    tried, pair, times = _tries(source, action, target)
    again = tried > 1
    repeated = tried[again].sum()
    if len(source) < ENOUGH_ROWS or repeated < ENOUGH_REPEATED * len(source):
        return 0.0
    same = np.bincount(pair, times * (times - 1.0), len(tried))[again] / (tried[again] - 1.0)
    return float((1.0 - same.sum() / repeated) * len(tried) / len(source))


def _agreement(source: Numbers, action: Numbers, target: Numbers) -> float:
    """Return the share of steps that agree with the most frequent one, among those whose pair was tried twice."""
    tried, pair, times = _tries(source, action, target)
    most = np.zeros(len(tried), np.int64)
    np.maximum.at(most, pair, times)
    again = tried > 1
    return float(most[again].sum() / tried[again].sum()) if again.any() else float("nan")


def measure_all(play: Play) -> Iterator[Measures]:
    """Yield the properties under every suitable encoder: exact ones, then grids from fine to coarse."""
    for encoder, keys in play.keys.items():
        yield measure(play, encoder, keys)
    if play.numbers is None:
        return
    low, high = np.percentile(play.numbers, [1, 99], axis=0)
    for cells in CELLS:
        grid = Quantized(tuple(_round_step(width / cells) for width in (high - low).tolist()))
        cell = np.floor(play.numbers / np.asarray(grid.step)) + 0.0
        yield measure(play, grid, digest_keys([cell]))


def _round_step(width: float) -> float:
    """Return a width rounded to one digit; 1 for a number that never changed."""
    return float(f"{width:.0e}") if width > 0 else 1.0
