"""How soon each method solves each MiniGrid task, from the records: the picture and the tables.

python -m benchmarks.soonest    draws docs/images/soonest.png, renews the tables in README.md and docs/results.md
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from backsweep.agent.palette import title_of
from backsweep.lab.claims.evidence import read_evidence
from backsweep.lab.claims.questions import find_question
from backsweep.lab.report.chart import task_title
from backsweep.lab.report.figures import draw
from backsweep.lab.report.marked_text import rewrite_between
from backsweep.lab.report.solving_time import SolvingTimes, read_soonest, soonest_chart

ROOT = Path(__file__).parent.parent
BEGIN, END = "<!-- soonest: begin -->", "<!-- soonest: end -->"


def read_runs(results: Path) -> SolvingTimes:
    """Return when each run of the comparison solves its task."""
    found = read_soonest(read_evidence(results), find_question("G1"))
    if found is None:
        raise ValueError(f"{results} holds no two methods with our settings on the tasks of G1")
    return found


def summary(found: SolvingTimes) -> str:
    """Return a line for each method of the picture, the soonest first, over all tasks."""
    lines = [
        "| | steps until solved, mean of all runs | runs that get there | tasks solved with every seed |",
        "| --- | ---: | ---: | ---: |",
    ]
    for method in sorted(found.drawn, key=found.mean):
        reached = [found.reached(task, method) for task in found.tasks]
        solved, runs = (sum(numbers) for numbers in zip(*reached, strict=True))
        whole = sum(done == count for done, count in reached)
        steps = f"{found.mean(method) / 1000:.0f},000"
        lines.append(f"| {_title(method)} | {steps} | {solved} of {runs} | {whole} of {len(found.tasks)} |")
    return "\n".join(lines)


def table(found: SolvingTimes) -> str:
    """Return the median over seeds of the steps until solved, in thousands, and how many seeds get there."""
    lines = ["| | " + " | ".join(map(task_title, found.tasks)) + " |", "| --- " * (1 + len(found.tasks)) + "|"]
    for method in found.methods:
        cells = []
        for task in found.tasks:
            median = found.medians(task)[method]
            solved, runs = found.reached(task, method)
            cell = f"{median / 1000:.0f}k" if np.isfinite(median) else "-"
            cells.append(cell if solved == runs else f"{cell} ({solved} of {runs})")
        lines.append(f"| {_title(method)} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _title(method: str) -> str:
    return "**graph values** (ours)" if method == "graph" else title_of(method)


def main() -> None:
    """Draw the picture and rewrite the tables."""
    found = read_runs(ROOT / "results")
    draw(soonest_chart(found), ROOT / "docs" / "images" / "soonest.png")
    for page, text in ((ROOT / "README.md", summary(found)), (ROOT / "docs" / "results.md", table(found))):
        print(text)
        rewrite_between(page, BEGIN, END, text)


if __name__ == "__main__":
    main()
