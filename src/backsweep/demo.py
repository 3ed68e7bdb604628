"""`backsweep demo`: three methods on a small task; or, with --order, the order in which two samplers visit a chain."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backsweep.agent.palette import pyplot
from backsweep.replay import Replay
from backsweep.samplers import Sampler, Topological, Uniform
from backsweep.tasks.make import make_single

LENGTH = 20
STEPS = 4_000
BATCH = 10
SHOWN = 40  # rows of each sampler that the pictures show


def add_commands(commands: Any) -> None:
    """Add ``backsweep demo``."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "demo", help="train three methods on a small task and draw how soon each solves it (about a minute)"
    )
    parser.add_argument("--out", type=Path, default=Path("demo"), help="folder for the picture")
    parser.add_argument(
        "--order", action="store_true", help="instead show the order in which sweeps and uniform sampling visit a chain"
    )
    parser.set_defaults(run=run, extra="report")


def run(options: argparse.Namespace) -> None:
    """Train and draw, or show the order of updates."""
    if options.order:
        show_order(options.out)
        return
    from backsweep.agent.session import demo as training

    training.run(options.out)


def show_order(out: Path, seed: int = 0) -> None:
    """Print the order of updates under both samplers and draw it."""
    pyplot("demo")  # without matplotlib, say so first
    print(f"A random walk of {STEPS} steps on a chain of {LENGTH} states; only the last one, G, gives a reward.")
    print("A state's value can be right only after its right-hand neighbour's. Which states does each sampler pick?\n")
    orders = {}
    for title, sampler in (("Topological", Topological()), ("Uniform", Uniform())):
        replay = filled_replay(sampler, seed)
        orders[title] = order_of_states(replay)
        print(text_picture(title, orders[title]))
    path = out / "sweep.png"
    draw(orders, path)
    stats = replay.stats()
    print(f"{stats['rows']:,.0f} transitions hold {stats['distinct_observations']:.0f} distinct observations.")
    print(f"The picture: {path}")
    print("docs/follow_one_transition.md shows how the sweep works.")


def filled_replay(sampler: Sampler, seed: int) -> Replay:
    """Return a replay that holds a random walk on the chain."""
    env = make_single(f"nchain-{LENGTH}")
    rng = np.random.default_rng(seed)
    replay = Replay(env.observation_space, env.action_space, capacity=STEPS, sampler=sampler, seed=seed)
    observation, _ = env.reset(seed=seed)
    for _ in range(STEPS):
        action = int(rng.integers(2))
        following, reward, terminated, truncated, _ = env.step(action)
        replay.add(observation, action, float(reward), following, terminated, truncated)
        observation = env.reset()[0] if terminated or truncated else following
    return replay


def order_of_states(replay: Replay) -> NDArray[np.int64]:
    """Return the states of the first rows that the sampler returns, in order."""
    batches = [replay.sample(BATCH).observation for _ in range(SHOWN // BATCH)]
    return np.concatenate(batches)


def text_picture(title: str, order: NDArray[np.int64]) -> str:
    """Draw one line per batch, with the chain from left to right and how often each state was updated."""
    lines = [f"{title}: which states each batch of {BATCH} updates (darker: more often)"]
    shades = " .:+#@"
    for start in range(0, len(order), BATCH):
        counts = np.bincount(order[start : start + BATCH], minlength=LENGTH)
        cells = "".join(shades[min(count, len(shades) - 1)] * 2 for count in counts[: LENGTH - 1])
        lines.append(f"  batch {start // BATCH + 1:2d}  start |{cells}| G")
    return "\n".join(lines) + "\n"


def draw(orders: dict[str, NDArray[np.int64]], path: Path) -> None:
    """Draw the state of every update against its turn."""
    plt = pyplot("demo")
    figure, panels = plt.subplots(1, len(orders), figsize=(9, 3.6), sharey=True, layout="constrained")
    for panel, (title, order) in zip(panels, orders.items(), strict=True):
        turns = np.arange(1, len(order) + 1)
        panel.scatter(turns, order + 1, c=turns, cmap="viridis_r", s=26, zorder=3)
        panel.axhline(LENGTH, color="tab:green", linewidth=1.5)
        panel.annotate(
            "goal", (len(order), LENGTH), (0, -12), textcoords="offset points", ha="right", color="tab:green"
        )
        for edge in range(BATCH, len(order), BATCH):
            panel.axvline(edge + 0.5, color="0.88", linewidth=1)
        panel.set_title(title)
        panel.set_xlabel("update (lines between batches)")
        panel.set_ylim(0, LENGTH + 1.6)
        panel.set_yticks([1, 5, 10, 15, LENGTH])
        panel.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("state that is updated")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    plt.close(figure)
