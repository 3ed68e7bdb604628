"""How soon each method solves each MiniGrid task, from the records: the picture and the table of README.md.

    python -m benchmarks.soonest            draws docs/images/soonest.png and renews the table in README.md

Runs that were stopped before their end (results/checks/g1-stopped.json) count up to where they came.
"""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from backsweep.lab.records import archives_below, read_archive

ROOT = Path(__file__).parent.parent
METHODS = {
    "graph": ("graph values (ours)", "#c2410c"),
    "ter": ("TER", "#1d4ed8"),
    "graph-backup": ("Graph Backup", "#0f766e"),
    "uer": ("uniform", "#6b7280"),
    "ceer": ("CEER", "#a16207"),
}
TASKS = {
    "doorkey": "DoorKey",
    "redbluedoors": "RedBlueDoors",
    "simplecrossing-easy": "SimpleCrossing-Easy",
    "unlock": "Unlock",
    "lavacrossing-easy": "LavaCrossing-Easy",
    "simplecrossing-hard": "SimpleCrossing-Hard",
    "lavacrossing-hard": "LavaCrossing-Hard",
}
SOLVED = 0.9
BUDGET = 1_000_000
BEGIN, END = "<!-- soonest: begin -->", "<!-- soonest: end -->"

Runs = dict[tuple[str, str], dict[int, float]]


def steps_until_solved(steps: list[float], success: list[float]) -> float:
    """Return the first evaluation from which on 90% of episodes are solved to the end; infinity if there is none."""
    failed = np.flatnonzero(np.array(success) < SOLVED)
    first = 0 if not len(failed) else int(failed[-1]) + 1
    return float(steps[first]) if first < len(steps) else float("inf")


def read_runs(results: Path) -> Runs:
    """Return when each run of the comparison solves its task, by task and method, by seed."""
    found: Runs = defaultdict(dict)

    def take(config: dict[str, Any], steps: list[float], success: list[float]) -> None:
        place = (str(config["task"]).split("/")[-1], str(config["method"]))
        found[place][int(config["seed"])] = steps_until_solved(steps, success)

    for archive in archives_below(results):
        if ".ours.runs" in archive.name and archive.name.startswith("minigrid-"):
            for run in read_archive(archive):
                if run is not None and run.config["steps"] == BUDGET:
                    take(run.config, run.column("evaluation", "step"), run.column("evaluation", "exact_success"))
    stopped = json.loads((results / "checks" / "g1-stopped.json").read_text())
    for entry in stopped["runs"]:
        numbers = entry["evaluations"]
        take({**stopped["shared"], **entry["config"]}, numbers["step"], numbers["exact_success"])
    return found


def table(found: Runs) -> str:
    """Return the median over seeds of the steps until solved, in thousands, and how many seeds get there."""
    lines = [
        "| task | " + " | ".join(title for title, _ in METHODS.values()) + " |",
        "| --- " * (1 + len(METHODS)) + "|",
    ]
    for task, title in TASKS.items():
        cells = []
        for method in METHODS:
            steps = list(found[task, method].values())
            solved = sum(np.isfinite(steps))
            median = float(np.median(steps))
            cell = f"{median / 1000:.0f}k" if np.isfinite(median) else "-"
            cells.append(cell if solved == len(steps) else f"{cell} ({solved} of {len(steps)})")
        lines.append(f"| {title} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def draw(found: Runs, path: Path) -> None:
    """Draw a dot for each run, a row for each task."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(10, 4.6), layout="constrained")
    never = 1.13 * BUDGET
    for row, task in enumerate(TASKS):
        for place, (method, (title, colour)) in enumerate(METHODS.items()):
            solved = sorted(found[task, method].values())
            steps, median = np.minimum(solved, never), min(float(np.median(solved)), never)
            height = -row + 0.3 - 0.15 * place
            axes.plot([0, median], [height, height], color=colour, linewidth=2.2, alpha=0.35, zorder=1)
            axes.scatter(steps, np.full(len(steps), height), color=colour, s=22, label=None if row else title, zorder=2)
    axes.axvline(1.06 * BUDGET, color="0.8", linewidth=1)
    axes.set_yticks([-row for row in range(len(TASKS))], TASKS.values())
    thousands = range(0, BUDGET + 1, 200_000)
    axes.set_xticks([*thousands, never], [*(f"{step // 1000}k" for step in thousands), "not within\n1,000k"])
    axes.set_xlabel("environment steps until 90% of all episodes are solved; a dot for each seed, a bar to the median")
    axes.set_xlim(0, 1.2 * BUDGET)
    axes.legend(frameon=False, ncols=len(METHODS), loc="lower center", bbox_to_anchor=(0.45, 1.0))
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def main() -> None:
    """Draw the picture and renew the table."""
    found = read_runs(ROOT / "results")
    draw(found, ROOT / "docs" / "images" / "soonest.png")
    text = table(found)
    print(text)
    readme = ROOT / "README.md"
    page = readme.read_text()
    if BEGIN in page:
        before, rest = page.split(BEGIN, 1)
        readme.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{rest.split(END, 1)[1]}")


if __name__ == "__main__":
    main()
