"""The commands of the questions: `backsweep experiment list`, `show`, `run` and `pack`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

SCALES = ("smoke", "laptop", "paper")
CHECKPOINT_INTERVALS = {"process": 50_000, "fleet": 500_000}


def add_commands(subparsers: Any) -> None:
    """Add ``backsweep experiment``; each command sets `run`, from the parsed arguments to an exit code."""
    parser = subparsers.add_parser("experiment", help="questions with rules: list them, look at one, run it")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    listing = commands.add_parser("list", help="all questions, one line each")
    listing.set_defaults(run=list_command)

    showing = commands.add_parser("show", help="one question: its claim, its rule and its runs")
    showing.add_argument("question", help="such as C3")
    showing.set_defaults(run=show_command)

    running = commands.add_parser("run", help="carry out a question's runs; what is done already is not done again")
    running.add_argument("question", nargs="+", help="such as C3; several share their runs")
    running.add_argument("--scale", choices=SCALES, default="smoke", help="how much to run (default: smoke)")
    running.add_argument("--tasks", nargs="+", default=[], help="of the questions' tasks only these")
    running.add_argument("--lines", nargs="+", default=[], help="of the questions' lines (methods) only these")
    running.add_argument("--seeds", nargs="+", type=int, default=[], help="these seeds in place of the questions' own")
    running.add_argument(
        "--settings",
        choices=("ours", "paper", "released"),
        help="whose settings the runs have: ours, the paper's or its released code's (default: the question's own)",
    )
    running.add_argument(
        "--engine",
        choices=("process", "fleet"),
        default="process",
        help="a process per run, or all runs that can in lock-step",
    )
    running.add_argument("--lanes", type=int, default=128, help="runs in a fleet at the most (default: 128)")
    running.add_argument("--results", type=Path, default=Path("results"), help="where records go (default: results)")
    running.add_argument(
        "--jobs",
        type=int,
        help="processes at a time, fleets dealt out so that each has one (default: one per core, or one fleet)",
    )
    running.add_argument("--device", default="cpu", help="where networks live (default: cpu)")
    running.add_argument(
        "--groups",
        type=int,
        help="groups of a fleet that take turns with the device (default: 2 if one fleet runs at a time, else 1: "
        "fleets side by side take turns anyway)",
    )
    running.add_argument(
        "--checkpoint-interval",
        type=int,
        help="steps between checkpoints, each as large as the replays (default: 50000, or 500000 for fleets)",
    )
    running.add_argument("--dry-run", action="store_true", help="print the runs, the steps and an estimate of the time")
    running.add_argument(
        "--steps-per-second",
        type=float,
        help="for the estimate: how many steps a training process takes, its runs together (default: measured)",
    )
    running.set_defaults(run=run_command)

    packing = commands.add_parser("pack", help="copy finished runs into a results folder, as compact records")
    packing.add_argument("source", type=Path, nargs="+", help="folders with runs or fleets anywhere below")
    packing.add_argument("--results", type=Path, default=Path("results"), help="where to (default: results)")
    packing.set_defaults(run=pack_command)


def list_command(parsed: argparse.Namespace) -> int:
    """Print one line per question."""
    from backsweep.lab.claims.registry import QUESTIONS

    for number, question in enumerate(QUESTIONS):
        if question.kind == "paper" and number and QUESTIONS[number - 1].kind != "paper":
            print("\nThe paper's claims:")
        print(f"{question.id:>4}  {question.title}")
    print("\n'backsweep experiment show C3' says more about one of them.")
    return 0


def show_command(parsed: argparse.Namespace) -> int:
    """Print all about one question."""
    import textwrap

    from backsweep.lab.claims.registry import find_question

    question = find_question(parsed.question)
    print(f"{question.id}: {question.title}\n")
    for name, text in (
        ("question", question.question),
        ("the paper's claim" if question.kind == "paper" else "the goal", question.claim),
        ("measured", question.metric),
        ("decided by", question.decided_by),
        ("missing", question.missing),
    ):
        if text:
            print(textwrap.fill(f"{name}: {text}", width=100, subsequent_indent="    "))
    print()
    for scale in SCALES:
        print(_scale_line(scale, question.plan(scale)))  # type: ignore[arg-type]
    return 0


def run_command(parsed: argparse.Namespace) -> int:
    """Carry out what is left of some questions' runs."""
    from backsweep.lab.claims.question import Grid, Study, parts
    from backsweep.lab.claims.registry import find_question
    from backsweep.lab.runs.engine import kernels_take_turns, run_jobs, usable_cores
    from backsweep.lab.runs.jobs import plan
    from backsweep.lab.runs.progress import JobProgress, duration

    for name in ("jobs", "lanes", "groups", "steps_per_second", "checkpoint_interval"):
        if (value := getattr(parsed, name)) is not None and not value > 0:
            raise ValueError(f"--{name.replace('_', '-')} must be above 0, got {value}")
    cores = usable_cores()
    workers = parsed.jobs if parsed.jobs is not None else (cores if parsed.engine == "process" else 1)
    grids: list[Grid] = []
    studies: list[Study] = []
    for name in parsed.question:
        question = find_question(name)
        what = question.plan(parsed.scale)
        if what is None:
            print(f"{question.id}: nothing to run. {question.missing}")
        elif isinstance(what, Grid):
            grids.append(what.following(parsed.settings))
        else:
            studies.append(what)
    chosen = parts(grids, parsed.tasks, parsed.lines, parsed.seeds)
    found = plan(parsed.results, [*chosen, *studies], parsed.engine, parsed.device, parsed.lanes, workers)
    interval = parsed.checkpoint_interval
    if interval is None:
        interval = CHECKPOINT_INTERVALS[parsed.engine]
    groups = parsed.groups if parsed.groups is not None else (2 if min(workers, len(found.jobs)) == 1 else 1)
    for job in found.jobs:
        job.order["session"] = {"checkpoint_interval": interval, "groups": groups}
    todo, finished, total = found.jobs, found.finished, found.total
    if parsed.dry_run:
        from backsweep.lab.runs.estimate import estimate

        for job in todo:
            lanes = f" in {job.runs} lanes" if job.runs > 1 else ""
            print(f"  {'goes on' if job.resumed else 'new    '}  {job.name}  {job.steps_left:,} {_unit(job)}{lanes}")
        print(f"{total} runs, {finished} finished, {sum(job.runs for job in todo)} to do in {len(todo)} processes,")
        seconds = estimate(todo, workers, parsed.steps_per_second)
        print(
            f"{sum(job.steps_left for job in todo):,} steps; about {duration(seconds)} with {workers} "
            f"{'process' if workers == 1 else 'processes'} at a time on {parsed.device}, {cores} cores"
        )
        return 0
    if not todo:
        print(f"all {total} runs are finished")
        return 0
    print(f"{total} runs, {finished} finished; {len(todo)} processes to do, {workers} at a time", flush=True)
    if min(workers, len(todo)) > 1 and kernels_take_turns(parsed.device):
        print(
            "several processes share a GPU several times faster under NVIDIA's MPS, which does not run here: stop this "
            "with Ctrl-C, start it with 'nvidia-cuda-mps-control -d', and give the same command again",
            file=sys.stderr,
            flush=True,
        )
    progress = JobProgress(todo)
    failures, interrupted = run_jobs(todo, parsed.results / "logs", workers, progress, cores)
    for failure in failures:
        print(
            f"\n{failure.job.name} failed with exit code {failure.code}; its log {failure.log} ends:", file=sys.stderr
        )
        print(failure.tail(), file=sys.stderr)
    for line in progress.summary(parsed.results):
        print(line)
    if interrupted:
        print("interrupted; the same command goes on", file=sys.stderr)
        return 130
    if failures:
        others = "; the others are done" if len(failures) < len(todo) else ""
        print(f"\n{len(failures)} of {len(todo)} failed{others}", file=sys.stderr)
        return 1
    return 0


