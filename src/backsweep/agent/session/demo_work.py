"""What the demo's worker processes do: compile, train and plan."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from backsweep.agent.config import RunConfig
from backsweep.agent.defaults import run_config
from backsweep.agent.fleet.fleet import Fleet
from backsweep.agent.session.evaluation.evaluate import evaluate_runs
from backsweep.agent.session.training import train_fleet
from backsweep.graph.distances import reverse_distances
from backsweep.jit.compilation import use_threads
from backsweep.planning import GraphValues
from backsweep.replay import Replay
from backsweep.tasks.make import make_single
from backsweep.types import Batch
from backsweep.view.facts import read_facts

Walked = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]
"""The values of a walk's states after one backup and after planning, and their steps to an end."""
TASK = "minigrid/doorkey"
OPTIONS: dict[str, Any] = {"size": 5, "image_size": 20}
EVALUATIONS = 24
WALK = 6_000
"""Random steps whose graph the picture shows."""
PLANNERS = (GraphValues(depth=1), GraphValues(untried="never"))
"""One that backs values up once, and one that plans."""


def demo_config(method: str, seed: int, steps: int) -> RunConfig:
    """Return a run on DoorKey, made smaller: a room of 5x5, images of 20x20, a small network.

    The settings are the same for all methods. They were chosen on tuning seeds, by how soon graph values solve the task
    for how much computing; the other methods were not tuned for themselves. The exact success is what counts; an
    episode is played for each evaluation because there must be one.
    """
    return run_config(
        TASK,
        method=method,
        seed=seed,
        task_options=OPTIONS,
        convolutions=((32, 4, 4), (64, 3, 1)),
        linear=(128,),
        steps=steps,
        warmup_steps=min(1_000, steps // 3),
        target_interval=250,
        learning_rate=2e-3,
        batch_size=64,
        ratio=0.25,
        capacity=steps,
        evaluation_interval=max(1, steps // EVALUATIONS),
        evaluation_episodes=1,
        record_interval=steps,
        probe_size=16,
    )


def train_quietly(runs: Sequence[tuple[str, int]], steps: int, folder: str) -> None:
    """Train runs (methods and seeds) as one fleet.

    A fleet acts and is evaluated with one call for all its runs. Its plain engine and a single thread are used because
    compiling the other engine, or threaded kernels, would take longer than they save.
    """
    configs = {f"{method}-{seed}": demo_config(method, seed, steps) for method, seed in runs}
    quietly = {"quiet": True, "checkpoint_interval": 0, "final_checkpoint": False}
    train_fleet(configs, folder, engine="plain", fleet_threads=1, **quietly)


# -- compiling --------------------------------------------------------------------------------------------------------


def compile_learning() -> None:
    """Evaluate and update networks that have learned nothing, and plan on nothing."""
    use_threads(1)
    configs = [demo_config(method, 0, 1_000) for method in ("uer", "ter", "graph")]
    fleet = Fleet(configs)
    evaluate_runs(configs, fleet.learner, range(len(configs)), 0)
    fleet.learner.update([blank_batch(configs[0].batch_size, fleet)] * len(configs))
    for planner in PLANNERS:
        replay = empty_replay(planner)
        plan(replay)
    replay.explore(np.zeros(replay.observation_space.shape or (), np.uint8), 0.5)


def blank_batch(size: int, fleet: Fleet) -> Batch:
    """Return a batch of black pictures."""
    network, nothing = fleet.learner.network, np.zeros(size, np.float32)
    pictures = np.zeros((2, size, *network.input_shape), np.uint8)
    return Batch(
        observation=pictures[0],
        action=np.arange(size) % network.actions,
        reward=nothing,
        next_observation=pictures[1],
        terminated=np.zeros(size, np.bool_),
        discount=nothing + 1,
        weight=nothing,
        row=np.arange(size),
        source=np.zeros(size, np.int64),
        steps=np.ones(size, np.int64),
    )


def compile_adding() -> None:
    """Add a transition to a replay."""
    replay = empty_replay(PLANNERS[0])
    picture = np.zeros(replay.observation_space.shape or (), np.uint8)
    replay.add(picture, 0, 0.0, picture, False, False)


# -- planning ---------------------------------------------------------------------------------------------------------


def empty_replay(values: GraphValues) -> Replay:
    """Return a replay for the task that plans."""
    env = make_single(TASK, **OPTIONS)
    return Replay(env.observation_space, env.action_space, capacity=WALK, values=values)


def plan(replay: Replay) -> None:
    """Plan where the network's values are all 0."""
    assert isinstance(replay.action_space, gym.spaces.Discrete)
    actions = int(replay.action_space.n)
    replay.renew_values(lambda seen: np.zeros((len(seen), actions)))


def planned_walk() -> Walked:
    """Return what both planners find on the same random walk."""
    replays = [walked(empty_replay(planner)) for planner in PLANNERS]
    for replay in replays:
        plan(replay)
    facts = read_facts(replays[-1])
    ends = np.flatnonzero(facts.terminal)
    distance = reverse_distances(len(facts), facts.source, facts.target, ends)
    return replays[0].graph.values(), replays[1].graph.values(), distance


def walked(replay: Replay) -> Replay:
    """Fill a replay with a random walk."""
    env, rng = make_single(TASK, **OPTIONS), np.random.default_rng(0)
    assert isinstance(env.action_space, gym.spaces.Discrete)
    observation, _ = env.reset(seed=0)
    for _ in range(WALK):
        action = int(rng.integers(int(env.action_space.n)))
        following, reward, terminated, truncated, _ = env.step(action)
        replay.add(observation, action, float(reward), following, terminated, truncated)
        observation = env.reset()[0] if terminated or truncated else following
    return replay
