"""How soon each method solves each task with our settings: the page's first picture, and the README's."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from backsweep.agent.palette import METHODS, in_order, title_of
from backsweep.lab.claims.evidence import Evidence
from backsweep.lab.claims.goal_rules import SOLVED, kept
from backsweep.lab.claims.question import Question
from backsweep.lab.report.chart import DotChart, DotRow, Dots, short_number, task_title
from backsweep.lab.stats.curves import steps_to_keep

STOPPED = "*-stopped.json"
"""Runs that were stopped before their end, in `checks/`: they count up to where they came."""


@dataclass(frozen=True)
class Soonest:
    """When each run solved its task for good, by task and method; infinity where it did not."""

    steps: dict[tuple[str, str], dict[int, float]]
    budget: int

    @property
    def methods(self) -> list[str]:
        """The methods, in the legend's order."""
        return in_order(method for _, method in self.steps)

    @property
    def tasks(self) -> list[str]:
        """The tasks, from the one that is solved first by any method to the last."""
        found = {task for task, _ in self.steps}
        return sorted(found, key=lambda task: (min(self.medians(task).values()), task))

    def medians(self, task: str) -> dict[str, float]:
        """Return the median over seeds of each method on a task."""
        return {
            method: float(np.median(list(self.steps[task, method].values())))
            for method in self.methods
            if (task, method) in self.steps
        }

    def reached(self, task: str, method: str) -> tuple[int, int]:
        """Return how many runs solved the task, of how many."""
        found = list(self.steps[task, method].values())
        return int(np.isfinite(found).sum()), len(found)


def read_soonest(evidence: Evidence, question: Question) -> Soonest | None:
    """Return when the runs of a question's tasks with our settings solve them; None where two methods are not there.

    Only runs with the largest budget count, and methods that are there on every task: a picture with holes misleads.
    """
    runs = [
        run
        for run in evidence.runs
        if run.follows == "ours" and run.task in question.tasks and run.finished and run.method in METHODS
    ]
    runs = [run for run in runs if not np.isnan(run.numbers["exact_success"]).any()]
    budget = max((int(run.config["steps"]) for run in runs), default=0)
    found: dict[tuple[str, str], dict[int, float]] = defaultdict(dict)
    for run in runs:
        if run.config["steps"] == budget:
            time, done = kept(run)
            found[run.task, run.method][run.seed] = time if done else np.inf
    for path in sorted(evidence.root.glob(f"checks/{STOPPED}")):
        for (task, method), seeds in _stopped(path, budget).items():
            if task in question.tasks:
                found[task, method].update({seed: at for seed, at in seeds.items() if seed not in found[task, method]})
    tasks = {task for task, _ in found}
    whole = [m for m in in_order(method for _, method in found) if all((task, m) in found for task in tasks)]
    if len(whole) < 2:
        return None
    return Soonest({place: seeds for place, seeds in found.items() if place[1] in whole}, budget)


def _stopped(path: Path, budget: int) -> dict[tuple[str, str], dict[int, float]]:
    entries = json.loads(path.read_text())
    found: dict[tuple[str, str], dict[int, float]] = defaultdict(dict)
    for entry in entries["runs"]:
        config = {**entries["shared"], **entry["config"]}
        numbers = entry["evaluations"]
        if config["steps"] == budget:
            time, done = steps_to_keep(numbers["step"], numbers["exact_success"], SOLVED)
            found[config["task"], config["method"]][int(config["seed"])] = time if done else np.inf
    return found


def soonest_chart(found: Soonest) -> DotChart:
    """Return the picture: a row for each task, a strip for each method, a dot for each seed, a bar to the median."""
    rows = []
    for task in found.tasks:
        medians = found.medians(task)
        dots = []
        for method in found.methods:
            solved, runs = found.reached(task, method)
            note = "" if solved == runs else f"{solved} of {runs} runs get there"
            dots.append(Dots(method, sorted(found.steps[task, method].values()), medians[method], note=note))
        rows.append(DotRow(task_title(task), dots, task))
    return DotChart(
        "soonest",
        f"Environment steps until {SOLVED:.0%} of episodes are solved for good",
        "environment steps; a dot for each seed, a bar to the median",
        rows,
        x_shows=(0.0, float(found.budget)),
        bars=True,
        beyond=f"not within {short_number(found.budget)}",
    )


def soonest_sentence(found: Soonest) -> str:
    """Return in one sentence who is first, where, and by how much."""
    first = {task: min(found.medians(task).items(), key=lambda entry: entry[1]) for task in found.tasks}
    winners = [method for method, at in first.values() if np.isfinite(at)]
    if not winners:
        return f"No method solves a task within {short_number(found.budget)} steps."
    winner = max(found.methods, key=winners.count)
    title = title_of(winner)
    mine = [found.medians(task)[winner] for task in found.tasks if first[task][0] == winner]
    count = winners.count(winner)
    where = f"all {count} tasks" if count == len(found.tasks) else f"{count} of {len(found.tasks)} tasks"
    ratios, alone = [], []
    for task in (task for task in found.tasks if first[task][0] == winner):
        rival = min(at for method, at in found.medians(task).items() if method != winner)
        if np.isfinite(rival):
            ratios.append(rival / found.medians(task)[winner])
        else:
            alone.append(task_title(task))
    lead = (
        f"; the next best needs {_span([f'{ratio:.1f}' for ratio in sorted(ratios)])} times as many" if ratios else ""
    )
    lead += f", and on {' and '.join(alone)} no other method's median run gets there" if alone else ""
    after = f"after {_span([short_number(steps) for steps in sorted(mine)])} steps by the median seed"
    return f"{title[0].upper()}{title[1:]} solve {where} first, {after}{lead}."


def _span(ordered: list[str]) -> str:
    return ordered[0] if ordered[0] == ordered[-1] else f"{ordered[0]} to {ordered[-1]}"
