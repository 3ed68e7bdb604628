"""From a question's plan to jobs: what is finished is left alone, what was interrupted goes on.

    RESULTS/STUDY/seed-0100.jsonl.gz                     a study's records, there when it is finished
    RESULTS/runs/TASK/METHOD-SETTINGS/seed-100/          a training run
    RESULTS/runs/TASK/METHOD-SETTINGS/fleet-100-104/     training runs in lock-step, one folder each below
    RESULTS/logs/                                        what each job printed

A training run is known by its whole configuration, not by its place, so a run that one question made is there for all.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from backsweep.experiments.evidence import CONFIG, FINISHED, configuration_key
from backsweep.experiments.question import Grid, Run, Study

Engine = Literal["process", "fleet"]
FLEET_FILE = "fleet.json"


@dataclass
class Job:
    """One process's work."""

    name: str
    order: dict[str, Any]
    """What the worker is told, as plain JSON."""
    steps: int
    """Environment steps, or the study's units of work."""
    runs: int = 1
    resumed: bool = False
    watched: list[Path] = field(default_factory=list)
    """Record files that say how far it is."""

    @property
    def log_name(self) -> str:
        """A file name for its log."""
        return re.sub(r"[^A-Za-z0-9._-]+", "-", self.name) + ".log"


@dataclass
class Plan:
    """What is left to do for a question, and what is done."""

    jobs: list[Job]
    finished: int
    total: int


def study_file(root: Path, study: Study, seed: int) -> Path:
    """Return where a study's records go; other arguments than its own defaults make another file."""
    suffix = ""
    if study.arguments:
        suffix = "-" + hashlib.sha256(json.dumps(dict(study.arguments), sort_keys=True).encode()).hexdigest()[:8]
    return root / study.name / f"seed-{seed:04d}{suffix}.jsonl.gz"


def plan_study(root: Path, study: Study) -> Plan:
    """Return the seeds of a study that are still to be done."""
    from backsweep.experiments.studies import STUDIES

    jobs = []
    for seed in study.seeds:
        path = study_file(root, study, seed)
        if not path.exists():
            arguments = dict(study.arguments)
            order = {"kind": "study", "study": study.name, "seed": seed, "arguments": arguments, "file": str(path)}
            work = int(STUDIES[study.name].work(**arguments))
            jobs.append(Job(f"{study.name} seed {seed}", order, work))
    return Plan(jobs, len(study.seeds) - len(jobs), len(study.seeds))


def plan_training(root: Path, runs: tuple[Run, ...], engine: Engine, device: str) -> Plan:
    """Return the training that is still to be done."""
    known = _known_runs(root)
    fresh: list[tuple[Run, dict[str, Any]]] = []
    resumed: dict[Path, Job] = {}
    finished = 0
    for run in runs:
        config = run_configuration(run)
        folder = known.get(configuration_key(config, frozenset()))
        if folder is None:
            fresh.append((run, config))
        elif (folder / FINISHED).exists():
            finished += 1
        else:
            # The lane of a fleet goes on with its fleet, whichever engine was asked for.
            place = folder.parent if (folder.parent / FLEET_FILE).exists() else folder
            job = resumed.setdefault(
                place,
                Job(
                    f"{run.name}" if place == folder else f"{run.task} {run.variant.label} {place.name}",
                    {"kind": "resume", "folder": str(place), "device": device, "configs": {}},
                    0,
                    0,
                    True,
                ),
            )
            job.order["configs"]["." if place == folder else folder.name] = config
            job.steps += int(config["steps"])
            job.runs += 1
            job.watched.append(folder / "records.jsonl")
    jobs = list(resumed.values()) + _new_jobs(root, fresh, engine, device)
    return Plan(jobs, finished, len(runs))


def run_configuration(run: Run) -> dict[str, Any]:
    """Return the whole configuration of a run, as its folder will hold it."""
    from backsweep.trainer import run_config

    return run_config(run.task, method=run.variant.method, seed=run.seed, **run.options).to_json()


def plan(root: Path, what: Grid | Study, engine: Engine, device: str = "cpu") -> Plan:
    """Return what is left to do."""
    if isinstance(what, Study):
        return plan_study(root, what)
    return plan_training(root, what.runs(), engine, device)


def _new_jobs(root: Path, fresh: list[tuple[Run, dict[str, Any]]], engine: Engine, device: str) -> list[Job]:
    together: dict[str, list[tuple[Run, dict[str, Any]]]] = {}
    for run, config in fresh:
        settings = configuration_key(config, frozenset({"seed"}))
        key = settings if engine == "fleet" else f"{settings} {run.seed}"
        together.setdefault(key, []).append((run, config))
    jobs = []
    for members in together.values():
        first, config = members[0]
        settings = configuration_key(config, frozenset({"seed"}))
        base = root / "runs" / first.task.replace("/", "-") / f"{first.variant.method}-{settings}"
        steps = sum(int(entry["steps"]) for _, entry in members)
        if len(members) == 1:
            folder = base / f"seed-{first.seed}"
            configs, name = {".": config}, first.name
        else:
            seeds = [run.seed for run, _ in members]
            folder = base / f"fleet-{min(seeds)}-{max(seeds)}"
            configs = {f"seed-{run.seed}": entry for run, entry in members}
            name = f"{first.task} {first.variant.label} seeds {min(seeds)} to {max(seeds)}"
        order = {"kind": "train", "folder": str(folder), "device": device, "configs": configs}
        watched = [folder / lane / "records.jsonl" for lane in configs]
        jobs.append(Job(name, order, steps, len(members), watched=watched))
    return jobs


def _known_runs(root: Path) -> dict[str, Path]:
    """Return the folder of every run that is there, by its whole configuration; a finished one comes before others."""
    found: dict[str, Path] = {}
    for path in sorted(root.rglob(CONFIG)):
        try:
            key = configuration_key(json.loads(path.read_text()), frozenset())
        except (OSError, ValueError):
            continue
        if key not in found or (path.parent / FINISHED).exists():
            found[key] = path.parent
    return found
