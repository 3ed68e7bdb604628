"""What a random action by the graph costs, against a uniform one of Gymnasium.

    python -m benchmarks.exploring              measure, print, rewrite the table of docs/performance-planning.md
    python -m benchmarks.exploring --quick      a short measurement, and nothing is rewritten

Before each timed call of `Replay.explore` one row is added, untimed, as in a training loop: the call also takes that
row into the model.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from backsweep import GraphValues, Replay
from backsweep.lab.report.marked_text import rewrite_between
from benchmarks.machine import facts
from benchmarks.report import caption
from benchmarks.timing import Effort, compare, timed_calls

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "performance-planning.md"
NUMBERS = ROOT / "benchmarks" / "results" / "exploring.json"
BEGIN, END = "<!-- exploring: begin -->", "<!-- exploring: end -->"
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


def table(results: dict[str, Any]) -> str:
    """Return the results as markdown."""
    lines = ["| | `explore` | 99th percentile | `action_space.sample()` |", "| --- | ---: | ---: | ---: |"]
    for one in results["calls"]:
        what = "40x40x3 images" if one["observation"] == "obs40" else "states as numbers"
        lines.append(
            f"| {what} | {one['median_us']:.1f} us | {one['p99_us']:.1f} us | {one['floor_median_us']:.1f} us |"
        )
    return "\n".join([*lines, "", caption(results["machine"])])


def main() -> int:
    """Measure, print, and rewrite the page."""
    parser = argparse.ArgumentParser(description="What a random action by the graph costs.")
    parser.add_argument("--quick", action="store_true", help="short, and nothing is rewritten")
    quick = parser.parse_args().quick
    effort = Effort(20, 0.1, 3) if quick else Effort(200, 5.0)
    machine = {**facts(), "quick": quick}
    results = {"machine": machine, "calls": [measure(kind, effort) for kind in ("obs40", "number")]}
    print(table(results))
    if not quick:
        rewrite_between(PAGE, BEGIN, END, table(results))
        NUMBERS.write_text(json.dumps(results, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
