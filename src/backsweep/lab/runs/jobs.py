"""From a question's plan to jobs: finished runs are skipped, interrupted ones resume.

    RESULTS/STUDY/seed-0100.jsonl.gz                     a study's records, there when it is finished
    RESULTS/runs/TASK/METHOD-SETTINGS/seed-100/          a training run
    RESULTS/runs/TASK/METHOD-SETTINGS/fleet-100-104/     a fleet of training runs, with a folder for each
    RESULTS/runs/fleets/NAME/TASK-METHOD-seed-100/       the same, of several tasks or methods
    RESULTS/runs/TASK.SETTINGS.runs.jsonl.xz             finished runs that were packed (see `packing`)
    RESULTS/logs/                                        what each job printed

A training run is identified by its whole configuration, not by its folder, so all questions share it.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from backsweep.lab.claims.evidence import configuration_key
from backsweep.lab.claims.question import Grid, PlannedRun, Study
from backsweep.lab.records import archives_below, last_step, read_archive
from backsweep.run_files import CONFIG, FINISHED, FLEET, RECORDS
from backsweep.tasks.gymnasium_env import is_gymnasium_id

MOST_RUNS = 128
"""The largest size of a fleet by default."""


@dataclass(frozen=True)
class Member:
    """A run with its whole configuration."""

    run: PlannedRun
    config: dict[str, Any]

    @property
    def key(self) -> str:
        """A key that identifies the run."""
        return configuration_key(self.config, frozenset())

    @property
    def settings(self) -> str:
        """A key of its configuration without the seed."""
        return configuration_key(self.config, frozenset({"seed"}))


def sharing_key(config: dict[str, Any]) -> str:
    """Return a key that is equal for runs that may share a fleet.

    It covers every field that must be the same, the kind of update, and the spaces of observations and actions.
    """
    from backsweep.agent import RunConfig, method_for
    from backsweep.agent.defaults import task_options
    from backsweep.agent.fleet.fleet import OWN_FIELDS
    from backsweep.agent.learner.rules import TargetRule, common_rule

    whole = RunConfig.from_json(config)
    shared = {name: value for name, value in whole.to_json().items() if name not in OWN_FIELDS}
    spaces = _spaces(whole.task, whole.env, tuple(sorted(task_options(whole).items())))
    # Methods with one-step or given targets share one update; the others only with exactly the same rule.
    rule = method_for(whole).rule
    update = None if common_rule([rule, TargetRule()]) is not None else asdict(rule)
    return json.dumps([shared, update, spaces], sort_keys=True)


@lru_cache(maxsize=64)
def _spaces(task: str | None, env: str | None, options: tuple[tuple[str, Any], ...]) -> tuple[str, int]:
    """Return the observation space and the number of actions of a task or environment."""
    from backsweep.tasks.environments import make_environments

    envs = make_environments(task, env, 1, 0, dict(options))
    try:
        return str(envs.observation_space), int(envs.num_actions)
    finally:
        envs.close()


def group_into_fleets(members: Sequence[Member], size: int, workers: int = 1) -> list[list[Member]]:
    """Group runs into fleets of at most `size` runs and about equal size, with one for each worker if possible."""
    kinds: dict[str, list[Member]] = {}
    for member in members:
        kinds.setdefault(sharing_key(member.config), []).append(member)
    counts = _fleet_counts([len(same) for same in kinds.values()], size, workers)
    fleets = []
    for same, count in zip(kinds.values(), counts, strict=True):
        # Runs of equal length end together: a fleet that shrinks wastes most of its step.
        ordered = sorted(same, key=lambda member: -int(member.config["steps"]))
        ends = [place * len(ordered) // count for place in range(count + 1)]
        fleets += [ordered[start:end] for start, end in itertools.pairwise(ends)]
    return fleets


def _fleet_counts(sizes: Sequence[int], most: int, workers: int) -> list[int]:
    """Return the number of fleets of each kind: as `most` requires, and more of the largest for idle workers."""
    counts = [-(-size // most) for size in sizes]
    for _ in range(min(workers, sum(sizes)) - sum(counts)):
        largest = max(range(len(sizes)), key=lambda kind: sizes[kind] / counts[kind])
        counts[largest] += 1
    return counts


def run_folder(root: Path, config: dict[str, Any]) -> Path:
    """Return the folder of a run: RESULTS/runs/TASK/METHOD-SETTINGS/seed-N."""
    return _settings_folder(root, config) / f"seed-{config['seed']}"


def fleet_folder(root: Path, members: Sequence[Member]) -> Path:
    """Return an unused folder for a fleet."""
    if _same_settings(members):
        seeds = [member.run.seed for member in members]
        folder = _settings_folder(root, members[0].config) / f"fleet-{min(seeds)}-{max(seeds)}"
    else:
        digest = hashlib.sha256("".join(sorted(member.key for member in members)).encode()).hexdigest()[:8]
        families = "-".join(dict.fromkeys(member.run.task.split("/")[0] for member in members))
        folder = root / "runs" / "fleets" / f"{families}-{len(members)}-{digest}"
    free, number = folder, 1
    while (free / FLEET).exists():
        number += 1
        free = folder.with_name(f"{folder.name}-{number}")
    return free


def run_names(members: Sequence[Member]) -> list[str]:
    """Return a unique, descriptive name for each run."""
    if _same_settings(members):
        return [f"seed-{member.run.seed}" for member in members]
    names = [
        f"{member.run.task.split('/')[-1]}-{member.run.variant.method}-seed-{member.run.seed}" for member in members
    ]
    # Two settings of one method: their short names distinguish them.
    return [
        f"{name}-{member.settings}" if names.count(name) > 1 else name
        for name, member in zip(names, members, strict=True)
    ]


def fleet_title(folder: Path, members: Sequence[Member]) -> str:
    """Return the name to display."""
    tasks = list(dict.fromkeys(member.run.task for member in members))
    labels = list(dict.fromkeys(member.run.variant.label for member in members))
    seeds = [member.run.seed for member in members]
    spread = f"seeds {min(seeds)} to {max(seeds)}"
    if _same_settings(members):
        return f"{tasks[0]} {labels[0]} {spread}"
    return f"{folder.name}: {_listed(tasks, 'tasks')}; {_listed(labels, 'variants')}; {spread}"


def _listed(names: Sequence[str], kind: str) -> str:
    return ", ".join(names) if len(names) <= 6 else f"{len(names)} {kind}"


def _same_settings(members: Sequence[Member]) -> bool:
    return len({member.settings for member in members}) == 1


def _settings_folder(root: Path, config: dict[str, Any]) -> Path:
    place = str(config.get("task") or config.get("env")).replace("/", "-")
    return root / "runs" / place / f"{config['method']}-{configuration_key(config, frozenset({'seed'}))}"


Engine = Literal["process", "fleet"]


@dataclass
class Job:
    """The work of one process."""

    name: str
    order: dict[str, Any]
    """The worker's order, as plain JSON."""
    steps: int
    """Environment steps, or the study's units of work."""
    runs: int = 1
    resumed: bool = False
    watched: list[Path] = field(default_factory=list)
    """Record files that show its progress."""

    @property
    def log_name(self) -> str:
        """A file name for its log."""
        name = re.sub(r"[^A-Za-z0-9._-]+", "-", self.name)
        if len(name) > 150:  # many file systems allow only 255
            name = f"{name[:140]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"
        return f"{name}.log"

    @property
    def steps_left(self) -> int:
        """Remaining environment steps."""
        return max(0, self.steps - (sum(map(last_step, self.watched)) if self.resumed else 0))


