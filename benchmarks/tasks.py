"""How fast the tasks run, as ratios to the original packages.

    python -m benchmarks.tasks                 measure, print the table, rewrite it in docs/performance-tasks.md
    python -m benchmarks.tasks --quick         the same with short measurements, and nothing is rewritten

Every number is taken in a fresh process that is pinned to one core. The three ways of running a task (64 lanes, one
lane, the package) take turns, round after round, so that a slow spell of the machine falls on all of them; a ratio is
the median of the rounds' ratios. MiniGrid's package is asked for its RGB image without the resizing that ours includes;
Atari's is ale-py under Gymnasium's wrappers, and the emulator takes most of the time of both.
"""

from __future__ import annotations

import argparse
import importlib
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.machine import facts, measured_on
from benchmarks.records import TITLES, Block, Records, keep, kind_here

ROOT = Path(__file__).resolve().parent.parent
NAME = "tasks"

TASKS = (
    "minigrid/doorkey",
    "minigrid/unlock",
    "minigrid/redbluedoors",
    "minigrid/lavacrossing-hard",
    "sokoban/5x5-1",
    "sokoban/6x6-3",
    "sokoban/7x7-2",
    "atari/pong",
    "atari/freeway",
)
WAYS = ("lanes", "single", "package")
LANES = 64
# What the ratios must at least be: (64 lanes, one lane). Of Atari's steps the emulator, the same for both, takes most.
FLOORS = {"minigrid": (100.0, 40.0), "sokoban": (8.0, 5.0), "atari": (1.0, 1.0)}


@dataclass(frozen=True)
class Result:
    """One task's rates in steps per second, image and resets included, and their ratios to the package's."""

    task: str
    lanes: float
    single: float
    package: float
    lanes_ratio: float
    single_ratio: float

    @property
    def passed(self) -> bool:
        """Whether both ratios reach their floors."""
        floors = FLOORS[self.task.split("/")[0]]
        return self.lanes_ratio >= floors[0] and self.single_ratio >= floors[1]


def rate(play: Callable[[int], None], steps_per_turn: int, seconds: float) -> float:
    """Return how many steps per second `play(turns)` makes, after a warm-up."""
    play(8)
    turns = 8
    while True:
        start = time.perf_counter()
        play(turns)
        elapsed = time.perf_counter() - start
        if elapsed >= seconds:
            return turns * steps_per_turn / elapsed
        turns = max(2 * turns, int(1.2 * turns * seconds / max(elapsed, 1e-6)))


def package_actions(task: str) -> dict[str, Any]:
    """Return the options with which a task has the actions of its package."""
    return {} if task.startswith("atari/") else {"actions": "package"}


def play_lanes(task: str, seconds: float) -> float:
    """Measure 64 lanes with random actions."""
    from backsweep.tasks import make

    env: Any = make(task, num_envs=LANES, seed=0, **package_actions(task))
    env.reset()
    actions = np.random.default_rng(0).integers(0, env.single_action_space.n, (997, LANES))

    def play(turns: int) -> None:
        for turn in range(turns):
            env.step(actions[turn % 997])

    return rate(play, LANES, seconds)


def play_environment(env: Any, step: Callable[[int], bool], num_actions: int, seconds: float) -> float:
    """Measure a single environment with random actions, resets included."""
    actions = np.random.default_rng(0).integers(0, num_actions, 997).tolist()

    def play(turns: int) -> None:
        for turn in range(turns):
            if step(actions[turn % 997]):
                env.reset()

    return rate(play, 1, seconds)


def play_single(task: str, seconds: float) -> float:
    """Measure one lane as a plain environment."""
    from backsweep.tasks.make import make_single

    env: Any = make_single(task, **package_actions(task))
    env.reset(seed=0)

    def step(action: int) -> bool:
        _, _, terminated, truncated, _ = env.step(action)
        return bool(terminated or truncated)

    return play_environment(env, step, int(env.action_space.n), seconds)


def play_package(task: str, seconds: float) -> float:
    """Measure the original package."""
    play = {"minigrid": play_minigrid, "sokoban": play_gym_sokoban, "atari": play_gymnasium_atari}
    return play[task.split("/")[0]](task, seconds)


def play_minigrid(task: str, seconds: float) -> float:
    """Measure MiniGrid with its RGB wrapper, without highlighting."""
    oracle = load_oracle("minigrid_oracle")
    from minigrid import wrappers

    from backsweep.tasks import find_task

    inner = oracle.original(find_task(task).options())
    inner.highlight = False
    wrap: Any = wrappers.RGBImgObsWrapper
    env: Any = wrap(inner, tile_size=8)
    env.reset(seed=0)

    def step(action: int) -> bool:
        _, _, terminated, truncated, _ = env.step(action)
        return bool(terminated or truncated)

    return play_environment(env, step, 7, seconds)


