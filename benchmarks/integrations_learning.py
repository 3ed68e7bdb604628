"""Whether learning is as fast with backsweep's buffer as with a framework's own: same algorithm, seeds and budget.

python -m benchmarks.integrations_learning [--framework tianshou] [--steps 6000] [--seeds 3] [--out FILE]

The task is a corridor in which every place has one right action and only the end pays; see `learning.corridor`.
"""

from __future__ import annotations

import argparse
import importlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.learning.corridor import EVERY
from benchmarks.machine import facts

FRAMEWORKS = ("stable_baselines3", "tianshou", "torchrl", "rllib")


def main() -> None:
    """Train all variants with all seeds, print a table and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--framework", choices=FRAMEWORKS, default="stable_baselines3")
    parser.add_argument("--steps", type=int, default=6_000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=None)
    args = parser.parse_args()
    torch.set_num_threads(1)
    variants = importlib.import_module(f"benchmarks.learning.{args.framework}").variants()
    results: dict[str, Any] = {}
    print("| | steps until first solved, by seed | share of evaluations solved |")
    print("| --- | --- | --- |")
    for name, run in variants.items():
        solved = [run(seed, args.steps) for seed in range(args.seeds)]
        first = [EVERY * (each.index(True) + 1) if True in each else None for each in solved]
        share = float(np.mean(solved))
        results[name] = {"first_solved": first, "share_solved": share}
        shown = ", ".join("never" if each is None else f"{each:,}" for each in first)
        print(f"| {name} | {shown} | {share:.2f} |", flush=True)
        if args.out is not None:
            written = json.loads(args.out.read_text()) if args.out.exists() else {}
            written[args.framework] = {"machine": facts(), "steps": args.steps, "results": results}
            args.out.write_text(json.dumps(written, indent=1) + "\n")


if __name__ == "__main__":
    main()