@dataclass
class Plan:
    """The remaining jobs, and the number of runs that are finished."""

    jobs: list[Job]
    finished: int
    total: int


def study_file(root: Path, study: Study, seed: int) -> Path:
    """Return the file of a study's records; other arguments than the defaults give another file."""
    suffix = ""
    if study.arguments:
        suffix = "-" + hashlib.sha256(json.dumps(dict(study.arguments), sort_keys=True).encode()).hexdigest()[:8]
    return root / study.name / f"seed-{seed:04d}{suffix}.jsonl.gz"


def plan_study(root: Path, study: Study) -> Plan:
    """Return the jobs for the remaining seeds of a study."""
    from backsweep.lab.studies.registry import STUDIES

    jobs = []
    for seed in study.seeds:
        path = study_file(root, study, seed)
        if not path.exists():
            arguments = dict(study.arguments)
            order = {"kind": "study", "study": study.name, "seed": seed, "arguments": arguments, "file": str(path)}
            work = int(STUDIES[study.name].work(**arguments))
            jobs.append(Job(f"{study.name} seed {seed}", order, work))
    return Plan(jobs, len(study.seeds) - len(jobs), len(study.seeds))


def plan_training(
    root: Path, runs: Iterable[PlannedRun], engine: Engine, device: str, fleet_size: int = MOST_RUNS, workers: int = 1
) -> Plan:
    """Return the remaining training jobs; a run that is requested twice is run once."""
    known, archived = _known_runs(root), _archived_runs(root)
    members = {member.key: member for run in runs for member in [Member(run, run_configuration(run))]}
    fresh: list[Member] = []
    stale: dict[str, Path] = {}
    interrupted: dict[Path, dict[Path, Member]] = {}
    finished = 0
    for key, member in members.items():
        folder = known.get(key)
        if key in archived:
            finished += 1
        elif folder is None:
            fresh.append(member)
        elif (folder / FINISHED).exists():
            finished += 1
        elif (place := resume_folder(folder)) is not None:
            interrupted.setdefault(place, {})[folder] = member
        else:
            fresh.append(member)
            stale[key] = folder
    jobs = [_resumed_job(place, members, device) for place, members in interrupted.items()]
    fleets = group_into_fleets(fresh, fleet_size, workers) if engine == "fleet" else [[member] for member in fresh]
    jobs += [_new_job(root, fleet, stale, device) for fleet in fleets]
    return Plan(jobs, finished, len(members))


