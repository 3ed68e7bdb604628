"""Which runs may share a fleet, and the names of fleets and of their runs."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from backsweep.lab.claims.evidence import configuration_key
from backsweep.lab.claims.question import Run
from backsweep.run_files import FLEET

MOST_RUNS = 128
"""The largest size of a fleet by default."""


@dataclass(frozen=True)
class Member:
    """A run with its whole configuration."""

    run: Run
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

    whole = RunConfig.from_json(config)
    shared = {name: value for name, value in whole.to_json().items() if name not in OWN_FIELDS}
    spaces = _spaces(whole.task, whole.env, tuple(sorted(task_options(whole).items())))
    # Methods with one-step or given targets share one update (see learner.rules.common_rule). Everything else that a
    # rule depends on is a field of the configuration.
    kind = method_for(whole).rule.kind
    update = kind if kind in ("discor", "advantage") else "others"
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
