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
  control   both step CartPole and train two hidden layers of 256, at a learning rate of 1e-3; the rest is the same
  overhead  of the loop: what is left of a step when the time inside environment, network and replay is taken away
  threads   ours with two torch threads and with one, in turns in one process that may use all cores, by the clock
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.machine import facts, measured_on
from benchmarks.records import TITLES, Block, Records, keep, kind_here

ROOT = Path(__file__).resolve().parent.parent
NAME = "trainer"

WARMUP = 1_000
THREADS = "ours threads"
CONTESTANTS = ("ours same", "sb3 same", "ours own", "sb3 own", "ours control", "sb3 control", THREADS)
FLOORS = {"same": 2.0, "own": 2.5, "control": 1.5}
ENVIRONMENTS = {
    "same": "DoorKey, the same object",
    "own": "DoorKey, ours and the minigrid package's",
    "control": "CartPole, the same object",
}
MOST_OVERHEAD = 0.10
HIDDEN = (256, 256)


def our_fleet(where: str, steps: int) -> Any:
    """Return a fleet of one run, before its warm-up."""
    from backsweep.agent import run_config
    from backsweep.agent.fleet.fleet import Fleet

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
    if where == "control":
        config = run_config(
            env="CartPole-v1", **settings | {"learning_rate": 1e-3, "convolutions": (), "linear": HIDDEN}
        )
    elif where == "own":
        config = run_config("minigrid/doorkey", exact=False, **settings)
    else:
        import backsweep.tasks  # noqa: F401 - registers the id

        config = run_config(env="backsweep/DoorKey-v0", **settings)
    return Fleet([config])


def turns_of(fleet: Any) -> Callable[[int], None]:
    """Return a function that takes that many steps of a fleet, which is past its warm-up."""
    from backsweep.agent.fleet.loop import Clock
    from backsweep.agent.fleet.plain_engine import PlainEngine

    clock, engine = Clock(), PlainEngine(fleet)

    def take(steps: int) -> None:
        for _ in range(steps):
            engine.advance(1, clock)
        for _, error in engine.failures():
            raise error

    take(WARMUP + 200)
    return take


