"""C22: whether TER's order equals EBU's when no state repeats, and how often states repeat in LunarLander."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import numpy as np

from backsweep.encoding import RandomProjection
from backsweep.jit.random_streams import named_generator
from backsweep.replay import Replay
from backsweep.samplers import EpisodicBackward, Sampler, Topological
from backsweep.tasks.make import make_single


def stream(seed: int, episodes: int, sampler: Sampler) -> Replay:
    """Return a replay of episodes without a single repeated state, all of which terminate."""
    lengths = named_generator(seed, "episodes").integers(3, 40, size=episodes)
    states = int(lengths.sum()) + episodes
    replay = Replay(gym.spaces.Discrete(states), gym.spaces.Discrete(2), int(lengths.sum()), sampler, seed=seed)
    state = 0
    for length in lengths.tolist():
        for step in range(length):
            replay.add(state, 0, 0.0, state + 1, step == length - 1, False)
            state += 1
        state += 1
    return replay


def whole_episodes(replay: Replay, count: int) -> tuple[int, set[int]]:
    """Return how many of the next `count` stretches of rows are one episode from its end to its start, and which."""
    right, which = 0, set()
    for _ in range(count):
        row = int(replay.sample(1).row[0])
        expected = replay.episode(row)[::-1]
        rest = replay.sample(len(expected) - 1).row if len(expected) > 1 else np.empty(0, np.int64)
        right += bool(expected[0] == row and np.array_equal(rest, expected[1:]))
        which.add(int(expected[-1]))
    return right, which


def compare_orders(seed: int, episodes: int = 50, stretches: int = 400) -> Iterator[dict[str, Any]]:
    """Yield a record for TER's sweep (roots one by one, and all in one queue) and for EBU's walk."""
    samplers: dict[str, Sampler] = {
        "ter, trees one by one": Topological(roots=8, predecessors=3, trees="separate"),
        "ter, one root": Topological(roots=1, predecessors=3),
        "ter, one queue for 8 roots": Topological(roots=8, predecessors=3, trees="shared"),
        "ebu": EpisodicBackward(),
    }
    for name, sampler in samplers.items():
        right, which = whole_episodes(stream(seed, episodes, sampler), stretches)
        yield {
            "kind": "no-repeats",
            "seed": seed,
            "sampler": name,
            "stretches": stretches,
            "whole_episodes": right,
            "episodes": episodes,
            "episodes_seen": len(which),
        }


def no_repeats(seed: int, *, lander_steps: int = 50_000) -> Iterator[dict[str, Any]]:
    """Yield all records of the study."""
    yield from compare_orders(seed)
    yield revisits(seed, lander_steps)


def revisits(seed: int, steps: int) -> dict[str, Any]:
    """Return how often a random LunarLander agent sees a state that it has seen before."""
    env = make_single("lunarlander")
    actions = named_generator(seed, "actions")
    encoder = RandomProjection(dim=3).build(env.observation_space, named_generator(seed, "encoder"))
    seen: set[bytes] = set()
    again = 0
    observation, _ = env.reset(seed=seed)
    for _ in range(steps):
        observation, _, terminated, truncated, _ = env.step(int(actions.integers(4)))
        key = encoder.encode(np.asarray(observation)[None])[0].tobytes()
        again += key in seen
        seen.add(key)
        if terminated or truncated:
            observation, _ = env.reset()
    env.close()
    return {
        "kind": "revisits",
        "task": "lunarlander",
        "seed": seed,
        "steps": steps,
        "again": again,
        "states": len(seen),
    }
