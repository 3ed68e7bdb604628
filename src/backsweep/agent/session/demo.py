"""The demo: three methods learn a small task, and planning on the graph of its states."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from backsweep.agent.config import RunConfig
from backsweep.agent.defaults import run_config
from backsweep.agent.fleet.fleet import Fleet
from backsweep.agent.methods import method_for
from backsweep.agent.palette import METHODS as PALETTE
from backsweep.agent.palette import pyplot
from backsweep.agent.session.evaluation.evaluate import evaluate_runs
from backsweep.agent.session.records import EvaluationRecord, read_records
from backsweep.agent.session.training import train_fleet
from backsweep.cores import usable_cores
from backsweep.graph.distances import reverse_distances
from backsweep.jit.compilation import is_compiled
from backsweep.planning import GraphValues
from backsweep.replay import Replay
from backsweep.tasks.make import make_single
from backsweep.types import Batch
from backsweep.view.facts import read_facts

Curve = list[tuple[int, float]]
TASK = "minigrid/doorkey"
OPTIONS: dict[str, Any] = {"size": 5, "image_size": 20}
METHODS = {name: PALETTE[name].title for name in ("graph", "ter", "uer")}
SEEDS = (0, 1, 2)
STEPS = 12_000
SOLVED = 0.9
NOT_YET = "not yet"
REPORT_EVERY = 10.0
"""Seconds between lines that say how far the runs are."""
COMPILED_LAST = ("adam", "sweep_rows", "read_rows_and_targets")
TRIAL = 60
"""Steps of a training that only compiles kernels."""
WALK = 6_000
"""Random steps whose graph the picture shows."""


def demo_config(method: str, seed: int, steps: int = STEPS) -> RunConfig:
    """Return a run on DoorKey, made smaller: a room of 5x5, images of 20x20, a small network."""
    return run_config(
        TASK,
        method=method,
        seed=seed,
        task_options=OPTIONS,
        convolutions=((32, 4, 4), (32, 3, 1)),
        linear=(128,),
        steps=steps,
        warmup_steps=min(1_000, steps // 3),
        target_interval=250,
        learning_rate=5e-4,
        batch_size=32,
        capacity=steps,
        evaluation_interval=max(1, steps // 24),
        evaluation_episodes=4,
        record_interval=steps,
        probe_size=16,
    )


def train_quietly(runs: Sequence[tuple[str, int]], steps: int, folder: str) -> list[Curve]:
    """Train runs (methods and seeds) as one fleet; return the share of episodes that each solves, by steps.

    A fleet acts and is evaluated with one call for all its runs. Its plain engine is used because compiling the other
    one would take longer than the demonstration.
    """
    configs = {f"{method}-{seed}": demo_config(method, seed, steps) for method, seed in runs}
    train_fleet(configs, folder, engine="plain", quiet=True, checkpoint_interval=0, final_checkpoint=False)
    return [curve_of(Path(folder) / name) for name in configs]


def curve_of(folder: Path) -> Curve:
    """Return the share of episodes that a run has solved so far, by steps."""
    try:
        records = read_records(folder, "evaluation")
    except (FileNotFoundError, NotADirectoryError):
        return []  # it has not started
    return [(r.step, r.exact_success or 0.0) for r in records if isinstance(r, EvaluationRecord)]


def compile_and_plan() -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """Compile what training needs, in two processes that compile different kernels; return what planning finds.

    A kernel is quickly compiled if those that it calls are cached: hence the order. Nothing is compiled if the kernels
    that are compiled last are cached.
    """
    if all(map(is_compiled, COMPILED_LAST)):
        return planned_states(random_walks())
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as other, TemporaryDirectory() as trial:
        adding = other.submit(compile_replay, draws=False)
        drawing = other.submit(compile_replay, draws=True)
        compile_training()
        adding.result()
        replays = random_walks()
        training = other.submit(train_quietly, [(method, 0) for method in METHODS], TRIAL, trial)
        found = planned_states(replays)
        drawing.result()
        training.result()
    return found


def compile_replay(draws: bool) -> None:
    """Fill a replay and draw from it, so that the kernels for it are compiled."""
    config, env = demo_config("ter", 0), make_single(TASK, **OPTIONS)
    replay = Replay.for_env(env, config.capacity, method_for(config).sampler)
    size = config.batch_size
    pictures = np.zeros((size + 1, *(env.observation_space.shape or ())), np.uint8)
    pictures[:, 0, 0, 0] = np.arange(size + 1)
    replay.extend(pictures, np.zeros(size, np.int64), np.zeros(size), terminated=True)
    if draws:
        batch = replay.sample(size)
        replay.update_priorities(batch.row, np.ones(size))


def compile_training() -> None:
    """Evaluate and update networks that have learned nothing, so that the kernels for it are compiled."""
    configs = [demo_config(method, 0) for method in METHODS]
    fleet = Fleet(configs)
    evaluate_runs(configs, fleet.learner, range(len(configs)), 0)
    size, actions = demo_config("uer", 0).batch_size, fleet.learner.network.actions
    pictures = np.zeros((2, size, *fleet.learner.network.input_shape), np.uint8)
    nothing = np.zeros(size, np.float32)
    blank = Batch(
        observation=pictures[0],
        action=np.arange(size) % actions,
        reward=nothing,
        next_observation=pictures[1],
        terminated=np.zeros(size, np.bool_),
        discount=nothing + 1,
        weight=nothing,
        row=np.arange(size),
        source=np.zeros(size, np.int64),
        steps=np.ones(size, np.int64),
    )
    fleet.learner.update([blank] * len(configs))


def run(out: Path, steps: int = STEPS) -> Path:
    """Train all methods, print and draw the results; return the picture's path."""
    pyplot("report")  # without matplotlib, say so before the training, not after it
    print(
        f"DoorKey in a room of 5x5, seen as pictures: {len(METHODS)} methods, {len(SEEDS)} fixed seeds, "
        f"{steps:,} steps each, the same settings for all.\n"
        "About a minute on two cores; the first time also 40 seconds to compile.",
        flush=True,
    )
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    before, after, distance = compile_and_plan()
    curves: dict[str, list[Curve]] = {method: [] for method in METHODS}
    began = time.monotonic()
    with TemporaryDirectory(prefix="backsweep-demo-") as place:
        runs = [(method, seed) for seed in SEEDS for method in METHODS]
        workers = min(len(runs), usable_cores())
        with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
            shares = [runs[worker::workers] for worker in range(workers)]
            under_way = {
                pool.submit(train_quietly, share, steps, f"{place}/{worker}"): share
                for worker, share in enumerate(shares)
            }
            waiting = set(under_way)
            while waiting:
                finished, waiting = wait(waiting, timeout=REPORT_EVERY, return_when=FIRST_COMPLETED)
                for done in finished:
                    for (method, seed), curve in zip(under_way[done], done.result(), strict=True):
                        curves[method].append(curve)
                        print(f"  {METHODS[method]:13} seed {seed}: {in_words(curve)}", flush=True)
                if waiting and not finished:
                    print(f"  {so_far(shares, Path(place))}", flush=True)
    print(f"\nSteps until {SOLVED:.0%} of episodes are solved, one number for each seed:")
    for method, found in curves.items():
        print(f"  {METHODS[method]:13} {',  '.join(sorted(map(solved_at, found), key=lambda text: (len(text), text)))}")
    path = out / "demo.png"
    draw(curves, before, after, distance, path)
    print(f"\nThe picture: {path} ({time.monotonic() - began:.0f} s of training)")
    print(f"Next: {command()} train minigrid/doorkey --steps 200_000, or docs/graph_values.md for your own loop")
    return path


