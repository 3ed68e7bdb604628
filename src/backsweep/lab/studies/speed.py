"""C11: what a batch and an added step cost, for every sampler, with a full replay."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from backsweep.jit.random_streams import named_generator
from backsweep.replay import Replay
from backsweep.samplers import EpisodicBackward, Mixture, Prioritized, Sampler, Topological, Uniform
from backsweep.tasks.resumable import make_environments

SWEEP = Topological(roots=8, predecessors=3, trees="separate")
SAMPLERS: dict[str, Sampler] = {
    "uer": Uniform(),
    "per": Prioritized(),
    "ebu": EpisodicBackward(running=False),
    "ter": Mixture([(0.5, SWEEP), (0.5, Prioritized())]),
    "ter, no mixing": SWEEP,
    "ter-shuffled": Topological(roots=8, predecessors=3, trees="separate", shuffle=10_000),
    "ter-visits": Topological(roots=8, predecessors=3, trees="separate", draw="visits"),
}
TASK = "minigrid/lavacrossing-hard"
BATCH = 64


def measure(name: str, rows: int, repeats: int, seed: int, task: str = TASK) -> Iterator[dict[str, Any]]:
    """Yield records for adding a step to a full replay and for drawing a batch from it, in rounds of `repeats`."""
    replay = _filled(SAMPLERS[name], rows, seed, task)
    errors = named_generator(seed, "errors")
    for _ in range(repeats // 10):  # caches and the allocator come to rest
        replay.sample(BATCH)
    for turn in range(5):
        sampled = np.empty(repeats)
        for index in range(repeats):
            start = time.perf_counter()
            batch = replay.sample(BATCH)
            sampled[index] = time.perf_counter() - start
            replay.update_priorities(batch.row, errors.random(BATCH))
        yield {**_described(name, rows, task, seed, turn, replay), "operation": "sample", **summary(sampled)}
        yield {
            **_described(name, rows, task, seed, turn, replay),
            "operation": "add",
            **summary(_adds(replay, seed, task, repeats)),
        }


def summary(seconds: NDArray[np.float64]) -> dict[str, float]:
    """Return the numbers of the paper's table, in seconds, and the 99.9th percentile."""
    numbers = {
        "mean": seconds.mean(),
        "median": np.median(seconds),
        "min": seconds.min(),
        "max": seconds.max(),
        "p999": np.percentile(seconds, 99.9),
    }
    return {name: float(f"{value:.4g}") for name, value in numbers.items()}


def _described(name: str, rows: int, task: str, seed: int, turn: int, replay: Replay) -> dict[str, Any]:
    return {
        "kind": "speed",
        "method": name,
        "task": task,
        "rows": rows,
        "batch": BATCH,
        "seed": seed,
        "round": turn,
        "nbytes": replay.nbytes,
    }


def _filled(sampler: Sampler, rows: int, seed: int, task: str) -> Replay:
    """Fill a replay with random play on many copies of a task side by side, each a lane of its own."""
    lanes = min(100, rows)
    envs = make_environments(task, None, lanes, seed, {})
    replay = Replay(
        envs.observation_space,
        gym.spaces.Discrete(envs.num_actions),
        capacity=rows,
        sampler=sampler,
        num_envs=lanes,
        seed=seed,
    )
    generator = named_generator(seed, "actions")
    observations = envs.reset()
    for _ in range(-(-rows // lanes) + 10):  # a little more than full, so that adding has to make room
        actions = generator.integers(envs.num_actions, size=lanes)
        outcome = envs.step(actions)
        replay.add(
            observations,
            actions,
            outcome.rewards,
            outcome.observations,
            outcome.terminated,
            outcome.truncated,
            final_observation=outcome.finals,
        )
        observations = outcome.observations.copy()
    envs.close()
    return replay


def _adds(replay: Replay, seed: int, task: str, repeats: int) -> NDArray[np.float64]:
    """Return the seconds per step when all lanes add one each."""
    lanes = replay.num_envs
    envs = make_environments(task, None, lanes, seed + 1, {})
    generator = named_generator(seed, "more actions")
    observations = envs.reset()
    seconds = np.empty(max(repeats // 20, 10))
    for index in range(len(seconds)):
        actions = generator.integers(envs.num_actions, size=lanes)
        outcome = envs.step(actions)
        start = time.perf_counter()
        replay.add(
            observations,
            actions,
            outcome.rewards,
            outcome.observations,
            outcome.terminated,
            outcome.truncated,
            final_observation=outcome.finals,
        )
        seconds[index] = (time.perf_counter() - start) / lanes
        observations = outcome.observations.copy()
    envs.close()
    return seconds
