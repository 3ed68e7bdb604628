"""How long loading a saved replay takes, with and without the check of its contents.

python -m benchmarks.loading --out benchmarks/results/loading.json --page docs/reliability.md

With --real-time the loads have both cores to themselves on a machine that other processes use too; root may ask for it.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import gymnasium as gym
import numpy as np

from backsweep import GraphValues, Mixture, Prioritized, Replay, Topological
from backsweep.graph.graph import Graph
from backsweep.lab.report.marked_text import rewrite_between
from backsweep.planning.planner import Planner
from backsweep.snapshot.saved_component import CheckStep
from backsweep.store.store import Store
from benchmarks.machine import facts, measured_on

LANES = 100
PARTS: tuple[Any, ...] = (Store, Graph, Planner)
SPACES: dict[str, gym.Space[Any]] = {
    "numbers": gym.spaces.Box(-1e6, 1e6, (4,), np.float32),
    "images": gym.spaces.Box(0, 255, (40, 40, 3), np.uint8),
}
CELLS = {  # name: space, states, rows, whether with graph values
    "four numbers, 100,000 states": ("numbers", 100_000, 1_000_000, False),
    "four numbers, 100,000 states, graph values": ("numbers", 100_000, 1_000_000, True),
    "images 40x40x3, 10,000 states": ("images", 10_000, 1_000_000, False),
    "images 40x40x3, 100,000 states": ("images", 100_000, 200_000, False),
}
BEGIN, END = "<!-- loading: begin -->", "<!-- loading: end -->"


def filled(space: gym.Space[Any], states: int, rows: int, with_values: bool) -> Replay:
    """Return a replay of a random walk that is 1.25 times as long as its capacity."""
    sampler = Mixture([(0.5, Topological()), (0.5, Prioritized())])
    values = GraphValues() if with_values else None
    replay = Replay(space, gym.spaces.Discrete(4), rows, sampler, num_envs=LANES, values=values)
    rng = np.random.default_rng(0)
    state = rng.integers(0, states, LANES)
    pictures = rng.integers(0, 255, (states, *(space.shape or ()))).astype(space.dtype)
    for _ in range(rows * 5 // 4 // LANES):
        following = (state + rng.integers(-3, 4, LANES)) % states
        ends = rng.random(LANES) < 0.02
        terminated = ends & (following % 2 == 0)
        actions, rewards = rng.integers(0, 4, LANES), rng.random(LANES)
        replay.add(pictures[state], actions, rewards, pictures[following], terminated, ends & ~terminated)
        state = np.where(ends, rng.integers(0, states, LANES), following)
    if with_values:
        replay.renew_values(lambda seen: np.zeros((len(seen), 4)))
    replay.sample(64)
    return replay


@contextlib.contextmanager
def sizes_only() -> Iterator[None]:
    """Leave out every step of the check but those of sizes."""
    with contextlib.ExitStack() as stack:
        for owner in PARTS:
            stack.enter_context(mock.patch.object(owner, "checks", _first_step(owner.checks)))
        yield


def _first_step(checks: Callable[[Any], tuple[CheckStep, ...]]) -> Callable[[Any], tuple[CheckStep, ...]]:
    return lambda owner: checks(owner)[:1]


def load_once(folder: str, check: bool) -> tuple[float, float]:
    """Return the seconds that one load takes on the wall clock and of all threads together."""
    with contextlib.nullcontext() if check else sizes_only():
        wall, used = time.perf_counter(), time.process_time()
        Replay.load(folder)
        return time.perf_counter() - wall, time.process_time() - used


@contextlib.contextmanager
def first_in_line() -> Iterator[None]:
    """Run this thread, and those that it starts, before all others on the machine."""
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    try:
        yield
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def measure(replay: Replay, repeats: int, real_time: bool) -> dict[str, float]:
    """Return how long loading takes with and without the check: the best wall clock, the median of both threads."""
    with tempfile.TemporaryDirectory() as folder:
        replay.save(folder)
        load_once(folder, True)  # compiles, and brings the files into the system's cache
        checked, bare = [], []
        for _ in range(repeats):
            with first_in_line() if real_time else contextlib.nullcontext():
                checked.append(load_once(folder, True))
                bare.append(load_once(folder, False))
        size = sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())
    found = {"megabytes": size / 1e6}
    for name, times in (("checked", checked), ("bare", bare)):
        walls, used = zip(*times, strict=True)
        found |= {f"{name}_wall": min(walls), f"{name}_used": statistics.median(used)}
    return found


def table(results: dict[str, Any]) -> str:
    """Return the results as Markdown."""
    lines = [
        "| replay | folder | load | without the check | the check adds | processor time | of which check |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name, found in results["cells"].items():
        cells = [f"{found['rows']:,} rows, {name}", f"{found['megabytes']:.0f} MB"]
        for kind in ("wall", "used"):
            whole, bare = found[f"checked_{kind}"], found[f"bare_{kind}"]
            cells += [_milliseconds(whole), *([_milliseconds(bare)] if kind == "wall" else [])]
            cells += [f"{_milliseconds(whole - bare)}, {(whole - bare) / whole:.0%}"]
        lines.append(f"| {' | '.join(cells)} |")
    caption = (
        f"Of {results['repeats']} loads each: the shortest on the wall clock, and the median of the processor time of "
        f"both threads. Files in the system's cache.{' Loads with real-time priority.' if results['real_time'] else ''}"
    )
    return "\n".join([*lines, "", f"{caption} {measured_on(results['machine'])}"])


def _milliseconds(seconds: float) -> str:
    return f"{1000 * seconds:.0f} ms"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the table, and write the numbers and the page where asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--divide", type=int, default=1, help="divide the numbers of rows and states by this")
    parser.add_argument("--real-time", action="store_true", help="load before all other processes get their turn")
    parser.add_argument("--out", type=Path, help="write the numbers here as JSON")
    parser.add_argument("--page", type=Path, help="write the table between the marked lines of this page")
    asked = parser.parse_args(arguments)
    machine, cells = facts(), {}
    for name, (kind, states, rows, with_values) in CELLS.items():
        sizes = states // asked.divide, rows // asked.divide
        replay = filled(SPACES[kind], *sizes, with_values)
        cells[name] = {"rows": sizes[1], **measure(replay, asked.repeats, asked.real_time)}
    results = {"machine": machine, "repeats": asked.repeats, "real_time": asked.real_time, "cells": cells}
    text = table(results)
    print(text)
    if asked.out is not None:
        asked.out.write_text(json.dumps(results, indent=1) + "\n")
    if asked.page is not None:
        rewrite_between(asked.page, BEGIN, END, text)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