def command() -> str:
    """Return how to call `backsweep` here: with its path if its environment is not active."""
    return "backsweep" if shutil.which("backsweep") else os.path.relpath(Path(sys.executable).parent / "backsweep")


def so_far(shares: Sequence[Sequence[tuple[str, int]]], place: Path) -> str:
    """Return how far the runs are and how many solve the task now, as text."""
    newest: dict[str, list[tuple[int, float]]] = {method: [] for method in METHODS}
    for worker, share in enumerate(shares):
        for method, seed in share:
            curve = curve_of(place / str(worker) / f"{method}-{seed}")
            newest[method].append(curve[-1] if curve else (0, 0.0))
    step = min(step for found in newest.values() for step, _ in found)
    if step == 0:
        return "starting"
    solved = (
        f"{METHODS[method]} {sum(success >= SOLVED for _, success in found)} of {len(found)}"
        for method, found in newest.items()
    )
    return f"step {step:6,}; solved now: {', '.join(solved)}"


def solved_at(curve: Curve) -> str:
    """Return the step from which a run solves its task for good, as text."""
    for place, (step, _) in enumerate(curve):
        if all(success >= SOLVED for _, success in curve[place:]):
            return f"{step:,}"
    return NOT_YET


def in_words(curve: Curve) -> str:
    """Return how a run ended, as text."""
    since = solved_at(curve)
    end = f"{curve[-1][1]:.0%} of episodes solved at the end"
    return end if since == NOT_YET else f"{end}, {SOLVED:.0%} from step {since} on"


