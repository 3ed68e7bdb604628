"""The cost of viewing: the page of a large graph, and a run that is watched.

  python -m benchmarks.view                 measure, print the table, rewrite it in docs/see_your_graph.md
  python -m benchmarks.view --quick         the same with short measurements, and nothing is rewritten

page   the graph of 100,000 states: seconds to make the page, its size, and seconds until Chromium has drawn it
         (only where Playwright finds a Chromium; set CHROMIUM to name one)
live   a run of graph values on DoorKey, watched by a process that asks for news every second as the page does,
         against the same run that nobody watches, in turns. The cost is the processor time of the training
         process, all its threads included, so that what else the machine does is not counted. The ratio is the
         median of the rounds' ratios.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.machine import facts, measured_on
from benchmarks.records import TITLES, Block, Records, keep, kind_here

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "see_your_graph.md"
NAME = "view"
BEGIN, END = "<!-- benchmarks.view begin -->", "<!-- benchmarks.view end -->"
MOST_SLOWER = 0.03
SOFTWARE_GL = ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--ignore-gpu-blocklist"]
TASK = "minigrid/doorkey"


def random_graph(states: int) -> Any:
    """Return a replay whose graph has about that many states: trees of random steps towards ten ends."""
    import gymnasium as gym
    import numpy as np

    from backsweep import Replay, Topological

    generator = np.random.default_rng(0)
    replay = Replay(gym.spaces.Discrete(states), gym.spaces.Discrete(3), 3 * states, Topological())
    nearer = (np.arange(states) * 0.9).astype(np.int64)
    aside = generator.integers(states, size=states)
    starts = generator.permutation(np.arange(10, states))
    state, episode = int(starts[0]), 1
    for draw in generator.random(3 * states).tolist():
        following = int(nearer[state]) if draw < 0.7 else int(aside[state])
        ended = following < 10
        replay.add(state, int(draw >= 0.7), float(ended), following, ended, False)
        if ended:
            state = int(starts[episode % len(starts)])
            episode += 1
        else:
            state = following
    return replay


def measure_page(states: int) -> dict[str, float]:
    """Make and open the page of a large graph."""
    replay = random_graph(states)
    random_graph(500).view()  # compiles what is not compiled yet
    began = time.process_time()
    page = replay.view(title="large")
    numbers: dict[str, float] = {"make_s": time.process_time() - began, "states": page.words["shown"]}
    with tempfile.TemporaryDirectory() as folder:
        path = page.save(Path(folder) / "graph.html")
        numbers["megabytes"] = path.stat().st_size / 1e6
        opened = _open_page(path)
    return numbers if opened is None else {**numbers, "open_s": opened}


def _open_page(path: Path) -> float | None:
    """Return the seconds until Chromium has drawn the page, None without one."""
    with contextlib.suppress(ImportError):
        from playwright.sync_api import sync_playwright

        with sync_playwright() as playwright:
            place = os.environ.get("CHROMIUM") or shutil.which("chromium") or playwright.chromium.executable_path
            if not Path(place).exists():
                return None
            browser = playwright.chromium.launch(executable_path=place, args=SOFTWARE_GL)
            opened = browser.new_page(viewport={"width": 1280, "height": 800})
            began = time.monotonic()
            opened.goto(path.as_uri())
            opened.wait_for_function("document.getElementById('waiting').hidden", timeout=120_000)
            opened.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
            seconds = time.monotonic() - began
            browser.close()
            return seconds
    return None


def train_once(folder: Path, steps: int, port: int | None) -> float:
    """Return the processor time per step of a run in milliseconds, watched if a port is given."""
    from backsweep.agent import run_config, train

    config = run_config(TASK, method="graph", steps=steps, warmup_steps=500, evaluation_interval=steps)
    began = time.process_time()
    train(config, folder, live=port is not None, live_port=port or 0, final_checkpoint=False, quiet=True)
    return (time.process_time() - began) / steps * 1e3


WATCHER = """
import json, sys, time, urllib.request
known = 0
while True:
    try:
        with urllib.request.urlopen(sys.argv[1] + "state") as answer:
            version = json.load(answer)["graph"]
        if version != known:
            with urllib.request.urlopen(sys.argv[1] + "graph") as answer:
                answer.read()
            known = version
            print("picture", flush=True)
    except OSError:
        pass
    time.sleep(1.0)
"""
"""Requests the state every second, and each new frame, like the page; runs in its own process."""


def measure_live(rounds: int, steps: int) -> dict[str, float]:
    """Compare watched runs with unwatched ones, in turns; the first of each is not counted."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    ratios = []
    command = [sys.executable, "-c", WATCHER, f"http://127.0.0.1:{port}/"]
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile("w+") as seen:
        watcher = subprocess.Popen(command, stdout=seen)
        try:
            for number in range(rounds + 1):
                order = (False, True) if number % 2 else (True, False)
                length = steps if number else min(steps, 1_000)
                cost = {
                    watched: train_once(Path(folder) / f"{number}-{watched}", length, port if watched else None)
                    for watched in order
                }
                print(f"round {number}: {cost[True]:.3f} ms a step watched, {cost[False]:.3f} ms not", flush=True)
                ratios.append(cost[True] / cost[False])
        finally:
            watcher.kill()
            watcher.wait()
        seen.seek(0)
        pictures = len(seen.readlines()) / (rounds + 1)
    return {"ratio": statistics.median(ratios[1:]), "rounds": rounds, "steps": steps, "pictures": pictures}


def table(records: Records) -> str:
    """Return the table for the documentation, with a column for each kind of processor."""
    rows: dict[str, list[str]] = {}
    captions = []
    for numbers in records.values():
        page, live = numbers["page"], numbers["live"]
        drawn = f"{page['open_s']:.1f} s" if "open_s" in page else "-"
        for what, cost in {
            f"page of {page['states']:,.0f} states": f"made in {page['make_s']:.1f} s, {page['megabytes']:.1f} MB",
            "the same page, drawn in Chromium without a GPU": drawn,
            f"watching a run, at most {1 + MOST_SLOWER:.2f} x": f"{live['ratio']:.3f} x the processor time of a step",
        }.items():
            rows.setdefault(what, []).append(cost)
        captions.append(
            f"The run: DoorKey, graph values, {live['steps']:,.0f} steps, {live['rounds']:.0f} rounds, "
            f"{live['pictures']:.0f} pictures of the graph. {measured_on(numbers['machine'])}"
        )
    lines = [f"| what | {' | '.join(records)} |", "| --- |" + " --- |" * len(records)]
    lines += [f"| {what} | {' | '.join(costs)} |" for what, costs in rows.items()]
    return "\n\n".join(["\n".join(lines), *captions])


BLOCKS = (Block(NAME, PAGE, BEGIN, END, table),)


def main() -> int:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="short measurements; rewrite nothing")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of the comparison (default: 5)")
    parser.add_argument("--steps", type=int, default=6_000, help="steps of each run (default: 6000)")
    options = parser.parse_args()
    quick = options.quick
    numbers: dict[str, Any] = {
        "machine": facts(),
        "page": measure_page(2_000 if quick else 100_000),
        "live": measure_live(1 if quick else options.rounds, 1_500 if quick else options.steps),
    }
    print(table({TITLES[kind_here()]: numbers}))
    if not quick:
        keep(NAME, numbers)
        BLOCKS[0].write()
    return 0 if numbers["live"]["ratio"] <= 1 + MOST_SLOWER else 1


if __name__ == "__main__":
    sys.exit(main())
