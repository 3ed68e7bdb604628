"""Load folders with random changes, and use what loads. Prints how many were refused and how many were used.

    python crafted_rounds.py FOLDER ROUNDS FIRST_SEED

What loads must do for any use, and its own save must load again, which checks all of it once more.
"""

from __future__ import annotations

import random
import shutil
import sys
from pathlib import Path

import numpy as np

from backsweep import Replay
from backsweep.snapshot import SnapshotError
from crafting import SPACES, crafted, drive, good_save, random_change
from twins.graph_check import explain_graph
from twins.planner_check import explain_planner
from twins.store_check import explain_store


def assert_plain_checks_agree(replay: Replay) -> None:
    """What the kernels let in, the plain checks let in too."""
    parts = replay.machinery
    assert parts.graph is not None
    explain_store(parts.store)
    explain_graph(parts.graph, parts.store)
    if parts.planner is not None:
        explain_planner(parts.planner, parts.store, parts.graph)


def rounds(folder: Path, count: int, first_seed: int) -> tuple[int, int]:
    """Return how many folders were refused and how many were used."""
    refused = used = 0
    for kind in SPACES:
        good_save(folder / kind, kind)
        for seed in range(first_seed, first_seed + count):
            target = folder / "crafted"
            shutil.rmtree(target, ignore_errors=True)
            try:
                with np.errstate(invalid="ignore"):
                    crafted(folder / kind, target, random_change(random.Random(seed)))
            except (TypeError, ValueError):
                continue  # not even a folder can be made of it
            print(kind, seed, file=sys.stderr, flush=True)
            try:
                replay = Replay.load(target)
            except SnapshotError:
                refused += 1
                continue
            assert_plain_checks_agree(replay)
            drive(replay, kind, 150, seed, plans=replay.machinery.planner is not None)
            replay.save(folder / "again")
            Replay.load(folder / "again")
            used += 1
    return refused, used


if __name__ == "__main__":
    print(*rounds(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])))