# -- planning ---------------------------------------------------------------------------------------------------------


def random_walks() -> list[Replay]:
    """Return a random walk in two replays, one that backs values up once and one that plans."""
    env = make_single(TASK, **OPTIONS)
    assert isinstance(env.action_space, gym.spaces.Discrete)
    actions = int(env.action_space.n)
    replays = []
    for values in (GraphValues(depth=1), GraphValues(untried="never")):
        rng = np.random.default_rng(0)
        replay = Replay(env.observation_space, env.action_space, capacity=WALK, values=values)
        observation, _ = env.reset(seed=0)
        for _ in range(WALK):
            action = int(rng.integers(actions))
            following, reward, terminated, truncated, _ = env.step(action)
            replay.add(observation, action, float(reward), following, terminated, truncated)
            observation = env.reset()[0] if terminated or truncated else following
        replays.append(replay)
    return replays


def planned_states(replays: Sequence[Replay]) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """Return the values of a walk's states after one backup and after planning, and their steps to an end.

    The network's values are all 0.
    """
    actions = replays[0].action_space
    assert isinstance(actions, gym.spaces.Discrete)
    found = []
    for replay in replays:
        replay.renew_values(lambda seen: np.zeros((len(seen), int(actions.n))))
        found.append(replay.graph.values())
    facts = read_facts(replays[-1])
    ends = np.flatnonzero(facts.terminal)
    return found[0], found[1], reverse_distances(len(facts), facts.source, facts.target, ends)


# -- the picture ------------------------------------------------------------------------------------------------------


def draw(
    curves: dict[str, list[Curve]],
    before: NDArray[np.float64],
    after: NDArray[np.float64],
    distance: NDArray[np.int64],
    path: Path,
) -> None:
    """Draw how soon each method solves the task, and the states with their values before and after planning."""
    plt = pyplot("demo")
    figure, panels = plt.subplots(1, 3, figsize=(13, 4), layout="constrained", width_ratios=(1.25, 1, 1))
    for method, found in curves.items():
        for place, curve in enumerate(found):
            steps, success = zip(*curve, strict=True)
            label = METHODS[method] if place == 0 else None
            panels[0].plot(
                steps, 100 * np.array(success), label=label, color=PALETTE[method].light, linewidth=1.8, alpha=0.85
            )
    panels[0].set_title("DoorKey 5x5 from pictures: who solves it when?", fontsize=11)
    panels[0].set_xlabel("environment steps")
    panels[0].set_ylabel("% of episodes solved")
    panels[0].set_ylim(-3, 103)
    panels[0].legend(frameon=False)
    reached = distance >= 0
    order = np.argsort(distance[reached], kind="stable")
    levels = distance[reached][order]
    heights = np.concatenate([np.linspace(-1, 1, count + 2)[1:-1] for count in np.bincount(levels) if count])
    for panel, values, title in (
        (panels[1], before, "One-step targets: only next to the goal"),
        (panels[2], after, "Planned on the graph: every state at once"),
    ):
        ends = levels == 0
        shown = values[reached][order][~ends]
        dots = panel.scatter(
            levels[~ends], heights[~ends], c=shown, cmap="viridis", s=14, vmin=0, vmax=np.nanmax(after)
        )
        panel.scatter(levels[ends], heights[ends], color="black", marker="*", s=60)
        panel.set_title(title, fontsize=11)
        panel.set_xlabel("steps to the goal (stars)")
        panel.set_xticks(range(0, int(levels.max()) + 1, 5))
        panel.set_yticks([])
        panel.invert_xaxis()
    figure.colorbar(dots, ax=panels[2], label="value of a state")
    for panel in panels:
        panel.spines[["top", "right"]].set_visible(False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    plt.close(figure)
