"""How fast a fleet runs with everything included: environments, replay, learning, evaluation, records.

    python -m benchmarks.fleet --device cuda --runs 64 128      MiniGrid and Sokoban, TER with mixing
    python -m benchmarks.fleet --device cuda --families sokoban --runs 4 --processes 8 --ratio 0.25 --steps 16000
    python -m benchmarks.fleet --quick                           a few runs and steps, on the CPU

Runs have our settings, which update every two steps; `--ratio 0.25` is the paper's every four. They are shortened:
learning begins after WARMUP steps, actions are the network's from then on, and what is timed are the steps after that.
One evaluation is made half-way; "with evaluations" counts it at the share it has in a whole run, one per 100,000 steps
of every run. `--processes` starts as many such fleets at the same time, under MPS, and adds up their speeds.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from backsweep.agent import run_config, train_fleet
from backsweep.agent.session.records import RecordFile, TimingRecord
from backsweep.cores import usable_cores
from backsweep.lab.runs.gpu_sharing import shared
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


def measure(
    family: str, method: str, runs: int, steps: int, session: dict[str, Any], ratio: float | None = None
) -> dict[str, Any]:
    """Train a fleet for a while; return its speed and where the time went."""
    tasks, interval = TASKS[family], max(1, steps // 4)
    updates: dict[str, Any] = {} if ratio is None else {"ratio": ratio}
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
            **updates,
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
    training = sum(spent.values())
    between = STEPS_PER_EVALUATION * training / timed
    return {
        "family": family,
        "method": method,
        "runs": runs,
        "ratio": configs["run-0"].ratio,
        "steps": timed,
        "training_steps_per_second": runs * timed / training,
        "steps_per_second_with_evaluations": runs * STEPS_PER_EVALUATION / (between + evaluation),
        "evaluation_seconds": evaluation,
        "microseconds_per_step": {part: 1e6 * seconds / (runs * timed) for part, seconds in spent.items()},
        "whole_seconds": total,
    }


def side_by_side(asked: argparse.Namespace, family: str, method: str, runs: int) -> dict[str, Any]:
    """Measure as many fleets as there are processes at the same time; return their speeds, added up."""
    threads = asked.threads[0] or max(1, usable_cores() // asked.processes)
    command = [sys.executable, "-m", "benchmarks.fleet", "--device", asked.device, "--families", family]
    command += ["--methods", method, "--runs", str(runs), "--groups", "1", "--threads", str(threads)]
    command += ["--steps", str(asked.steps)]
    command += [] if asked.ratio is None else ["--ratio", str(asked.ratio)]
    with tempfile.TemporaryDirectory() as folder, shared(asked.device, asked.processes) as note:
        if note is not None:
            print(note, flush=True)
        outs = [Path(folder) / f"{process}.jsonl" for process in range(asked.processes)]
        started = [subprocess.Popen([*command, "--out", str(out)], stdout=subprocess.DEVNULL) for out in outs]
        codes = [process.wait() for process in started]
        if any(codes):
            raise RuntimeError(f"a process failed; run it alone: {' '.join(command)}")
        found = [json.loads(out.read_text()) for out in outs]
    summed = ("training_steps_per_second", "steps_per_second_with_evaluations")
    same = {name: found[0][name] for name in ("family", "method", "runs", "ratio", "steps")}
    return {"processes": asked.processes, "threads": threads, **same} | {
        name: sum(each[name] for each in found) for name in summed
    }


def keep(out: Path | None, found: dict[str, Any]) -> None:
    """Write the numbers to a file, if there is to be one."""
    if out is not None:
        with open(out, "a") as file:
            file.write(json.dumps(found) + "\n")


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
    parser.add_argument("--ratio", type=float, help="updates for each step (default: our settings')")
    parser.add_argument("--processes", type=int, default=1, help="fleets at the same time, one group each")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--out", type=Path, help="write the numbers here as JSON lines")
    asked = parser.parse_args(arguments)
    if asked.quick:
        asked.runs, asked.steps, asked.families = [4], 200, ["minigrid"]
    print(facts())
    for family in asked.families:
        for method in asked.methods:
            for runs in asked.runs:
                if asked.processes > 1:
                    found = side_by_side(asked, family, method, runs)
                    print(
                        f"{family} {method}, {found['ratio']} updates for each step: {asked.processes} fleets of "
                        f"{runs} runs, {found['threads']} threads each: "
                        f"{found['training_steps_per_second']:,.0f} steps/s, "
                        f"{found['steps_per_second_with_evaluations']:,.0f} with evaluations",
                        flush=True,
                    )
                    keep(asked.out, found)
                    continue
                for groups in asked.groups:
                    for threads in asked.threads:
                        session = {"device": asked.device, "groups": groups, "fleet_threads": threads or None}
                        found = measure(family, method, runs, asked.steps, session, asked.ratio)
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
                        keep(asked.out, found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
