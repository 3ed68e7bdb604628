"""Runs of DreamerV2 from the records of `benchmarks.world_model`, and the project's own runs at the same steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backsweep.lab.claims.evidence import Evidence, TrainedRun
from backsweep.lab.claims.groups import groups_of, success
from backsweep.lab.claims.measured_rules import reported
from backsweep.lab.claims.question import Variant

KIND = "world-model"
WORLD_MODEL = "DreamerV2"
_FIELDS = ("step", "normalised_return", "success", "seconds")


@dataclass(frozen=True, eq=False)
class Learned:
    """The evaluations of one run, (evaluations,) each."""

    steps: NDArray[np.float64]
    score: NDArray[np.float64]
    """Normalised return."""
    success: NDArray[np.float64]
    """Share of episodes that reach the goal."""
    minutes: NDArray[np.float64]
    """Since the start of the run, evaluations included; NaN where a run shared its time with others."""

    def at(self, steps: NDArray[np.float64]) -> Learned:
        """Return the evaluations at these steps, all of which it must have."""
        chosen = np.isin(self.steps, steps)
        return Learned(self.steps[chosen], self.score[chosen], self.success[chosen], self.minutes[chosen])


@dataclass(frozen=True, eq=False)
class Place:
    """A task on which DreamerV2 and TER have seeds and evaluations in common."""

    task: str
    steps: NDArray[np.float64]
    seeds: tuple[int, ...]
    runs: dict[str, list[Learned]]
    """Of each method, in the order of the seeds, at these steps."""


def trained(run: TrainedRun) -> Learned:
    """Return the evaluations of one of the project's own runs."""
    return Learned(run.steps, run.score, success(run), np.full(len(run.steps), np.nan))


def world_model_runs(evidence: Evidence) -> dict[str, dict[int, Learned]]:
    """Return the runs of DreamerV2 by task and seed; records that make no sense are left out, and reported."""
    rows: dict[tuple[str, int], dict[float, tuple[float, ...]]] = {}
    for record in reported(evidence, KIND):
        row = _row(record)
        if row is None:
            evidence.left_out.append(f"a record of {WORLD_MODEL} without its task, seed or numbers")
            continue
        known = rows.setdefault((record["task"], record["seed"]), {})
        if known.setdefault(row[0], row) != row:
            evidence.left_out.append(f"{record['task']}, {WORLD_MODEL} seed {record['seed']}: step {row[0]:,.0f} twice")
    found: dict[str, dict[int, Learned]] = {}
    for (task, seed), by_step in sorted(rows.items()):
        steps, score, share, seconds = np.array([by_step[step] for step in sorted(by_step)]).T
        found.setdefault(task, {})[seed] = Learned(steps, score, share, seconds / 60)
    return found


def _row(record: dict[str, Any]) -> tuple[float, ...] | None:
    """Return the numbers of a record, None if it has not all of them."""
    numbers = [record.get(name) for name in _FIELDS]
    if not isinstance(record.get("task"), str) or type(record.get("seed")) is not int:
        return None
    if not all(isinstance(number, (int, float)) and np.isfinite(number) for number in numbers):
        return None
    return tuple(float(number) for number in numbers if number is not None)


def places(evidence: Evidence, variants: Sequence[Variant], tasks: Sequence[str]) -> list[Place]:
    """Return the tasks that can be compared, each cut to the seeds and steps shared by DreamerV2 and the first variant.

    Other variants are there if they have these seeds and steps as well.
    """
    first, *others = (variant.label for variant in variants)
    rivals, groups = world_model_runs(evidence), groups_of(evidence, variants, tasks, (first,))
    found = []
    for task in (task for task in tasks if task in rivals and task in groups):
        own = {label: {seed: trained(run) for seed, run in runs.items()} for label, runs in groups[task].runs.items()}
        everyone = {WORLD_MODEL: rivals[task], **own}
        seeds = sorted(set(rivals[task]) & set(own.get(first, {})))
        if not seeds:
            continue
        steps = _shared([everyone[label][seed] for label in (first, WORLD_MODEL) for seed in seeds])
        if not len(steps):
            evidence.left_out.append(f"{task}: {WORLD_MODEL} and {first} were never evaluated at the same step")
            continue
        runs = {
            label: [everyone[label][seed].at(steps) for seed in seeds]
            for label in (first, *others, WORLD_MODEL)
            if set(seeds) <= set(everyone.get(label, {}))
            and np.array_equal(_shared([*(everyone[label][seed] for seed in seeds)], steps), steps)
        }
        found.append(Place(task, steps, tuple(seeds), runs))
    return found


def _shared(runs: Sequence[Learned], steps: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
    """Return the steps at which all runs were evaluated, of the given ones."""
    shared = runs[0].steps if steps is None else steps
    for run in runs:
        shared = np.intersect1d(shared, run.steps)
    return shared
