"""The demo: three methods learn a small task, and planning on the graph of its states.

This process only reports and draws. `demo_work` has what its worker processes do, and only they import torch.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
import time
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backsweep.agent.palette import METHODS as PALETTE
from backsweep.agent.palette import pyplot
from backsweep.agent.session.records import EvaluationRecord, read_records
from backsweep.cores import usable_cores
from backsweep.jit.compilation import announce_first_compilation, announced_elsewhere, is_compiled

Curve = list[tuple[int, float]]
Runs = list[tuple[str, int]]
"""Methods and seeds."""
METHODS = {name: PALETTE[name].title for name in ("graph", "ter", "uer")}
ORDER = ("ter", "uer", "graph")
"""How runs are divided among workers. The ends differ most in what they compile: with two workers, one compiles the
sweep and the other graph values."""
SEEDS = (0, 1, 2)
STEPS = 12_000
SOLVED = 0.9
NOT_YET = "not yet"
REPORT_EVERY = 10.0
"""Seconds between lines that say how far the runs are."""
COMPILED = {"compile_learning": "follow_and_explore", "compile_adding": "add_arguments"}
"""What is compiled before the training, in two processes, and the kernel that each compiles last."""


def run(out: Path, steps: int = STEPS) -> Path:
    """Train all methods, print and draw the results; return the picture's path."""
    pyplot("report")  # without matplotlib or torch, say so before the training, not after it
    if importlib.util.find_spec("torch") is None:
        raise ModuleNotFoundError("No module named 'torch'", name="torch")
    print(
        f"DoorKey in a room of 5x5, seen as pictures: {len(METHODS)} methods, {len(SEEDS)} fixed seeds, "
        f"{steps:,} steps each, the same settings for all.\n"
        "About 40 seconds on two cores; the first time also 20 seconds to compile.",
        flush=True,
    )
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    runs = [(method, seed) for method in ORDER for seed in SEEDS]
    workers = min(len(runs), usable_cores())
    with (
        TemporaryDirectory(prefix="backsweep-demo-") as place,
        ProcessPoolExecutor(workers, get_context("spawn"), announced_elsewhere) as pool,
    ):
        compile_kernels(pool)
        began = time.monotonic()
        shares = divided(runs, workers)
        first, *others = [(f"{place}/{worker}", share) for worker, share in enumerate(shares)]
        under_way = {pool.submit(work, "train_quietly", first[1], steps, first[0]): first}
        plan = pool.submit(work, "planned_walk")  # by the second worker, which may have a run less
        under_way.update(
            {pool.submit(work, "train_quietly", share, steps, folder): (folder, share) for folder, share in others}
        )
        curves: dict[str, list[Curve]] = {method: [] for method in METHODS}
        waiting = set(under_way)
        while waiting:
            finished, waiting = wait(waiting, timeout=REPORT_EVERY, return_when=FIRST_COMPLETED)
            for done in finished:
                done.result()
                folder, share = under_way[done]
                for method, seed in share:
                    curve = curve_of(Path(folder) / f"{method}-{seed}")
                    curves[method].append(curve)
                    print(f"  {METHODS[method]:13} seed {seed}: {in_words(curve)}", flush=True)
            if waiting and not finished:
                print(f"  {so_far(shares, Path(place))}", flush=True)
        trained = time.monotonic() - began
        pool.shutdown(wait=False)  # the workers end while the picture is drawn
        print(f"\nSteps until {SOLVED:.0%} of episodes are solved, one number for each seed:")
        for method, found in curves.items():
            numbers = sorted(map(solved_at, found), key=lambda text: (len(text), text))
            print(f"  {METHODS[method]:13} {',  '.join(numbers)}")
        before, after, distance = plan.result()
        path = out / "demo.png"
        draw(curves, before, after, distance, path)
        print(f"\nThe picture: {path} ({trained:.0f} s of training)")
        print(f"Next: {command()} train minigrid/doorkey --steps 200_000, or docs/graph_values.md for your own loop")
    return path


def work(name: str, *arguments: Any) -> Any:
    """Call a function of `demo_work`, in a worker process: only there its imports are needed."""
    from backsweep.agent.session import demo_work

    return getattr(demo_work, name)(*arguments)


def compile_kernels(pool: ProcessPoolExecutor) -> None:
    """Compile what all runs need, unless it is cached. Workers compile the rest, each what its runs need."""
    if all(map(is_compiled, COMPILED.values())):
        return
    announce_first_compilation()
    began = time.monotonic()
    for part in [pool.submit(work, name) for name in COMPILED]:
        part.result()
    print(f"  compiled in {time.monotonic() - began:.0f} s", flush=True)


