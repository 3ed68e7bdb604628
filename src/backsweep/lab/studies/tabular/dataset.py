"""Random-policy data sets on NChain, one per seed."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from backsweep.jit.random_streams import named_generator
from backsweep.planning import GraphValues
from backsweep.replay import Replay
from backsweep.samplers import Sampler
from backsweep.samplers.base import SamplerState
from backsweep.tasks import exact

DISCOUNT = 0.99


@dataclass(frozen=True, eq=False)
class ChainData:
    """Episodes of random actions; every array has one entry per step, episode after episode."""

    length: int
    state: NDArray[np.int64]
    action: NDArray[np.int64]
    reward: NDArray[np.float64]
    following: NDArray[np.int64]
    terminated: NDArray[np.bool_]
    truncated: NDArray[np.bool_]
    starts: NDArray[np.int64]
    """Where each episode begins; one more entry than there are episodes."""
    best: NDArray[np.float64]
    """The exact Q*, (states, 2); the last state is terminal and worth nothing."""
    _filled: dict[tuple[Sampler, int, GraphValues | None], tuple[Replay, SamplerState]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.state)

    def replay(self, sampler: Sampler, seed: int, values: GraphValues | None = None) -> Replay:
        """Return a replay that holds the data set, with a sampler that has not been used yet.

        Filling costs more than a short run does, so runs with the same sampler share one replay, one after another.
        Each gets it in the state in which it was filled.
        """
        key = (sampler, seed, values)
        if key not in self._filled:
            replay = self._fill(sampler, seed, values)
            state = replay._sampler.state()
            fresh = SamplerState({name: array.copy() for name, array in state.arrays.items()}, dict(state.values))
            self._filled[key] = replay, fresh
        replay, fresh = self._filled[key]
        replay._sampler.load_state(fresh)
        return replay

    def _fill(self, sampler: Sampler, seed: int, values: GraphValues | None) -> Replay:
        """Give every episode its own lane: one call per step of the longest."""
        lengths = np.diff(self.starts)
        replay = Replay(
            gym.spaces.Discrete(self.length),
            gym.spaces.Discrete(2),
            capacity=len(self),
            sampler=sampler,
            num_envs=len(lengths),
            gamma=DISCOUNT,
            seed=seed,
            values=values,
        )
        columns = (self.state, self.action, self.reward, self.following, self.terminated, self.truncated)
        for step in range(int(lengths.max())):
            at = self.starts[:-1] + np.minimum(step, lengths - 1)
            fields: list[NDArray[Any]] = [column[at] for column in columns]
            replay.add(*fields, mask=step < lengths)
        return replay


@lru_cache(maxsize=4)
def chain_data(seed: int, length: int = 20, episodes: int = 10) -> ChainData:
    """Return the data set of a seed: `episodes` episodes of uniformly random actions."""
    task = exact(f"nchain-{length}")
    generator = named_generator(seed, "chain data", str(length))
    moves = task.graph.next_state
    states, actions, following, ends, cuts, starts = [], [], [], [], [], [0]
    for _ in range(episodes):
        state, step, ended = 0, 0, False
        while not ended and step < task.step_limit:
            action = int(generator.integers(2))
            after = int(moves[state, action])
            step, ended = step + 1, after == length - 1
            states.append(state)
            actions.append(action)
            following.append(after)
            ends.append(ended)
            cuts.append(not ended and step == task.step_limit)
            state = after
        starts.append(len(states))
    best = np.zeros((length, 2))
    best[:-1] = task.optimal_values(DISCOUNT)
    terminated = np.array(ends)
    return ChainData(
        length,
        np.array(states),
        np.array(actions),
        terminated.astype(np.float64),
        np.array(following),
        terminated,
        np.array(cuts),
        np.array(starts),
        best,
    )
