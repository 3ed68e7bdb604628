"""How long single calls take where one state has a million predecessors.

    python -m benchmarks.latency --out benchmarks/results/latency.json --page docs/reliability.md

A star: a million states, each with one step into the same terminal state. It is the worst graph for a sweep, because
all of it is in one list, and because nothing leads to the million states, so that a sweep that has reached them finds
nothing more. Single adds that overwrite the oldest rows come between the batches, so that the graph changes meanwhile.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from backsweep import PseudoTerminals, Replay, Topological
from backsweep.lab.report.marked_text import rewrite_between
from backsweep.samplers import Sampler
from benchmarks.machine import facts, measured_on

LANES = 1_000
BATCH = 64
ADDS = 4
"""Single adds before each batch."""
SAMPLERS: dict[str, Sampler] = {
    "predecessors=3": Topological(predecessors=3),
    "predecessors=None": Topological(predecessors=None),
    'draw="visits"': Topological(predecessors=3, draw="visits"),
    "start=PseudoTerminals()": Topological(predecessors=3, start=PseudoTerminals()),
    "stitch=False, predecessors=None": Topological(stitch=False, predecessors=None),
}
BEGIN, END = "<!-- latency: begin -->", "<!-- latency: end -->"


def star(sampler: Sampler, edges: int) -> Replay:
    """Return a full replay in which `edges` states lead to state 0."""
    rows = edges + LANES  # some states come twice, so that visits differ
    replay = Replay(gym.spaces.Discrete(edges + 1), gym.spaces.Discrete(2), rows, sampler, num_envs=LANES)
    for first in range(0, rows, LANES):
        add(replay, (first + np.arange(LANES)) % edges + 1)
    return replay


def add(replay: Replay, states: Any, mask: Any = None) -> None:
    """Add a step from each of the states to state 0, which ends the episode."""
    ones, zeros = np.ones(LANES, np.bool_), np.zeros(LANES, np.int64)
    rewards = (states % 7).astype(np.float64)
    replay.add(states, zeros, rewards, zeros, ones, ~ones, mask=mask)


def measure(sampler: Sampler, edges: int, calls: int) -> dict[str, float]:
    """Return the median, the 99th percentile and the largest time of a batch and of an add, in microseconds.

    On two clocks: on a machine with other work the wall's shows that work too.
    """
    star(sampler, LANES).sample(BATCH)  # compiles
    replay = star(sampler, edges)
    one = np.zeros(LANES, np.bool_)
    one[0] = True
    batches, adds = np.zeros((calls, 2)), np.zeros((calls * ADDS, 2))
    for call in range(calls):
        for number in range(ADDS):
            states = np.full(LANES, (call * ADDS + number) * 7919 % edges + 1)
            adds[call * ADDS + number] = timed(lambda states=states: add(replay, states, one))  # type: ignore[misc]
        batches[call] = timed(lambda: replay.sample(BATCH))
    found = {}
    for name, taken in (("sample", batches), ("add", adds)):
        for clock, times in zip(("wall", "own"), taken.T, strict=True):
            found[f"{name}_{clock}_median"] = round(1e6 * float(np.median(times)), 1)
            found[f"{name}_{clock}_p99"] = round(1e6 * float(np.quantile(times, 0.99)), 1)
            found[f"{name}_{clock}_largest"] = round(1e6 * float(times.max()), 1)
    return found


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """Return the seconds on the wall clock and on the thread's own clock, which excludes other processes."""
    wall, own = time.perf_counter(), time.thread_time()
    work()
    return time.perf_counter() - wall, time.thread_time() - own


def table(results: dict[str, Any]) -> str:
    """Return the results as Markdown."""
    lines = ["| `Topological` with | sample(64): median | p99 | p99 on the wall clock | add: p99 |"]
    lines.append("| --- | --- | --- | --- | --- |")
    for name, found in results["cells"].items():
        keys = "sample_own_median", "sample_own_p99", "sample_wall_p99", "add_own_p99"
        lines.append(f"| `{name}` | {' | '.join(_shown(found[key]) for key in keys)} |")
    caption = f"{results['edges']:,} incoming edges, {results['calls']:,} batches with {ADDS} adds before each."
    return "\n".join([*lines, "", f"{caption} {measured_on(results['machine'])}"])


def _shown(microseconds: float) -> str:
    return f"{microseconds / 1000:.1f} ms" if microseconds >= 1000 else f"{microseconds:.0f} us"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the table, and write the numbers and the page where asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--edges", type=int, default=1_000_000)
    parser.add_argument("--calls", type=int, default=20_000, help="batches; more than edges / 64 cover a whole sweep")
    parser.add_argument("--only", nargs="+", choices=list(SAMPLERS), default=list(SAMPLERS), metavar="SETTING")
    parser.add_argument("--out", type=Path, help="write the numbers here as JSON")
    parser.add_argument("--page", type=Path, help="write the table between the marked lines of this page")
    asked = parser.parse_args(arguments)
    machine = facts()
    cells = {name: measure(SAMPLERS[name], asked.edges, asked.calls) for name in asked.only}
    results = {"machine": machine, "edges": asked.edges, "calls": asked.calls, "cells": cells}
    text = table(results)
    print(text)
    if asked.out is not None:
        asked.out.write_text(json.dumps(results, indent=1) + "\n")
    if asked.page is not None:
        rewrite_between(asked.page, BEGIN, END, text)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