def divided(runs: Runs, workers: int) -> list[Runs]:
    """Divide runs into shares of neighbours, the larger ones first."""
    size, more = divmod(len(runs), workers)
    ends = [(worker + 1) * size + min(worker + 1, more) for worker in range(workers)]
    return [runs[start:end] for start, end in zip([0, *ends], ends, strict=False)]


def curve_of(folder: Path) -> Curve:
    """Return the share of episodes that a run has solved so far, by steps."""
    try:
        records = read_records(folder, "evaluation")
    except (FileNotFoundError, NotADirectoryError):
        return []  # it has not started
    return [(r.step, r.exact_success or 0.0) for r in records if isinstance(r, EvaluationRecord)]


def command() -> str:
    """Return how to call `backsweep` here: with its path if its environment is not active."""
    return "backsweep" if shutil.which("backsweep") else os.path.relpath(Path(sys.executable).parent / "backsweep")


def so_far(shares: Sequence[Sequence[tuple[str, int]]], place: Path) -> str:
    """Return how far the runs are and how many solve the task now, as text."""
    newest: dict[str, list[tuple[int, float]]] = {method: [] for method in METHODS}
    for worker, share in enumerate(shares):
        for method, seed in share:
            curve = curve_of(place / str(worker) / f"{method}-{seed}")
            newest[method].append(curve[-1] if curve else (0, 0.0))
    step = min(step for found in newest.values() for step, _ in found)
    if step == 0:
        return "starting"
    solved = (
        f"{METHODS[method]} {sum(success >= SOLVED for _, success in found)} of {len(found)}"
        for method, found in newest.items()
    )
    return f"step {step:6,}; solved now: {', '.join(solved)}"


def solved_at(curve: Curve) -> str:
    """Return the step from which a run solves its task for good, as text."""
    for place, (step, _) in enumerate(curve):
        if all(success >= SOLVED for _, success in curve[place:]):
            return f"{step:,}"
    return NOT_YET


def in_words(curve: Curve) -> str:
    """Return how a run ended, as text."""
    since = solved_at(curve)
    end = f"{curve[-1][1]:.0%} of episodes solved at the end"
    return end if since == NOT_YET else f"{end}, {SOLVED:.0%} from step {since} on"


# -- the picture ------------------------------------------------------------------------------------------------------


def draw(
    curves: dict[str, list[Curve]],
    before: NDArray[np.float64],
    after: NDArray[np.float64],
    distance: NDArray[np.int64],
    path: Path,
) -> None:
    """Draw how soon each method solves the task, and the states with their values before and after planning."""
    plt = pyplot("demo")
    figure, panels = plt.subplots(1, 3, figsize=(13, 4), layout="constrained", width_ratios=(1.25, 1, 1))
    for method, found in curves.items():
        for place, curve in enumerate(found):
            steps, success = zip(*curve, strict=True)
            label = METHODS[method] if place == 0 else None
            panels[0].plot(
                steps, 100 * np.array(success), label=label, color=PALETTE[method].light, linewidth=1.8, alpha=0.85
            )
    panels[0].set_title("DoorKey 5x5 from pictures: who solves it when?", fontsize=11)
    panels[0].set_xlabel("environment steps")
    panels[0].set_ylabel("% of episodes solved")
    panels[0].set_ylim(-3, 103)
    panels[0].legend(frameon=False)
    reached = distance >= 0
    order = np.argsort(distance[reached], kind="stable")
    levels = distance[reached][order]
    heights = np.concatenate([np.linspace(-1, 1, count + 2)[1:-1] for count in np.bincount(levels) if count])
    for panel, values, title in (
        (panels[1], before, "One-step targets: only next to the goal"),
        (panels[2], after, "Planned on the graph: every state at once"),
    ):
        ends = levels == 0
        shown = values[reached][order][~ends]
        dots = panel.scatter(
            levels[~ends], heights[~ends], c=shown, cmap="viridis", s=14, vmin=0, vmax=np.nanmax(after)
        )
        panel.scatter(levels[ends], heights[ends], color="black", marker="*", s=60)
        panel.set_title(title, fontsize=11)
        panel.set_xlabel("steps to the goal (stars)")
        panel.set_xticks(range(0, int(levels.max()) + 1, 5))
        panel.set_yticks([])
        panel.invert_xaxis()
    figure.colorbar(dots, ax=panels[2], label="value of a state")
    for panel in panels:
        panel.spines[["top", "right"]].set_visible(False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    plt.close(figure)
