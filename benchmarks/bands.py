"""What it gives to store images in bands, each distinct one once, on Sokoban.

    python -m benchmarks.bands              two levels, 300,000 random steps: a minute or two
    python -m benchmarks.bands --quick      one level, 5,000 steps, and nothing is kept

Two replays of a million transitions get the same steps: one stores whole images, the other rows of the room
(`frame_stack`, as the trainer's replays on these levels do). They take turns in every measurement.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from backsweep import Mixture, Prioritized, Replay, Topological
from backsweep.tasks import find_task
from backsweep.tasks.make import make_single
from benchmarks import machine

RECORD = Path(__file__).resolve().parent / "results" / "bands.json"
LEVELS = ("sokoban/6x6-2", "sokoban/7x7-2")
CAPACITY, BATCH = 1_000_000, 32
ROUNDS, BATCHES = 15, 100


def measure(level: str, steps: int, seed: int) -> dict[str, Any]:
    """Return times in microseconds and memory in megabytes of both replays."""
    env = make_single(level)
    depths = {"whole": 1, "bands": find_task(level).options().bands}
    replays = {
        name: Replay(
            env.observation_space,
            env.action_space,
            CAPACITY,
            Mixture([(0.8, Topological(predecessors=1)), (0.2, Prioritized())]),
            frame_stack=depth,
        )
        for name, depth in depths.items()
    }
    adding = dict.fromkeys(replays, 0.0)
    random = np.random.default_rng(seed)
    observation, _ = env.reset(seed=seed)
    for step in range(steps):
        action = int(random.integers(env.action_space.n))  # type: ignore[attr-defined]
        successor, reward, terminated, truncated, _ = env.step(action)
        for name in sorted(replays, reverse=bool(step % 2)):
            begun = time.perf_counter()
            replays[name].add(observation, action, float(reward), successor, terminated, truncated)
            adding[name] += time.perf_counter() - begun
        observation = env.reset()[0] if terminated or truncated else successor
    drawing: dict[str, list[float]] = {name: [] for name in replays}
    for turn in range(ROUNDS + 1):
        for name in sorted(replays, reverse=bool(turn % 2)):
            begun = time.perf_counter()
            for _ in range(BATCHES):
                replays[name].sample(BATCH)
            if turn:  # the first one warms up
                drawing[name].append((time.perf_counter() - begun) / BATCHES)
    stats = {name: replay.stats() for name, replay in replays.items()}
    return {
        "level": level,
        "steps": steps,
        "seed": seed,
        "bands_of_an_image": depths["bands"],
        "distinct_images": stats["whole"]["distinct_observations"],
        "distinct_bands": stats["bands"]["distinct_frames"],
        **{
            name: {
                "add_us": round(1e6 * adding[name] / steps, 2),
                "sample_us": round(1e6 * median(drawing[name]), 1),
                "megabytes": round(replay.nbytes / 1e6, 1),
            }
            for name, replay in replays.items()
        },
    }


def main() -> None:
    """Measure, print, and keep the record."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="one level, few steps; keep nothing")
    quick = parser.parse_args().quick
    rows = []
    for level in LEVELS[:1] if quick else LEVELS:
        rows.append(measure(level, 5_000 if quick else 300_000, seed=10_000))
        print(json.dumps(rows[-1]), flush=True)
    if not quick:
        RECORD.write_text(json.dumps({"machine": machine.facts(), "rows": rows}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
