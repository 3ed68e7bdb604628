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
from backsweep.tasks.environments import Environments, make_environments

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


def measure_all(seed: int, *, rows: int = 1_000_000, repeats: int = 2_000) -> Iterator[dict[str, Any]]:
    """Yield the records of all samplers."""
    for name in SAMPLERS:
        yield from measure(name, rows, repeats, seed)


def measure(name: str, rows: int, repeats: int, seed: int) -> Iterator[dict[str, Any]]:
    """Yield records for adding a step to a full replay and for drawing a batch from it, in rounds of `repeats`."""
    replay = _filled(SAMPLERS[name], rows, seed)
    described = {"kind": "speed", "method": name, "task": TASK, "rows": rows, "batch": BATCH, "seed": seed}
    errors = named_generator(seed, "errors")
    for _ in range(repeats // 10):  # warm up
        replay.sample(BATCH)
    for turn in range(5):
        sampled = np.empty((repeats, 2))
        for index in range(repeats):
            start = _clocks()
            batch = replay.sample(BATCH)
            sampled[index] = _clocks() - start
            replay.update_priorities(batch.row, errors.random(BATCH))
        envs = make_environments(TASK, None, replay.num_envs, seed + 1, {})
        added = _play(replay, envs, named_generator(seed, "more actions"), max(repeats // 20, 10))
        for operation, seconds in (("sample", sampled), ("add", added)):
            yield {**described, "round": turn, "nbytes": replay.nbytes, "operation": operation, **summary(seconds)}


def _clocks() -> NDArray[np.float64]:
    """Return the processor time of this thread, and the time by the clock."""
    return np.array([time.thread_time(), time.perf_counter()])


def summary(seconds: NDArray[np.float64]) -> dict[str, float]:
    """Return the numbers of the paper's table and two percentiles, in seconds of the processor, and some by the clock.

    Parameters
    ----------
    seconds
        A row for each call: the processor time of its thread, and the time by the clock. The second also counts what
        other programs on the machine take.
    """
    processor, clock = seconds.T
    numbers = {
        "mean": processor.mean(),
        "median": np.median(processor),
        "min": processor.min(),
        "max": processor.max(),
        "p99": np.percentile(processor, 99),
        "p999": np.percentile(processor, 99.9),
        "clock_mean": clock.mean(),
        "clock_p99": np.percentile(clock, 99),
        "clock_max": clock.max(),
    }
    return {name: float(f"{value:.4g}") for name, value in numbers.items()}


def _filled(sampler: Sampler, rows: int, seed: int) -> Replay:
    """Return a full replay of random play, with one lane for each of many copies of a task."""
    lanes = min(100, rows)
    envs = make_environments(TASK, None, lanes, seed, {})
    spaces = envs.observation_space, gym.spaces.Discrete(envs.num_actions)
    replay = Replay(*spaces, capacity=rows, sampler=sampler, num_envs=lanes, seed=seed)
    # A little more than full, so that rows are evicted.
    _play(replay, envs, named_generator(seed, "actions"), -(-rows // lanes) + 10)
    return replay


def _play(replay: Replay, envs: Environments, generator: np.random.Generator, steps: int) -> NDArray[np.float64]:
    """Add random play to a replay; return the seconds per added row of each step, as `summary` takes them."""
    observations = envs.reset()
    seconds = np.empty((steps, 2))
    for index in range(steps):
        actions = generator.integers(envs.num_actions, size=envs.num_envs)
        outcome = envs.step(actions)
        start = _clocks()
        replay.add(
            observations,
            actions,
            outcome.rewards,
            outcome.observations,
            outcome.terminated,
            outcome.truncated,
            final_observation=outcome.finals,
        )
        seconds[index] = (_clocks() - start) / envs.num_envs
        observations = outcome.observations.copy()
    envs.close()
    return seconds
