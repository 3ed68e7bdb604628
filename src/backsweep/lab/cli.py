"""The commands `backsweep experiment run` and `pack`, and the options of all commands of `experiment`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from backsweep.lab.show import SCALES, list_command, show_command

CHECKPOINT_INTERVALS = {"process": 50_000, "fleet": 500_000}
FLEET_SIZES = {"process": 1, "fleet": 128, "ray": 1}
KEPT = (
    *("tasks", "lines", "settings", "engine", "fleet_size", "results", "jobs", "device", "groups"),
    *("checkpoint_interval", "address", "cores", "gpus", "retries"),
)
"""Options of `run` that hold at every scale; seeds do not, because those of trials are for tuning."""


def add_commands(subparsers: Any) -> None:
    """Add ``backsweep experiment``; its commands set `run`, from the parsed arguments to an exit code."""
    parser = subparsers.add_parser("experiment", help="run the paper's claims and our own questions as experiments")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    listing = commands.add_parser("list", help="all questions, one line each")
    listing.set_defaults(run=list_command)

    showing = commands.add_parser("show", help="one question: its claim, its rule and its runs")
    showing.add_argument("question", help="its id, such as C3")
    showing.set_defaults(run=show_command)

    running = commands.add_parser("run", help="run a question; finished runs are not repeated")
    running.add_argument("question", nargs="+", help="its id, such as C3; several questions share their runs")
    running.add_argument("--scale", choices=SCALES, default="smoke", help="the size of the runs")
    running.add_argument("--tasks", nargs="+", default=(), help="only these tasks of the questions")
    running.add_argument(
        "--lines", nargs="+", default=(), help="only these lines of the questions' charts, such as ter"
    )
    running.add_argument("--seeds", nargs="+", type=int, default=(), help="these seeds instead of the questions'")
    running.add_argument(
        "--settings",
        choices=("ours", "paper", "released"),
        help="settings of the runs: ours, the paper's or its released code's (default: the question's own)",
    )
    running.add_argument(
        "--engine",
        choices=("process", "fleet", "ray"),
        default="process",
        help="a process for each run, fleets of runs that train together, or either on the nodes of a Ray cluster",
    )
    running.add_argument(
        "--fleet-size", type=int, help="largest number of runs in a fleet (default: 128; 1 with --engine ray)"
    )
    running.add_argument(
        "--results",
        type=_results_folder,
        default=Path("results"),
        help="folder of the records; with --engine ray a shared folder or an fsspec URL",
    )
    running.add_argument(
        "--jobs",
        type=int,
        help="processes at a time; fleets are split so that each has one (default: one per core; one fleet on a CPU)",
    )
    running.add_argument("--device", default="cpu", help="device of the networks")
    running.add_argument(
        "--groups",
        type=int,
        help="groups of a fleet that alternate on the device (default: 2 if one fleet runs at a time, else 1, because "
        "several fleets alternate anyway)",
    )
    running.add_argument(
        "--checkpoint-interval",
        type=int,
        help="steps between checkpoints, each as large as the replays (default: 50000, or 500000 for fleets)",
    )
    clusters = running.add_argument_group("with --engine ray")
    clusters.add_argument("--address", help="address of the cluster, or auto (default: start one on this machine)")
    clusters.add_argument("--cores", type=float, default=1, help="cores of each run or fleet")
    clusters.add_argument("--gpus", type=float, default=0, help="GPUs of each run or fleet, such as 0.25")
    clusters.add_argument("--retries", type=int, default=3, help="restarts of a run whose node or process is lost")
    running.add_argument("--dry-run", action="store_true", help="print the runs, the steps and an estimate of the time")
    running.add_argument(
        "--steps-per-second",
        type=float,
        help="for the estimate: steps per second of a training process, all its runs together (default: measured)",
    )
    running.set_defaults(run=run_command, usual=running.get_default)

    packing = commands.add_parser("pack", help="copy finished runs into a results folder, as compact records")
    packing.add_argument("source", type=Path, nargs="+", help="folders that contain runs or fleets at any depth")
    packing.add_argument("--results", type=Path, default=Path("results"), help="target folder")
    packing.set_defaults(run=pack_command)


def run_command(parsed: argparse.Namespace) -> int:
    """Carry out the remaining runs of some questions."""
    from backsweep.lab.runs.remote_folder import is_url

    for name in ("jobs", "fleet_size", "groups", "steps_per_second", "checkpoint_interval"):
        if (value := getattr(parsed, name)) is not None and not value > 0:
            raise ValueError(f"--{name.replace('_', '-')} must be above 0, got {value}")
    if parsed.engine != "ray":
        if is_url(parsed.results):
            raise ValueError(f"--results must be a folder, got {parsed.results}: URLs are for --engine ray")
        return _run_here(parsed)
    import tempfile

    from backsweep.lab.runs.ray_engine import Resources, connected

    resources = Resources(parsed.cores, parsed.gpus, parsed.retries)
    with (
        tempfile.TemporaryDirectory(prefix="backsweep-") as scratch,
        connected(parsed.address, str(parsed.results), Path(scratch), resources) as cluster,
    ):
        return _run_on_cluster(parsed, cluster)


def _run_here(parsed: argparse.Namespace) -> int:
    from backsweep.cores import usable_cores
    from backsweep.lab.runs import gpu_sharing
    from backsweep.lab.runs.engine import run_jobs

    cores = usable_cores()
    one_per_core = parsed.engine == "process" or (parsed.device.startswith("cuda") and gpu_sharing.is_available())
    workers = parsed.jobs if parsed.jobs is not None else (cores if one_per_core else 1)

    def do(jobs: list[Any], progress: Any) -> tuple[list[Any], bool]:
        with gpu_sharing.shared(parsed.device, min(workers, len(jobs))) as note:
            if note is not None:
                print(note, file=sys.stderr, flush=True)
            return run_jobs(jobs, parsed.results / "logs", workers, progress, cores)

    return _run(parsed, parsed.results, workers, ("process", f", {workers} at a time"), do)


def _run_on_cluster(parsed: argparse.Namespace, cluster: Any) -> int:
    from backsweep.lab.runs.ray_engine import run_jobs_on_ray

    slots = cluster.slots()
    workers = max(1, slots if parsed.jobs is None else min(slots, parsed.jobs))

    def do(jobs: list[Any], progress: Any) -> tuple[list[Any], bool]:
        return run_jobs_on_ray(jobs, cluster, progress, parsed.jobs)

    return _run(parsed, cluster.root, workers, ("task", f"; the cluster has room for {slots} at a time"), do)


def _run(
    parsed: argparse.Namespace,
    root: Path,
    workers: int,
    words: tuple[str, str],
    do: Callable[..., tuple[list[Any], bool]],
) -> int:
    """Plan the jobs, show the plan or `do` them, and report; return the exit code."""
    from backsweep.lab.runs.progress import JobProgress

    found = _planned(parsed, root, workers)
    if parsed.dry_run:
        return _show_plan(parsed, found, workers)
    if not found.jobs:
        print(f"all {found.total} runs are finished" if found.total != 1 else "the run is finished")
        return 0
    to_do = _count(len(found.jobs), words[0])
    print(f"{_count(found.total, 'run')}, {found.finished} finished; {to_do} to do{words[1]}", flush=True)
    progress = JobProgress(found.jobs)
    failures, interrupted = do(found.jobs, progress)
    return _report(failures, interrupted, progress, found.jobs, parsed)


def _chosen(parsed: argparse.Namespace, scale: Any, seeds: Sequence[int]) -> list[Any]:
    """Return what the given questions run at a scale, of the given tasks and lines."""
    from backsweep.lab.claims.question import Grid, Study, check_seeds, subsets
    from backsweep.lab.claims.questions import find_question

    whats = [what for name in parsed.question for what in find_question(name).plans(scale)]
    studies = [what for what in whats if isinstance(what, Study)]
    check_seeds(studies, seeds)
    grids = [what.with_settings(parsed.settings) for what in whats if isinstance(what, Grid)]
    return [*subsets(grids, parsed.tasks, parsed.lines, seeds), *(study.with_seeds(seeds) for study in studies)]


def _planned(parsed: argparse.Namespace, root: Path, workers: int) -> Any:
    """Return the remaining jobs of the given questions."""
    from backsweep.lab.claims.questions import find_question
    from backsweep.lab.runs.jobs import plan

    for question in map(find_question, parsed.question):
        if not question.plans(parsed.scale):
            print(f"{question.id}: nothing to run. {question.missing}")
    chosen = _chosen(parsed, parsed.scale, parsed.seeds)
    size = FLEET_SIZES[parsed.engine] if parsed.fleet_size is None else parsed.fleet_size
    engine: Any = parsed.engine
    if engine == "ray":
        engine = "process" if size == 1 else "fleet"
    found = plan(root, chosen, engine, parsed.device, size, workers)
    interval = parsed.checkpoint_interval
    if interval is None:
        interval = CHECKPOINT_INTERVALS[engine]
    groups = parsed.groups if parsed.groups is not None else (2 if min(workers, len(found.jobs)) == 1 else 1)
    for job in found.jobs:
        job.order["session"] = {"checkpoint_interval": interval, "groups": groups}
    return found


def _show_plan(parsed: argparse.Namespace, found: Any, workers: int) -> int:
    """Print what would be done."""
    from backsweep.cores import usable_cores
    from backsweep.lab.runs.estimate import estimate
    from backsweep.lab.runs.progress import duration

    todo = found.jobs
    for job in todo:
        runs = f" in {job.runs} runs" if job.runs > 1 else ""
        print(f"  {'resumes' if job.resumed else 'new    '}  {job.name}  {job.steps_left:,} {_unit(job)}{runs}")
    to_do = sum(job.runs for job in todo)
    print(f"{_count(found.total, 'run')}, {found.finished} finished, {to_do} to do in {_count(len(todo), 'process')},")
    sys.stdout.flush()
    if todo and (parsed.steps_per_second is None or any(job.order["kind"] == "study" for job in todo)):
        note = (
            "measuring how fast this machine is; where code has to be compiled first, once, that takes up to a minute"
        )
        print(note, file=sys.stderr, flush=True)
    seconds = estimate(todo, workers, parsed.steps_per_second)
    cores = f"{usable_cores()} cores" if parsed.engine != "ray" else f"{parsed.cores:g} cores each"
    print(
        f"{sum(job.steps_left for job in todo):,} steps; about {duration(seconds)} with {_count(workers, 'process')} "
        f"at a time on {parsed.device}, {cores}"
    )
    return 0


def _report(failures: list[Any], interrupted: bool, progress: Any, jobs: list[Any], parsed: argparse.Namespace) -> int:
    """Print the result and return the exit code."""
    for failure in failures:
        print(
            f"\n{failure.job.name} failed with exit code {failure.code}; its log {failure.log} ends:", file=sys.stderr
        )
        print(failure.tail(), file=sys.stderr)
    for line in progress.summary(parsed.results, _after_tuning(parsed) if _are_tuning(jobs) else None):
        print(line)
    if interrupted:
        print("interrupted; the same command resumes", file=sys.stderr)
        return 130
    if failures:
        others = "; the others are done" if len(failures) < len(jobs) else ""
        print(f"\n{len(failures)} of {len(jobs)} failed{others}", file=sys.stderr)
        return 1
    return 0


def _are_tuning(jobs: list[Any]) -> bool:
    """Return whether all seeds of some jobs are for tuning, so that a report does not use them."""
    from backsweep.lab.seeds import purpose_of

    seeds = [
        seed
        for job in jobs
        for seed in (config["seed"] for config in job.order.get("configs", {"": job.order}).values())
    ]
    return all(purpose_of(seed) == "tuning" for seed in seeds)


def _after_tuning(parsed: argparse.Namespace) -> str:
    """Return how to get to a verdict after a trial, whose runs no report uses."""
    import shlex

    from backsweep.lab.claims.question import Grid
    from backsweep.lab.seeds import purpose_of

    words = ["backsweep", "experiment", "run", *parsed.question, "--scale"]
    given = [word for name in KEPT for word in _as_given(parsed, name)]
    for scale in SCALES[1:]:
        try:
            whats = [what for what in _chosen(parsed, scale, ()) if purpose_of(what.seeds[0]) != "tuning"]
        except ValueError:
            continue  # it lacks a task or line that was named
        if count := sum(len(what.runs()) if isinstance(what, Grid) else len(what.seeds) for what in whats):
            command = shlex.join([*words, scale, *given])
            return f"it works; for a verdict ({_count(count, 'run')}; --dry-run says how long it takes): {command}"
    return "it works; reports leave out runs with tuning seeds"


def _as_given(parsed: argparse.Namespace, name: str) -> list[str]:
    """Return an option as words of a command; none if it has its default."""
    value = getattr(parsed, name)
    if value == parsed.usual(name):
        return []
    return [f"--{name.replace('_', '-')}", *map(str, value if isinstance(value, list) else [value])]


def _count(number: int, noun: str) -> str:
    plural = "es" if noun.endswith("s") else "s"
    return f"{number:,} {noun}" + ("" if number == 1 else plural)


def pack_command(parsed: argparse.Namespace) -> int:
    """Copy finished runs into a results folder."""
    from backsweep.lab.runs.packing import pack

    if missing := [source for source in parsed.source if not source.exists()]:
        raise ValueError(f"there is no folder {missing[0]}")
    result = pack(parsed.source, parsed.results)
    if not (result.packed or result.known or result.refused):
        raise ValueError(f"no runs in {', '.join(map(str, parsed.source))}: runs are folders with a config.json")
    for refusal in result.refused:
        print(f"left out: {refusal}", file=sys.stderr)
    print(
        f"{_count(result.packed, 'run')} packed into {parsed.results}, {result.known} there already, "
        f"{len(result.refused)} left out; {_count(len(result.files), 'file')} written, {result.nbytes:,} bytes"
    )
    return 1 if result.conflicts or result.damaged else 0


def _results_folder(text: str) -> Any:
    """Return a folder as a path, and a URL as it is."""
    from backsweep.lab.runs.remote_folder import is_url

    return text if is_url(text) else Path(text)


def _unit(job: Any) -> str:
    if job.order["kind"] != "study":
        return "steps"
    from backsweep.lab.studies.registry import STUDIES

    return STUDIES[job.order["study"]].unit
