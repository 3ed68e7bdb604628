"""How soon each method solves each task with our settings: the page's first picture, and the README's."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from backsweep.agent.palette import in_order, title_of
from backsweep.lab.claims.evidence import Evidence
from backsweep.lab.claims.goal_rules import SOLVED, kept
from backsweep.lab.claims.groups import groups_for
from backsweep.lab.claims.question import Question, all_of
from backsweep.lab.report.chart import DotCategory, DotChart, Dots, short_number, task_title
from backsweep.lab.stats import quantile

MOST_DRAWN = 8


@dataclass(frozen=True)
class SolvingTimes:
    """When each run solved its task for good, by task and method; infinity where it did not."""

    steps: dict[tuple[str, str], dict[int, float]]
    budget: int

    @property
    def methods(self) -> list[str]:
        """The methods, in the legend's order."""
        return in_order(method for _, method in self.steps)

    @property
    def tasks(self) -> list[str]:
        """The tasks, in the order in which any method solves them."""
        found = {task for task, _ in self.steps}
        return sorted(found, key=lambda task: (min(self.medians(task).values()), task))

    def medians(self, task: str) -> dict[str, float]:
        """Return the median over seeds of each method on a task: the step by which half of its runs solve it."""
        return {method: self._median(task, method) for method in self.methods if (task, method) in self.steps}

    def _median(self, task: str, method: str) -> float:
        steps = np.array(list(self.steps[task, method].values()))
        return quantile(steps, np.isfinite(steps))

    @property
    def drawn(self) -> list[str]:
        """The methods in the picture: if there are many, those whose median run solves two thirds of the tasks."""
        if len(self.methods) <= MOST_DRAWN:
            return self.methods
        least = 2 * len(self.tasks) / 3
        return [m for m in self.methods if sum(np.isfinite(self.medians(task)[m]) for task in self.tasks) >= least]

    def reached(self, task: str, method: str) -> tuple[int, int]:
        """Return how many runs solved the task, of how many."""
        found = list(self.steps[task, method].values())
        return int(np.isfinite(found).sum()), len(found)

    def mean(self, method: str) -> float:
        """Return the mean over tasks of the mean over seeds; a run that does not get there counts with its budget."""
        seeds = [np.minimum(list(self.steps[task, method].values()), self.budget) for task in self.tasks]
        return float(np.mean([steps.mean() for steps in seeds]))


def read_soonest(evidence: Evidence, question: Question) -> SolvingTimes | None:
    """Return when a question's runs solve its tasks; None with fewer than two methods.

    Only runs with the largest budget count, and methods with runs on every task.
    """
    runs = [
        (label, run)
        for group in groups_for(question, evidence).values()
        for label, seeds in group.runs.items()
        for run in seeds.values()
        if run.follows == "ours" and not np.isnan(run.numbers["exact_success"]).any()
    ]
    budget = max((int(run.config["steps"]) for _, run in runs), default=0)
    found: dict[tuple[str, str], dict[int, float]] = defaultdict(dict)
    for label, run in runs:
        if run.config["steps"] == budget:
            time, done = kept(run)
            found[run.task, label][run.seed] = time if done else np.inf
    tasks = {task for task, _ in found}
    whole = [m for m in in_order(method for _, method in found) if all((task, m) in found for task in tasks)]
    if len(whole) < 2:
        return None
    return SolvingTimes({place: seeds for place, seeds in found.items() if place[1] in whole}, budget)


def soonest_chart(found: SolvingTimes) -> DotChart:
    """Return the chart: a category for each task, a strip for each method, a dot for each seed, a bar to the median."""
    categories = []
    for task in found.tasks:
        medians = found.medians(task)
        dots = []
        for method in found.drawn:
            solved, runs = found.reached(task, method)
            note = "" if solved == runs else f"{solved} of {runs} runs get there"
            dots.append(Dots(method, sorted(found.steps[task, method].values()), medians[method], note=note))
        categories.append(DotCategory(task_title(task), dots, task))
    return DotChart(
        "soonest",
        f"Environment steps until {SOLVED:.0%} of episodes are solved for good",
        "environment steps; a dot for each seed, a bar to the median",
        categories,
        x_shows=(0.0, float(found.budget)),
        bars=True,
        beyond=f"not within {short_number(found.budget)}",
    )


def soonest_sentence(found: SolvingTimes) -> str:
    """Return who is first, where, and by how much, in one sentence."""
    first = {task: min(found.medians(task).items(), key=lambda entry: entry[1]) for task in found.tasks}
    winners = [method for method, at in first.values() if np.isfinite(at)]
    if not winners:
        return f"No method solves a task within {short_number(found.budget)} steps."
    winner = max(found.methods, key=winners.count)
    title = title_of(winner)
    mine = [found.medians(task)[winner] for task in found.tasks if first[task][0] == winner]
    count = winners.count(winner)
    where = (
        f"{all_of(count).lower()} tasks" if 1 < count == len(found.tasks) else f"{count} of {len(found.tasks)} tasks"
    )
    ratios, alone = [], []
    for task in (task for task in found.tasks if first[task][0] == winner):
        rival = min(at for method, at in found.medians(task).items() if _method_of(method) != _method_of(winner))
        if np.isfinite(rival):
            ratios.append(rival / found.medians(task)[winner])
        else:
            alone.append(task_title(task))
    relatives = [method for method in found.methods if method != winner and _method_of(method) == _method_of(winner)]
    lead = ""
    if ratios:
        next_best = f"the best method without {title}" if relatives else "the next best method"
        lead = f"; {next_best} needs {_times(ratios)} times as many"
    own = []
    for method in relatives:
        medians = [(found.medians(task)[method], at) for task, (who, at) in first.items() if who == winner]
        if solved := [theirs / at for theirs, at in medians if np.isfinite(theirs)]:
            own.append(f"{title_of(method)}: {_times(solved)}")
    lead += f" ({'; '.join(own)})" if lead and own else ""
    lead += f", and on {' and '.join(alone)} no other method's median run gets there" if alone else ""
    elsewhere: dict[str, list[str]] = {}
    for task in found.tasks:
        if first[task][0] != winner and np.isfinite(first[task][1]):
            elsewhere.setdefault(title_of(first[task][0]), []).append(task_title(task))
    lead += "".join(f"; {other} is first on {' and '.join(tasks)}" for other, tasks in elsewhere.items())
    after = f"after {_span([short_number(steps) for steps in sorted(mine)])} steps by the median seed"
    return f"{title[0].upper()}{title[1:]} solve {where} first, {after}{lead}."


def _method_of(line: str) -> str:
    """Return the method of a line; "graph, uniform exploration" is one of graph."""
    return line.partition(", ")[0]


def _times(ratios: list[float]) -> str:
    return _span([f"{ratio:.1f}" for ratio in sorted(ratios)])


def _span(ordered: list[str]) -> str:
    return ordered[0] if ordered[0] == ordered[-1] else f"{ordered[0]} to {ordered[-1]}"
