"""Whether learning is as fast with backsweep's buffer as with a framework's own: same algorithm, seeds and budget.

python -m benchmarks.integrations_learning --framework tianshou
python -m benchmarks.integrations_learning --table

The task is a corridor in which every place has one right action and only the end pays; see `learning.corridor`. The
first command trains one framework and writes its part of the record; the second one writes the record's tables into
docs/frameworks/README.md.
"""

from __future__ import annotations

import argparse
import importlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch

from backsweep.lab.report.marked_text import rewrite_between
from benchmarks.learning.corridor import EVERY
from benchmarks.machine import facts, measured_on

TITLES = {
    "stable_baselines3": "Stable-Baselines3",
    "single_file": "One file, CleanRL style",
    "tianshou": "Tianshou",
    "torchrl": "TorchRL",
    "rllib": "RLlib",
}
ROOT = Path(__file__).parents[1]
RECORD = ROOT / "benchmarks" / "results" / "integrations-learning.json"
PAGE = ROOT / "docs" / "frameworks" / "README.md"
BEGIN, END = "<!-- benchmarks.integrations_learning begin -->", "<!-- benchmarks.integrations_learning end -->"


def row(name: str, result: dict[str, Any]) -> str:
    """Return one line of a table."""
    shown = ", ".join("never" if each is None else f"{each:,}" for each in result["first_solved"])
    return f"| {name} | {shown} | {result['share_solved']:.2f} |"


def table(record: dict[str, Any]) -> str:
    """Return the table of all frameworks for the documentation."""
    lines = ["| | steps until first solved, by seed | share of evaluations solved |", "| --- | --- | --- |"]
    for framework, title in TITLES.items():
        if framework in record:
            lines.append(f"| **{title}**, {record[framework]['steps']:,} steps | | |")
            lines += [row(name, result) for name, result in record[framework]["results"].items()]
    latest = max((part["machine"] for part in record.values()), key=lambda machine: str(machine["date"]))
    return "\n".join([*lines, "", measured_on(latest)])


def train_all(framework: str, steps: int, seeds: int, out: Path) -> None:
    """Train all variants with all seeds, and write each when it is done."""
    torch.set_num_threads(1)
    results: dict[str, Any] = {}
    machine = facts()
    for name, run in importlib.import_module(f"benchmarks.learning.{framework}").variants().items():
        solved = [run(seed, steps) for seed in range(seeds)]
        first = [EVERY * (each.index(True) + 1) if True in each else None for each in solved]
        results[name] = {"first_solved": first, "share_solved": float(np.mean(solved))}
        print(row(name, results[name]), flush=True)
        written = json.loads(out.read_text()) if out.exists() else {}
        written[framework] = {"machine": machine, "steps": steps, "results": results}
        out.write_text(json.dumps(written, indent=1) + "\n")


def main() -> None:
    """Train one framework, or write the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--framework", choices=TITLES, default="stable_baselines3")
    parser.add_argument("--steps", type=int, default=4_000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=RECORD)
    parser.add_argument("--table", action="store_true", help="train nothing; write the record's table into the page")
    args = parser.parse_args()
    if args.table:
        rewrite_between(PAGE, BEGIN, END, table(json.loads(args.out.read_text())))
    else:
        train_all(args.framework, args.steps, args.seeds, args.out)


if __name__ == "__main__":
    main()