def pack_command(parsed: argparse.Namespace) -> int:
    """Copy finished runs into a results folder."""
    from backsweep.lab.runs.packing import pack

    result = pack(parsed.source, parsed.results)
    for refusal in result.refused:
        print(f"left out: {refusal}", file=sys.stderr)
    print(
        f"{result.packed} runs packed into {parsed.results}, {result.known} there already, {len(result.refused)} left "
        f"out; {len(result.files)} files written, {result.nbytes:,} bytes"
    )
    return 1 if result.conflicts else 0


def _scale_line(scale: str, what: Any) -> str:
    from backsweep.lab.claims.question import Grid

    if what is None:
        return f"{scale:>8}: nothing to run"
    if isinstance(what, Grid):
        runs = what.runs()
        labels = ", ".join(variant.label for variant in what.variants)
        seeds = f"{what.seeds[0]} to {what.seeds[-1]}"
        return f"{scale:>8}: {len(runs)} runs: {', '.join(what.tasks)}; {labels}; seeds {seeds}"
    extra = f", {dict(what.arguments)}" if what.arguments else ""
    return f"{scale:>8}: study {what.name!r}, seeds {what.seeds[0]} to {what.seeds[-1]}{extra}"


def _unit(job: Any) -> str:
    if job.order["kind"] != "study":
        return "steps"
    from backsweep.lab.studies.registry import STUDIES

    return STUDIES[job.order["study"]].unit
