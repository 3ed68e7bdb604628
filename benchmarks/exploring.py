"""What a random action by the graph costs, against a uniform one of Gymnasium.

    python -m benchmarks.exploring              measure, print, rewrite the table of docs/performance-planning.md
    python -m benchmarks.exploring --quick      a short measurement, and nothing is rewritten

Before each timed call of `Replay.explore` one row is added, untimed, as in a training loop: the call also takes that
row into the model.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from backsweep import GraphValues, Replay
from benchmarks.machine import facts
from benchmarks.records import TITLES, Block, Records, keep, kind_here
from benchmarks.report import caption
from benchmarks.timing import Effort, compare, timed_calls

ROOT = Path(__file__).resolve().parent.parent
NAME = "exploring"
STATES, ACTIONS, ROWS = 10_000, 6, 100_000


def measure(kind: str, effort: Effort) -> dict[str, Any]:
    """Compare `explore` with a sample of the action space, in a full replay of states that repeat."""
    random = np.random.default_rng(0)
    images = kind == "obs40"
    seen = random.integers(0, 256, (STATES, 40, 40, 3), np.uint8) if images else np.arange(STATES)
    space = gym.spaces.Box(0, 255, (40, 40, 3), np.uint8) if images else gym.spaces.Discrete(STATES)
    replay = Replay(space, gym.spaces.Discrete(ACTIONS), ROWS, values=GraphValues())
    place, actions = 0, gym.spaces.Discrete(ACTIONS, seed=0)

    def step(action: int) -> None:
        nonlocal place
        after = (place + (action if action < 3 else 0) + (1 if action == 5 else 0)) % STATES
        ends = random.random() < 0.01
        replay.add(seen[place], action, -1.0, seen[after], ends, False)
        place = int(random.integers(STATES)) if ends else after

    def block(count: int) -> list[int]:
        times, clock = [], time.perf_counter_ns
        for _ in range(count):
            step(int(random.integers(ACTIONS)))
            observation, unit = seen[place], random.random()
            start = clock()
            replay.explore(observation, unit)
            times.append(clock() - start)
        return times

    for _ in range(ROWS):
        step(int(random.integers(ACTIONS)))
    return {"observation": kind, **compare(block, lambda count: timed_calls(actions.sample, count), effort)}


def table(records: Records) -> str:
    """Return the results as markdown."""
    lines = ["| | processor | `explore` | 99th percentile | `action_space.sample()` |"]
    lines.append("| --- | --- | ---: | ---: | ---: |")
    for kind, title in (("obs40", "40x40x3 images"), ("number", "states as numbers")):
        for processor, record in records.items():
            (one,) = (call for call in record["calls"] if call["observation"] == kind)
            lines.append(
                f"| {title} | {processor} | {one['median_us']:.1f} us | {one['p99_us']:.1f} us | "
                f"{one['floor_median_us']:.1f} us |"
            )
    return "\n\n".join(["\n".join(lines), *(caption(record["machine"]) for record in records.values())])


BLOCKS = (
    Block(
        NAME,
        ROOT / "docs" / "performance-planning.md",
        "<!-- exploring: begin -->",
        "<!-- exploring: end -->",
        table,
    ),
)


def main() -> int:
    """Measure, print, and rewrite the page."""
    parser = argparse.ArgumentParser(description="What a random action by the graph costs.")
    parser.add_argument("--quick", action="store_true", help="short, and nothing is rewritten")
    quick = parser.parse_args().quick
    effort = Effort(20, 0.1, 3) if quick else Effort(200, 5.0)
    machine = {**facts(), "quick": quick}
    record = {"machine": machine, "calls": [measure(kind, effort) for kind in ("obs40", "number")]}
    print(table({TITLES[kind_here()]: record}))
    if not quick:
        keep(NAME, record)
        BLOCKS[0].write()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
