"""How soon each method solves each MiniGrid task, from the records: the picture and the table of README.md.

python -m benchmarks.soonest            draws docs/images/soonest.png and renews the table in README.md
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
        title = "**graph values** (ours)" if method == "graph" else title_of(method)
        lines.append(f"| {title} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    """Draw the picture and rewrite the table."""
    found = read_runs(ROOT / "results")
    draw(soonest_chart(found), ROOT / "docs" / "images" / "soonest.png")
    text = table(found)
    print(text)
    rewrite_between(ROOT / "README.md", BEGIN, END, text)


if __name__ == "__main__":
    main()
