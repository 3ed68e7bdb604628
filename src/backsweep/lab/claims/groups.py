"""Groups of runs that may be compared: same task, same settings, same seeds.

Two runs belong to one group if their configurations differ only in the seed, the method and the options that the
question varies. Only runs of one group are compared; only runs that differ in nothing but the seed are averaged.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from backsweep.lab.claims.evidence import Evidence, TrainedRun, configuration_key
from backsweep.lab.claims.question import Question, Variant
from backsweep.lab.stats import area_under

Measure = Callable[[TrainedRun], float]
PER_METHOD = {"released": frozenset({"capacity"})}
"""Options that differ between methods under some settings: D1, baselines with a small capacity."""
FEWEST_SEEDS = 3  # fewer paired seeds decide nothing


def final(values: NDArray[np.float64]) -> float:
    """Return the mean of the last tenth of a run's evaluations."""
    return float(values[-max(1, len(values) // 10) :].mean())


def final_score(run: TrainedRun) -> float:
    """Return a run's score at the end."""
    return final(run.score)


def final_mean_return(run: TrainedRun) -> float:
    """Return a run's mean return at the end, in the task's own units."""
    return final(run.numbers["mean_return"])


def area(run: TrainedRun) -> float:
    """Return the area under a run's curve, per step."""
    return area_under(run.steps, run.score)


def success(run: TrainedRun) -> NDArray[np.float64]:
    """Return the share of episodes that reach the goal, or the score where that is not known exactly."""
    shares = run.numbers["exact_success"]
    return run.score if np.isnan(shares).any() else shares


def final_success(run: TrainedRun) -> float:
    """Return the share of episodes that reach the goal at the end."""
    return final(success(run))


def success_area(run: TrainedRun) -> float:
    """Return the area under a run's share of episodes that reach the goal, per step."""
    return area_under(run.steps, success(run))


def overestimate(run: TrainedRun) -> float:
    """Return the value of the first state minus the discounted return, at the end of the run."""
    return float(run.numbers["start_value"][-1] - run.numbers["discounted_return"][-1])


@dataclass
class Group:
    """The finished runs of one task with shared settings, by variant."""

    task: str
    settings: str
    runs: dict[str, dict[int, TrainedRun]] = field(default_factory=dict)
    exact: dict[str, str] = field(default_factory=dict)
    """The key of each variant's configuration without the seed."""

    @property
    def size(self) -> int:
        """The number of runs."""
        return sum(map(len, self.runs.values()))

    def seeds(self, labels: Sequence[str]) -> list[int]:
        """Return the seeds that these variants share."""
        found = [set(self.runs.get(label, {})) for label in labels]
        return sorted(set.intersection(*found)) if found else []

    def rank(self, compared: Sequence[str]) -> tuple[int, int, int, int]:
        """Return its rank: most compared variants, enough seeds, long runs, many runs."""
        there = [label for label in compared if label in self.runs]
        longest = max(int(run.steps[-1]) for seeds in self.runs.values() for run in seeds.values())
        return len(there), min(len(self.seeds(there)), FEWEST_SEEDS), longest, self.size


Groups = dict[str, Group]
"""By task."""


def on_one_scale(groups: Groups) -> bool:
    """Return whether scores of these tasks may be averaged: returns without bounds are in each task's own units."""
    return len(groups) == 1 or all(
        run.bounded for group in groups.values() for runs in group.runs.values() for run in runs.values()
    )


def groups_of(
    evidence: Evidence, variants: Sequence[Variant], tasks: Sequence[str] = (), compared: Sequence[str] = ()
) -> Groups:
    """Return the best group of finished runs of each task; the others are reported as skipped.

    Groups are ranked by the variants `compared`, by default all of them.
    """
    compared = compared or [variant.label for variant in variants]
    varied = frozenset({name for variant in variants for name in variant.option_names})
    found: dict[tuple[str, str], Group] = {}
    for run in evidence.runs:
        if tasks and run.task not in tasks:
            continue
        variant = next((entry for entry in variants if belongs_to(run, entry)), None)
        if variant is None:
            continue
        if not run.finished:
            evidence.left_out.append(f"{run.shown(evidence.root)}: not finished")
            continue
        own = frozenset({"seed", "method"}) | PER_METHOD.get(run.follows, frozenset())
        key = configuration_key(run.config, varied | own)
        group = found.setdefault((run.task, key), Group(run.task, key))
        seeds = group.runs.setdefault(variant.label, {})
        whole = configuration_key(run.config, frozenset({"seed"}))
        if group.exact.setdefault(variant.label, whole) != whole:
            evidence.left_out.append(f"{run.shown(evidence.root)}: its settings differ from those of the other seeds")
            continue
        if run.seed in seeds:
            evidence.left_out.append(f"{run.shown(evidence.root)}: a duplicate of another run")
            continue
        seeds[run.seed] = run
    best: Groups = {}
    for (task, _), group in sorted(found.items()):
        rival = best.get(task)
        if rival is None or group.rank(compared) > rival.rank(compared):
            best[task] = group
        if rival is not None:
            other = rival if best[task] is group else group
            evidence.left_out.append(not_compared(task, other.size, other.settings))
    return best


def not_compared(task: str, count: int, settings: str = "") -> str:
    """Return the remark about runs of a task with other settings than those compared."""
    runs, are = ("1 run", "is") if count == 1 else (f"{count} runs", "are")
    return f"{task}: {runs} with other settings{f' ({settings})' if settings else ''} {are} not compared"


def groups_for(question: Question, evidence: Evidence) -> Groups:
    """Return the groups of a question's runs, with all of its variants."""
    found: Groups = evidence.once(
        f"groups of {question.id}",
        lambda evidence: groups_of(evidence, question.variants, question.tasks, question.compared),
    )
    return found


def complete(groups: Groups, labels: Sequence[str]) -> Groups:
    """Return the tasks where these variants share a seed."""
    return {task: group for task, group in groups.items() if group.seeds(labels)}


def comparable(question: Question, groups: Groups) -> list[str]:
    """Return the variants that have scores, in the question's order.

    Those are the ones that its rule compares, and others with the same tasks and seeds.
    """
    places = complete(groups, question.compared).values()

    def has_all(label: str) -> bool:
        return all(set(place.seeds(question.compared)) <= set(place.runs.get(label, {})) for place in places)

    labels = [variant.label for variant in question.variants]
    return [label for label in labels if label in question.compared or has_all(label)]


def scores(groups: Groups, labels: Sequence[str], measure: Measure) -> dict[str, NDArray[np.float64]]:
    """Return each variant's scores (runs, tasks); row i is the same seed of a task for every variant.

    Tasks where a variant is missing are left out; all tasks are cut to the number of seeds that every task has.
    """
    usable = {task: group.seeds(labels) for task, group in complete(groups, labels).items()}
    if not usable:
        return {}
    count = min(map(len, usable.values()))
    return {
        label: np.array(
            [[measure(groups[task].runs[label][seed]) for seed in seeds[:count]] for task, seeds in usable.items()]
        ).T
        for label in labels
    }


def belongs_to(run: TrainedRun, variant: Variant) -> bool:
    """Return whether a run belongs to a variant; options are compared as JSON."""
    if run.method != variant.method:
        return False
    wanted = variant.options_on(run.task, run.follows)
    return all(run.option(name) == json.loads(json.dumps(value)) for name, value in wanted.items())
