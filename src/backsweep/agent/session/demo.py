"""The trainer's part of the demonstration: every method on a chain, and two of them on a small MiniGrid task."""

from __future__ import annotations

import multiprocessing
import os
import tempfile
from pathlib import Path
from typing import Any

from backsweep.agent.config import RunConfig
from backsweep.agent.defaults import run_config
from backsweep.agent.methods import METHOD_NAMES
from backsweep.agent.session.records import read_records
from backsweep.agent.session.records.rows import EvaluationRecord
from backsweep.agent.session.training import train

Curve = list[tuple[int, float]]
CHAIN_STEPS = 1_500
GRID_STEPS = 30_000
GRID_METHODS = ("ter", "uer")


def chain_config(method: str) -> RunConfig:
    """Return a run of a second or two on the chain."""
    return run_config(
        "nchain-20", method=method, steps=CHAIN_STEPS, evaluation_interval=50, evaluation_episodes=5, probe_size=16
    )


def grid_config(method: str) -> RunConfig:
    """Return a run of a minute or two on DoorKey, made smaller: a room of 5x5, images of 20x20, a small network."""
    return run_config(
        "minigrid/doorkey",
        method=method,
        task_options={"size": 5, "reward": "package", "image_size": 20},
        convolutions=((32, 4, 4), (32, 3, 1)),
        linear=(128,),
        steps=GRID_STEPS,
        warmup_steps=2_000,
        epsilon_steps=15_000,
        epsilon_end=0.05,
        target_interval=250,
        learning_rate=5e-4,
        discount=0.97,
        capacity=GRID_STEPS,
        evaluation_interval=1_500,
        evaluation_episodes=50,
        probe_size=64,
    )


def evaluations(folder: Path, field: str) -> Curve:
    """Return a run's curve of one field of its evaluations."""
    records = read_records(folder, "evaluation")
    return [(record.step, getattr(record, field)) for record in records if isinstance(record, EvaluationRecord)]


def train_quietly(config: dict[str, Any], folder: str) -> None:
    """Train one run without a word: what a process of its own does."""
    train(RunConfig.from_json(config), folder, quiet=True, checkpoint_interval=0)


def run(out: Path) -> Path:
    """Train everything, print how it went, and draw the curves; return the picture's path."""
    with tempfile.TemporaryDirectory(prefix="backsweep-demo-") as place:
        root = Path(place)
        print(f"\nEvery method learns the chain, {CHAIN_STEPS:,} steps each: mean |Q - Q*| over all states, at the end")
        chain = {}
        for method in METHOD_NAMES:
            train(chain_config(method), root / method, quiet=True, checkpoint_interval=0)
            chain[method] = evaluations(root / method, "value_error")
            print(f"  {method:14} {chain[method][-1][1]:.4f}", flush=True)

        print(
            f"\nTwo methods learn DoorKey in a room of 5x5 from images, {GRID_STEPS:,} steps each (about two minutes)"
        )
        processes = {}
        context = multiprocessing.get_context("spawn")
        os.environ.setdefault("OMP_NUM_THREADS", "1")
        for method in GRID_METHODS:
            folder = root / f"grid-{method}"
            processes[method] = context.Process(target=train_quietly, args=(grid_config(method).to_json(), str(folder)))
            processes[method].start()
        grid = {}
        for method, process in processes.items():
            process.join()
            if process.exitcode:
                raise OSError(f"the run of {method} ended with exit code {process.exitcode}")
            grid[method] = evaluations(root / f"grid-{method}", "mean_return")
            print(f"  {method:14} mean return {grid[method][-1][1]:.3f} at the end (0 never solved, 1 at once)")
    path = out / "curves.png"
    draw(chain, grid, path)
    print(f"\nThe curves: {path}")
    print("Next: docs/training.md, or at once: backsweep train minigrid/doorkey --method ter --steps 200_000")
    return path


def draw(chain: dict[str, Curve], grid: dict[str, Curve], path: Path) -> None:
    """Draw both comparisons side by side."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    colours = plt.get_cmap("tab20")
    for index, (method, curve) in enumerate(chain.items()):
        left.plot(*zip(*curve, strict=True), label=method, color=colours(index), linewidth=1.5)
    left.set_title("Chain of 20 states, all methods")
    left.set_xlabel("environment steps (updates begin at 1,000)")
    left.set_ylabel("mean |Q - Q*|")
    left.set_xlim(900, CHAIN_STEPS)
    left.legend(fontsize=7, ncols=2)
    for method, curve in grid.items():
        right.plot(*zip(*curve, strict=True), label=method, marker="o", markersize=3)
    right.set_title("DoorKey 5x5 from images")
    right.set_xlabel("environment steps")
    right.set_ylabel("mean return of 50 episodes")
    right.set_ylim(-0.02, 1.02)
    right.legend()
    for panel in (left, right):
        panel.spines[["top", "right"]].set_visible(False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    plt.close(figure)
