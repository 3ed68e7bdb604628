"""Which runs may share a fleet, and the names of fleets and lanes."""

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

FLEET_FILE = "fleet.json"
MOST_LANES = 128


@dataclass(frozen=True)
class Member:
    """A run with its whole configuration."""

    run: Run
    config: dict[str, Any]

    @property
    def key(self) -> str:
        """Its name among all runs."""
        return configuration_key(self.config, frozenset())

    @property
    def settings(self) -> str:
        """The name of its configuration but for the seed."""
        return configuration_key(self.config, frozenset({"seed"}))


def sharing_key(config: dict[str, Any]) -> str:
    """Return what runs of one fleet have in common: two runs with the same key may share one.

    That is every field that is not specific to a run, the kind of update, and the form of observations and actions.
    """
    from backsweep.agent import RunConfig, method_for
    from backsweep.agent.defaults import task_options
    from backsweep.agent.fleet.fleet import OWN_FIELDS

    whole = RunConfig.from_json(config)
    shared = {name: value for name, value in whole.to_json().items() if name not in OWN_FIELDS}
    form = _form(whole.task, whole.env, tuple(sorted(task_options(whole).items())))
    # Methods with one-step or given targets learn alike (see learner.rules.common_rule); what else a rule depends on
    # are fields of the configuration.
    kind = method_for(whole).rule.kind
    alike = kind if kind in ("discor", "advantage") else "others"
    return json.dumps([shared, alike, form], sort_keys=True)


@lru_cache(maxsize=64)
def _form(task: str | None, env: str | None, options: tuple[tuple[str, Any], ...]) -> tuple[str, int]:
    """Return the observation's form and the number of actions of a task or environment."""
    from backsweep.tasks.resumable import make_environments

    envs = make_environments(task, env, 1, 0, dict(options))
    try:
        return str(envs.observation_space), int(envs.num_actions)
    finally:
        envs.close()


def together(members: Sequence[Member], lanes: int, workers: int = 1) -> list[list[Member]]:
    """Return the fleets: runs that may share one, at most `lanes` in each, with one for each worker if possible.

    Fleets of one kind are about equally large.
    """
    kinds: dict[str, list[Member]] = {}
    for member in members:
        kinds.setdefault(sharing_key(member.config), []).append(member)
    counts = _shared_out([len(same) for same in kinds.values()], lanes, workers)
    fleets = []
    for same, count in zip(kinds.values(), counts, strict=True):
        # Runs of one length end together; in a fleet that shrinks, the last runs bear the whole cost.
        ordered = sorted(same, key=lambda member: -int(member.config["steps"]))
        ends = [place * len(ordered) // count for place in range(count + 1)]
        fleets += [ordered[start:end] for start, end in itertools.pairwise(ends)]
    return fleets


def _shared_out(sizes: Sequence[int], lanes: int, workers: int) -> list[int]:
    """Return the number of fleets of each kind: as `lanes` requires, and more of the largest for idle workers."""
    counts = [-(-size // lanes) for size in sizes]
    for _ in range(min(workers, sum(sizes)) - sum(counts)):
        largest = max(range(len(sizes)), key=lambda kind: sizes[kind] / counts[kind])
        counts[largest] += 1
    return counts


def run_folder(root: Path, config: dict[str, Any]) -> Path:
    """Return the folder of a run: RESULTS/runs/TASK/METHOD-SETTINGS/seed-N."""
    return _settings_folder(root, config) / f"seed-{config['seed']}"


def fleet_folder(root: Path, members: Sequence[Member]) -> Path:
    """Return an unused folder for a fleet."""
    if _alike(members):
        seeds = [member.run.seed for member in members]
        folder = _settings_folder(root, members[0].config) / f"fleet-{min(seeds)}-{max(seeds)}"
    else:
        everyone = hashlib.sha256("".join(sorted(member.key for member in members)).encode()).hexdigest()[:8]
        families = "-".join(dict.fromkeys(member.run.task.split("/")[0] for member in members))
        folder = root / "runs" / "fleets" / f"{families}-{len(members)}-{everyone}"
    free, number = folder, 1
    while (free / FLEET_FILE).exists():
        number += 1
        free = folder.with_name(f"{folder.name}-{number}")
    return free


def lane_names(members: Sequence[Member]) -> list[str]:
    """Return a unique, descriptive name for each lane."""
    if _alike(members):
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
    """Return the displayed name."""
    tasks = list(dict.fromkeys(member.run.task for member in members))
    labels = list(dict.fromkeys(member.run.variant.label for member in members))
    seeds = [member.run.seed for member in members]
    spread = f"seeds {min(seeds)} to {max(seeds)}"
    if _alike(members):
        return f"{tasks[0]} {labels[0]} {spread}"
    return f"{folder.name}: {_listed(tasks, 'tasks')}; {_listed(labels, 'variants')}; {spread}"


def _listed(names: Sequence[str], kind: str) -> str:
    return ", ".join(names) if len(names) <= 6 else f"{len(names)} {kind}"


def _alike(members: Sequence[Member]) -> bool:
    return len({member.settings for member in members}) == 1


def _settings_folder(root: Path, config: dict[str, Any]) -> Path:
    place = str(config.get("task") or config.get("env")).replace("/", "-")
    return root / "runs" / place / f"{config['method']}-{configuration_key(config, frozenset({'seed'}))}"