def play_gym_sokoban(task: str, seconds: float) -> float:
    """Measure gym-sokoban with its small picture, resized as the paper does; its resets draw its own rooms."""
    oracle = load_oracle("sokoban_oracle")
    import cv2

    from backsweep.tasks import find_task

    options: Any = find_task(task).options()  # those of Sokoban
    with open(os.devnull, "w") as silence:
        sys.stdout, terminal = silence, sys.stdout  # it prints every retry
        try:
            env = oracle.sokoban_env.SokobanEnv(
                dim_room=(options.height, options.width), num_boxes=options.boxes, reset=False
            )
            quiet_reset = env.reset
            # A retried reset forgets the small picture and asks for sprites that the stand-ins do not have.
            env.render = lambda mode="tiny_rgb_array", **_: env.get_image("tiny_rgb_array")
            quiet_reset()

            def step(action: int) -> bool:
                image, _, done, _ = env.step(action, observation_mode="tiny_rgb_array")
                cv2.resize(image, (84, 84), interpolation=cv2.INTER_NEAREST)
                return bool(done)

            return play_environment(env, step, 9, seconds)
        finally:
            sys.stdout = terminal


def play_gymnasium_atari(task: str, seconds: float) -> float:
    """Measure an Atari game under Gymnasium's own preprocessing."""
    import ale_py
    import gymnasium

    gymnasium.register_envs(ale_py)
    game = task.removeprefix("atari/").capitalize()
    env: Any = gymnasium.make(f"ALE/{game}-v5", frameskip=1, repeat_action_probability=0.0)
    env = gymnasium.wrappers.FrameStackObservation(gymnasium.wrappers.AtariPreprocessing(env), 4)
    env.reset(seed=0)

    def step(action: int) -> bool:
        _, _, terminated, truncated, _ = env.step(action)
        return bool(terminated or truncated)

    return play_environment(env, step, int(env.action_space.n), seconds)


def load_oracle(name: str) -> Any:
    """Return the tests' oracle module of that name, which imports its neighbours."""
    sys.path.append(str(ROOT / "tests" / "tasks"))
    return importlib.import_module(name)


def measure_here(task: str, way: str, seconds: float) -> float:
    """Pin this process to one core and measure."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    play = {"lanes": play_lanes, "single": play_single, "package": play_package}[way]
    return play(task, seconds)


def measure_apart(task: str, way: str, seconds: float) -> float:
    """Measure in a fresh process."""
    command = [sys.executable, "-m", "benchmarks.tasks", "--measure", task, way, "--seconds", str(seconds)]
    result = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    if result.returncode:
        raise RuntimeError(f"{task} {way}: {result.stderr}")
    return float(result.stdout.splitlines()[-1])


def measure_task(task: str, rounds: int, seconds: float) -> Result:
    """Measure a task in all ways, alternating."""
    rates = [{way: measure_apart(task, way, seconds) for way in WAYS} for _ in range(rounds)]
    median = {way: statistics.median(turn[way] for turn in rates) for way in WAYS}
    return Result(
        task=task,
        **median,
        lanes_ratio=statistics.median(turn["lanes"] / turn["package"] for turn in rates),
        single_ratio=statistics.median(turn["single"] / turn["package"] for turn in rates),
    )


def in_digits(ratio: float) -> str:
    """Return a ratio as text."""
    return f"{ratio:,.0f}" if ratio >= 10 else f"{ratio:.2f}"


def table(records: Records) -> str:
    """Return the results as a table, with a row for each task and kind of processor."""
    lines = [
        "| task | processor | package, steps/s | one lane, steps/s | ratio | 64 lanes, steps/s | ratio |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    found = [(processor, Result(**each)) for processor, record in records.items() for each in record["results"]]
    for task in TASKS:
        lines += [
            f"| {one.task} | {processor} | {one.package:,.0f} | {one.single:,.0f} | {in_digits(one.single_ratio)} | "
            f"{one.lanes:,.0f} | {in_digits(one.lanes_ratio)} |"
            for processor, one in found
            if one.task == task
        ]
    return "\n\n".join(["\n".join(lines), *(measured_on(record["machine"]) for record in records.values())])


BLOCKS = (
    Block(
        NAME,
        ROOT / "docs" / "performance-tasks.md",
        "<!-- benchmarks.tasks begin -->",
        "<!-- benchmarks.tasks end -->",
        table,
    ),
)


def main() -> int:
    """Measure, print, and rewrite the page."""
    parser = argparse.ArgumentParser(description="Speed of the tasks against the original packages.")
    parser.add_argument("--quick", action="store_true", help="short measurements; the page stays as it is")
    parser.add_argument("--measure", nargs=2, metavar=("TASK", "WAY"), help=argparse.SUPPRESS)
    parser.add_argument("--seconds", type=float, default=1.0, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        task, way = arguments.measure
        print(measure_here(task, way, arguments.seconds))
        return 0
    rounds, seconds = (1, 0.2) if arguments.quick else (3, 1.0)
    machine = facts()
    results = [measure_task(task, rounds, seconds) for task in TASKS]
    record = {"machine": machine, "results": [asdict(one) for one in results]}
    print(table({TITLES[kind_here()]: record}))
    if not arguments.quick:
        keep(NAME, record)
        BLOCKS[0].write()
    below = [one.task for one in results if not one.passed]
    if below:
        print(f"below the floor: {', '.join(below)}", file=sys.stderr)
    return 1 if below else 0


if __name__ == "__main__":
    sys.exit(main())
