"""How fast a fleet runs with everything included: environments, replay, learning, evaluation, records.

    python -m benchmarks.fleet --device cuda --runs 64 128      MiniGrid and Sokoban, TER with mixing
    python -m benchmarks.fleet --quick                           a few runs and steps, on the CPU

The runs are the paper's (batch, network, ratio 0.25, capacity), shortened: learning begins after WARMUP steps, actions
are the network's from then on, and what is timed are the steps after that. One evaluation is made half-way; "with
evaluations" counts it at the share it has in a whole run, one per 100,000 steps of every run.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from backsweep.agent import run_config, train_fleet
from backsweep.agent.session.records import RecordFile, TimingRecord
from benchmarks.machine import facts

WARMUP = 2_000
STEPS_PER_EVALUATION = 100_000
TASKS = {
    "minigrid": (
        "minigrid/doorkey",
        "minigrid/simplecrossing-hard",
        "minigrid/lavacrossing-easy",
        "minigrid/redbluedoors",
    ),
    "sokoban": ("sokoban/5x5-1", "sokoban/6x6-2"),
}


def measure(family: str, method: str, runs: int, steps: int, session: dict[str, Any]) -> dict[str, Any]:
    """Train a fleet for a while; return its speed and where the time went."""
    tasks, interval = TASKS[family], max(1, steps // 4)
    configs = {}
    for run in range(runs):
        configs[f"run-{run}"] = run_config(
            tasks[run % len(tasks)],
            method=method,
            seed=run,
            steps=WARMUP + steps,
            warmup_steps=WARMUP,
            epsilon_steps=WARMUP,
            evaluation_interval=WARMUP + 2 * interval,
            record_interval=interval,
            capacity=1_000_000 if family == "minigrid" else 100_000,
            exact=False,
        )
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        results = train_fleet(configs, folder, quiet=True, checkpoint_interval=0, **session)
        spent: dict[str, float] = {}
        timed = 0
        for record in RecordFile(Path(folder) / "run-0"):
            # The first intervals include warm-up, compilation and the recording of programs.
            if isinstance(record, TimingRecord) and record.step > WARMUP + interval:
                timed += record.steps
                for part, seconds in record.seconds.items():
                    spent[part] = spent.get(part, 0.0) + seconds
    assert all(result.finished for result in results)
    total = time.perf_counter() - started
    evaluation = spent.pop("evaluation", 0.0)
    training = sum(spent.get(part, 0.0) for part in ("stepping", "environment", "replay", "network", "other"))
    between = STEPS_PER_EVALUATION * training / timed
    return {
        "family": family,
        "method": method,
        "runs": runs,
        "steps": timed,
        "training_steps_per_second": runs * timed / training,
        "steps_per_second_with_evaluations": runs * STEPS_PER_EVALUATION / (between + evaluation),
        "evaluation_seconds": evaluation,
        "microseconds_per_step": {part: 1e6 * seconds / (runs * timed) for part, seconds in spent.items()},
        "whole_seconds": total,
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--families", nargs="+", default=["minigrid", "sokoban"], choices=list(TASKS))
    parser.add_argument("--methods", nargs="+", default=["ter"])
    parser.add_argument("--runs", nargs="+", type=int, default=[64])
    parser.add_argument("--groups", nargs="+", type=int, default=[2])
    parser.add_argument("--threads", nargs="+", type=int, default=[0], help="threads that step the runs; 0 for all")
    parser.add_argument("--steps", type=int, default=4_000)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--out", type=Path, help="write the numbers here as JSON lines")
    asked = parser.parse_args(arguments)
    if asked.quick:
        asked.runs, asked.steps, asked.families = [4], 200, ["minigrid"]
    print(facts())
    for family in asked.families:
        for method in asked.methods:
            for runs in asked.runs:
                for groups in asked.groups:
                    for threads in asked.threads:
                        session = {"device": asked.device, "groups": groups, "fleet_threads": threads or None}
                        found = measure(family, method, runs, asked.steps, session)
                        found.update(session)
                        parts = "  ".join(f"{k} {v:.2f}" for k, v in found["microseconds_per_step"].items())
                        print(
                            f"{family} {method}: {runs} runs in {groups} groups, {threads or 'all'} threads: "
                            f"{found['training_steps_per_second']:,.0f} steps/s, "
                            f"{found['steps_per_second_with_evaluations']:,.0f} with evaluations "
                            f"of {found['evaluation_seconds']:.1f} s; us/step: {parts}; "
                            f"whole {found['whole_seconds']:.1f} s",
                            flush=True,
                        )
                        if asked.out is not None:
                            with open(asked.out, "a") as file:
                                file.write(json.dumps(found) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