def run_configuration(run: PlannedRun) -> dict[str, Any]:
    """Return a run's complete configuration, as its folder stores it."""
    from backsweep.agent import run_config

    options = {"settings": "paper", **run.options}
    where = {"env" if is_gymnasium_id(run.task) else "task": run.task}
    return run_config(**where, method=run.variant.method, seed=run.seed, **options).to_json()


def plan(
    root: Path,
    work: Sequence[Grid | Study],
    engine: Engine,
    device: str = "cpu",
    fleet_size: int = MOST_RUNS,
    workers: int = 1,
) -> Plan:
    """Return the remaining jobs of several questions."""
    studies = [each for place, each in enumerate(work) if isinstance(each, Study) and each not in work[:place]]
    plans = [plan_study(root, study) for study in studies]
    runs = [run for each in work if isinstance(each, Grid) for run in each.runs()]
    if runs:
        plans.append(plan_training(root, runs, engine, device, fleet_size, workers))
    return Plan(
        [job for found in plans for job in found.jobs],
        sum(found.finished for found in plans),
        sum(found.total for found in plans),
    )


def _new_job(root: Path, members: list[Member], stale: dict[str, Path], device: str) -> Job:
    if len(members) == 1:
        folder, names, title = run_folder(root, members[0].config), ["."], members[0].run.name
    else:
        folder, names = fleet_folder(root, members), run_names(members)
        title = fleet_title(folder, members)
    configs = {name: member.config for name, member in zip(names, members, strict=True)}
    removed = [str(stale[member.key]) for member in members if member.key in stale]
    order = {"kind": "train", "folder": str(folder), "device": device, "configs": configs, "removed": removed}
    steps = sum(int(member.config["steps"]) for member in members)
    return Job(title, order, steps, len(members), watched=[folder / name / RECORDS for name in names])


def _resumed_job(place: Path, runs: dict[Path, Member], device: str) -> Job:
    alone = place in runs
    members = list(runs.values())
    configs = {"." if alone else folder.name: member.config for folder, member in runs.items()}
    order = {"kind": "resume", "folder": str(place), "device": device, "configs": configs}
    title = members[0].run.name if alone else fleet_title(place, members)
    steps = sum(int(member.config["steps"]) for member in members)
    return Job(title, order, steps, len(runs), True, [folder / RECORDS for folder in runs])


def resume_folder(folder: Path) -> Path | None:
    """Return the folder with the checkpoint of an unfinished run or of its fleet.

    None if the run has to restart: killed before the first checkpoint, or failed and left by its fleet since.
    """
    from backsweep.agent.session import checkpoint
    from backsweep.agent.session.folder import SINGLE, RunError

    alone = not (folder.parent / FLEET).exists()
    place, name = (folder, SINGLE) if alone else (folder.parent, folder.name)
    try:
        return place if checkpoint.holds(place, name) else None
    except RunError:
        return place  # its job will say what is wrong


def _archived_runs(root: Path) -> set[str]:
    """Return the key of every packed run."""
    return {
        configuration_key(run.config, frozenset())
        for path in archives_below(root)
        for run in read_archive(path)
        if run is not None
    }


def _known_runs(root: Path) -> dict[str, Path]:
    """Return the folder of every existing run by its key; finished runs take precedence."""
    found: dict[str, Path] = {}
    for path in sorted(root.rglob(CONFIG)):
        try:
            key = configuration_key(json.loads(path.read_text()), frozenset())
        except (OSError, ValueError):
            continue
        if key not in found or (path.parent / FINISHED).exists():
            found[key] = path.parent
    return found
