"""How fast the trainer runs, as ratios to Stable-Baselines3's DQN, learning included.

    python -m benchmarks.trainer              measure, print the table, rewrite it in docs/performance-training.md
    python -m benchmarks.trainer --quick      the same with short measurements, and nothing is rewritten

Both train the same network (40x40x3, Nature CNN) on DoorKey with the same schedule: batch 64, one update every 4 steps,
target copied every 1,000 steps, 10% random actions, Adam, one torch thread. Ours is double DQN and takes one forward
pass more. Every number is taken in a fresh process that is pinned to one core, and the contestants take turns, round
after round, so that a slow spell of the machine falls on all of them; a ratio is the median of the rounds' ratios.
Time is the time of the one thread on its core, so that what else the machine does is not counted.

  same      both step the very same environment, gymnasium.make("backsweep/DoorKey-v0")
  own       ours on our task, Stable-Baselines3 on the minigrid package's environment with its image resized to 40x40
  overhead  of the loop: what is left of a step when the time inside environment, network and replay is taken away
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from backsweep.lab.report.marked_text import rewrite_between

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "performance-training.md"
NUMBERS = ROOT / "docs" / "performance-training.json"
BEGIN, END = "<!-- benchmarks.trainer begin -->", "<!-- benchmarks.trainer end -->"

WARMUP = 1_000
CONTESTANTS = ("ours same", "sb3 same", "ours own", "sb3 own")
FLOORS = {"same": 2.0, "own": 2.5}
MOST_OVERHEAD = 0.10


def measure_ours(own: bool, steps: int) -> dict[str, float]:
    """Return our steps per second, and how a step's time is spent."""
    import torch

    from backsweep.agent import run_config
    from backsweep.agent.fleet.clock import Clock
    from backsweep.agent.fleet.fleet import Fleet
    from backsweep.agent.fleet.plain_source import take_turn

    torch.set_num_threads(1)
    settings: dict[str, Any] = {
        "method": "uer",
        "warmup_steps": WARMUP,
        "steps": WARMUP + 10 * steps,
        "epsilon_start": 0.1,
        "epsilon_end": 0.1,
        "capacity": 50_000,
        "batch_size": 64,
        "ratio": 0.25,
        "learning_rate": 3e-4,
        "target_interval": 1_000,
        "convolutions": ((32, 8, 4), (64, 4, 2), (64, 3, 1)),
        "linear": (512,),
    }
    if own:
        config = run_config("minigrid/doorkey", exact=False, **settings)
    else:
        import backsweep.tasks  # noqa: F401 - registers the id

        config = run_config(env="backsweep/DoorKey-v0", **settings)
    fleet, clock = Fleet([config]), Clock()
    spent = {"environment": 0.0, "replay": 0.0, "network": 0.0}

    def timed(owner: Any, name: str, part: str) -> None:
        function = getattr(owner, name)

        def wrapper(*arguments: Any, **named: Any) -> Any:
            start = time.process_time()
            result = function(*arguments, **named)
            spent[part] += time.process_time() - start
            return result

        setattr(owner, name, wrapper)

    run = fleet.runs[0]
    timed(run.envs, "step", "environment")
    for name in ("add", "sample", "update_priorities"):
        timed(run.replay, name, "replay")
    for name in ("greedy", "update", "copy_target"):
        timed(fleet.learner, name, "network")

    def failed(run: Any, error: Exception) -> None:
        raise error

    while fleet.step < WARMUP + 200:
        take_turn(fleet, clock, failed)
    for part in spent:
        spent[part] = 0.0
    start = time.process_time()
    for _ in range(steps):
        take_turn(fleet, clock, failed)
    seconds = time.process_time() - start
    shares = {part: value / seconds for part, value in spent.items()}
    return {"rate": steps / seconds, **shares, "overhead": 1.0 - sum(shares.values())}


def measure_sb3(own: bool, steps: int) -> dict[str, float]:
    """Return Stable-Baselines3's steps per second."""
    import gymnasium as gym
    import torch
    from stable_baselines3 import DQN

    torch.set_num_threads(1)
    env = package_env() if own else gym.make(_registered("backsweep/DoorKey-v0"))
    marks: dict[int, float] = {}

    def mark(values: dict[str, Any], _: dict[str, Any]) -> bool:
        step = values["self"].num_timesteps
        if step in (WARMUP + 200, WARMUP + 200 + steps):
            marks[step] = time.process_time()
        return True

    model = DQN(
        "CnnPolicy",
        env,
        learning_rate=3e-4,
        buffer_size=50_000,
        learning_starts=WARMUP,
        batch_size=64,
        gamma=0.99,
        train_freq=4,
        gradient_steps=1,
        target_update_interval=1_000,
        exploration_initial_eps=0.1,
        exploration_final_eps=0.1,
        device="cpu",
        seed=0,
    )
    model.learn(WARMUP + 201 + steps, callback=mark)
    first, last = sorted(marks.values())
    return {"rate": steps / (last - first)}