def measure_threads(steps: int) -> dict[str, float]:
    """Return our steps per second by the clock with one torch thread and with two, and the ratio, in turns."""
    import torch

    take = turns_of(our_fleet("own", steps))
    rates: dict[int, list[float]] = {1: [], 2: []}
    for _ in range(5):
        for threads, found in rates.items():
            torch.set_num_threads(threads)
            take(20)
            start = time.perf_counter()
            take(steps // 5)
            found.append(steps // 5 / (time.perf_counter() - start))
    one, two = (statistics.median(found) for found in rates.values())
    gain = statistics.median(two / one for one, two in zip(rates[1], rates[2], strict=True))
    return {"one": one, "two": two, "gain": gain}


def measure_ours(where: str, steps: int) -> dict[str, float]:
    """Return our steps per second, and how a step's time is spent."""
    import torch

    torch.set_num_threads(1)
    fleet = our_fleet(where, steps)
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

    take = turns_of(fleet)
    for part in spent:
        spent[part] = 0.0
    start = time.process_time()
    take(steps)
    seconds = time.process_time() - start
    shares = {part: value / seconds for part, value in spent.items()}
    return {"rate": steps / seconds, **shares, "overhead": 1.0 - sum(shares.values())}


def measure_sb3(where: str, steps: int) -> dict[str, float]:
    """Return Stable-Baselines3's steps per second."""
    import gymnasium as gym
    import torch
    from stable_baselines3 import DQN

    torch.set_num_threads(1)
    control = where == "control"
    names = {"same": "backsweep/DoorKey-v0", "control": "CartPole-v1"}
    env = package_env() if where == "own" else gym.make(_registered(names[where]))
    marks: dict[int, float] = {}

    def mark(values: dict[str, Any], _: dict[str, Any]) -> bool:
        step = values["self"].num_timesteps
        if step in (WARMUP + 200, WARMUP + 200 + steps):
            marks[step] = time.process_time()
        return True

    model = DQN(
        "MlpPolicy" if control else "CnnPolicy",
        env,
        learning_rate=1e-3 if control else 3e-4,
        policy_kwargs={"net_arch": list(HIDDEN)} if control else None,
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
    if contestant == THREADS:
        return measure_threads(steps)
    who, where = contestant.split()
    function: Callable[[str, int], dict[str, float]] = measure_ours if who == "ours" else measure_sb3
    return function(where, steps)


def in_fresh_process(contestant: str, steps: int) -> dict[str, float]:
    """Measure one contestant in its own process, pinned to one core."""
    command = [sys.executable, "-m", "benchmarks.trainer", "--cell", contestant, "--steps", str(steps)]
    threads = str(2 if contestant == THREADS else 1)
    environment = {**os.environ, "OMP_NUM_THREADS": threads, "MKL_NUM_THREADS": threads}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{contestant} failed:\n{done.stderr}")
    result: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return result


def middle(record: dict[str, Any], contestant: str, name: str) -> float:
    """Return the median of a number over the rounds."""
    found: list[float] = [entry[contestant][name] for entry in record["rounds"]]
    return statistics.median(found)


def ratio_of(record: dict[str, Any], where: str) -> float:
    """Return how many times as fast as Stable-Baselines3 we are: the median of the rounds' ratios."""
    pairs = [(entry[f"ours {where}"]["rate"], entry[f"sb3 {where}"]["rate"]) for entry in record["rounds"]]
    ratios: list[float] = [ours / theirs for ours, theirs in pairs]
    return statistics.median(ratios)


def passed(record: dict[str, Any]) -> bool:
    """Return whether every floor is reached."""
    fast = all(ratio_of(record, where) >= floor for where, floor in FLOORS.items())
    return fast and middle(record, "ours own", "overhead") <= MOST_OVERHEAD


def table(records: Records) -> str:
    """Return the tables as Markdown: the ratios, and where a step's time goes."""
    lines = [
        "| environment | processor | ours, steps/s | Stable-Baselines3, steps/s | ratio | at least |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for where, floor in FLOORS.items():
        for processor, record in records.items():
            if f"ours {where}" not in record["rounds"][0]:
                continue
            ours, theirs = middle(record, f"ours {where}", "rate"), middle(record, f"sb3 {where}", "rate")
            ratio = ratio_of(record, where)
            short = " **misses**" * (ratio < floor)
            lines.append(
                f"| {ENVIRONMENTS[where]} | {processor} | {ours:,.0f} | {theirs:,.0f} | {ratio:.2f}{short} | {floor} |"
            )
    lines += ["", f"| part of a step | {' | '.join(records)} |", "| --- |" + " --- |" * len(records)]
    names = {part: part for part in ("network", "replay", "environment")}
    for part, title in {**names, "overhead": f"the loop itself (at most {MOST_OVERHEAD:.0%})"}.items():
        shares = (f"{middle(record, 'ours own', part):.1%}" for record in records.values())
        lines.append(f"| {title} | {' | '.join(shares)} |")
    gains = {
        processor: middle(record, THREADS, "gain")
        for processor, record in records.items()
        if THREADS in record["rounds"][0]
    }
    if gains:
        found = ", ".join(f"{gain:.2f} times ({processor})" for processor, gain in gains.items())
        lines += [
            "",
            f"With two torch threads a run takes {found} as many steps a second as with one, if two cores are idle.",
        ]
    return "\n\n".join(["\n".join(lines), *(measured_on(record["machine"]) for record in records.values())])


BLOCKS = (
    Block(
        NAME,
        ROOT / "docs" / "performance-training.md",
        "<!-- benchmarks.trainer begin -->",
        "<!-- benchmarks.trainer end -->",
        table,
    ),
)


def main() -> int:
    """Measure, print, and rewrite the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=2_000)
    parser.add_argument("--cell", choices=CONTESTANTS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.cell:
        if hasattr(os, "sched_setaffinity") and options.cell != THREADS:
            os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
        print(json.dumps(measure(options.cell, options.steps)))
        return 0
    rounds, steps = (1, 200) if options.quick else (options.rounds, options.steps)
    machine = facts()
    results = [{name: in_fresh_process(name, steps) for name in CONTESTANTS} for _ in range(rounds)]
    record = {"machine": machine, "rounds": results}
    print(table({TITLES[kind_here()]: record}))
    if not options.quick:
        keep(NAME, record)
        BLOCKS[0].write()
    return 0 if passed(record) or options.quick else 1


if __name__ == "__main__":
    sys.exit(main())