def _registered(name: str) -> str:
    import backsweep.tasks  # noqa: F401 - registers the id

    return name


def package_env() -> Any:
    """Return DoorKey of the minigrid package: the whole grid as an image of 40x40."""
    import gymnasium as gym
    import minigrid.wrappers  # registers its ids too
    import numpy as np

    wrapper: Any = gym.ObservationWrapper
    wrappers: Any = minigrid.wrappers

    class Resized(wrapper):  # type: ignore[misc]
        def __init__(self, env: Any) -> None:
            super().__init__(env)
            side = env.observation_space.shape[0]
            self.index = np.arange(40) * side // 40
            self.observation_space = gym.spaces.Box(0, 255, (40, 40, 3), np.uint8)

        def observation(self, image: Any) -> Any:
            return image[self.index][:, self.index]

    base = gym.make("MiniGrid-DoorKey-6x6-v0", highlight=False)
    return Resized(wrappers.ImgObsWrapper(wrappers.RGBImgObsWrapper(base)))


def measure(contestant: str, steps: int) -> dict[str, float]:
    """Measure one contestant in this process."""
    who, where = contestant.split()
    function: Callable[[bool, int], dict[str, float]] = measure_ours if who == "ours" else measure_sb3
    return function(where == "own", steps)


def in_fresh_process(contestant: str, steps: int) -> dict[str, float]:
    """Measure one contestant in its own process, pinned to one core."""
    command = [sys.executable, "-m", "benchmarks.trainer", "--cell", contestant, "--steps", str(steps)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{contestant} failed:\n{done.stderr}")
    result: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return result


def table(rounds: list[dict[str, dict[str, float]]]) -> tuple[str, bool, dict[str, Any]]:
    """Return the table as Markdown, whether every floor is reached, and the numbers."""

    def middle(contestant: str, name: str) -> float:
        return statistics.median(entry[contestant][name] for entry in rounds)

    lines = [
        "| environment | ours, steps/s | Stable-Baselines3, steps/s | ratio | at least |",
        "| --- | --- | --- | --- | --- |",
    ]
    numbers: dict[str, Any] = {"machine": platform.processor() or platform.machine(), "rounds": rounds}
    passed = True
    for where, floor in FLOORS.items():
        ratios = [entry[f"ours {where}"]["rate"] / entry[f"sb3 {where}"]["rate"] for entry in rounds]
        ratio = statistics.median(ratios)
        passed &= ratio >= floor
        numbers[f"{where}_ratio"] = ratio
        title = "the same object" if where == "same" else "ours, and the minigrid package's"
        ours, theirs = middle(f"ours {where}", "rate"), middle(f"sb3 {where}", "rate")
        lines.append(f"| {title} | {ours:,.0f} | {theirs:,.0f} | {ratio:.2f} | {floor} |")
    overhead = middle("ours own", "overhead")
    passed &= overhead <= MOST_OVERHEAD
    numbers["overhead"] = overhead
    lines += [
        "",
        "| part of a step | share |",
        "| --- | --- |",
        *(f"| {part} | {middle('ours own', part):.1%} |" for part in ("network", "replay", "environment")),
        f"| the loop itself (at most {MOST_OVERHEAD:.0%}) | {overhead:.1%} |",
    ]
    return "\n".join(lines), passed, numbers


def rewrite(text: str) -> None:
    """Write the table between the marked lines of the page."""
    rewrite_between(PAGE, BEGIN, END, text)


def main() -> int:
    """Measure, print, and rewrite the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=2_000)
    parser.add_argument("--cell", choices=CONTESTANTS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.cell:
        if hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
        print(json.dumps(measure(options.cell, options.steps)))
        return 0
    rounds, steps = (1, 200) if options.quick else (options.rounds, options.steps)
    results = [{name: in_fresh_process(name, steps) for name in CONTESTANTS} for _ in range(rounds)]
    text, passed, numbers = table(results)
    print(text)
    if not options.quick:
        rewrite(text)
        NUMBERS.write_text(json.dumps(numbers, indent=2) + "\n")
    return 0 if passed or options.quick else 1


if __name__ == "__main__":
    sys.exit(main())
