"""What rules about training runs share: the runs that they use, those that are missing, and their verdict."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from backsweep.jit.random_streams import named_generator
from backsweep.lab.claims.evidence import Evidence
from backsweep.lab.claims.groups import FEWEST_SEEDS, Group, Groups, Measure, complete, groups_of, scores
from backsweep.lab.claims.question import NOT_RUN, Check, Table, Variant, Verdict, all_checks, all_of
from backsweep.lab.stats import holm, paired_difference
from backsweep.tasks import find_task

STATED = ("minigrid", "sokoban")  # families whose budgets the paper or its released scripts state


def runs_for(
    evidence: Evidence, variants: Sequence[Variant], tasks: Sequence[str], compared: Sequence[str]
) -> tuple[Groups, Verdict]:
    """Return the tasks where all compared variants share a seed; without any, a verdict that says so."""
    found = groups_of(evidence, variants, tasks, compared)
    usable = complete(found, compared)
    if usable:
        return usable, NOT_RUN
    runs = sum(group.size for group in found.values())
    there_are = "There is 1 run" if runs == 1 else f"There are {runs} runs"
    if not runs:
        return {}, NOT_RUN
    there = {label for group in found.values() for label in group.runs}
    missing = [label for label in compared if label not in there]
    if missing:
        text = f"{there_are} of {', '.join(sorted(there))}, none of {', '.join(missing)}."
        return {}, Verdict("not run", text)
    text = f"{there_are}, but no task has a seed that all compared methods share."
    return {}, Verdict("inconclusive", text, records=runs)


class TrainingRule(abc.ABC):
    """A rule about the training runs of some variants on some tasks."""

    variants: tuple[Variant, ...]
    tasks: tuple[str, ...]

    @property
    def compared(self) -> tuple[str, ...]:
        """The variants that the rule needs."""
        return tuple(variant.label for variant in self.variants)

    @abc.abstractmethod
    def decide(self, evidence: Evidence) -> Verdict:
        """Return the verdict about the runs of the evidence."""


class PairedRule(TrainingRule):
    """A rule about runs with the same seeds: finds the tasks where all that is compared has some, and judges them."""

    def decide(self, evidence: Evidence) -> Verdict:
        groups, missing = runs_for(evidence, self.variants, self.tasks, self.compared)
        return self.judge(groups) if groups else missing

    @abc.abstractmethod
    def judge(self, groups: Groups) -> Verdict:
        """Return the verdict about runs of all that is compared, by task."""

    def conclude(
        self,
        checks: list[Check],
        groups: Groups,
        table: Table,
        more: dict[str, Table] | None = None,
        *,
        one_by_one: bool = False,
        **words: str,
    ) -> Verdict:
        """Return the verdict about the tasks that were run; with too few paired seeds it is inconclusive.

        `one_by_one` says that each task is judged alone, with all of its seeds.
        """
        seeds = [len(group.seeds(self.compared)) for group in groups.values()]
        told = statement(groups, self.compared, self.tasks, one_by_one=one_by_one)
        verdict = all_checks(checks, told, table, sum(seeds) * len(self.compared), more, **words)
        if len(groups) < len(self.tasks):
            verdict = replace(verdict, about=_counted(len(groups), len(self.tasks)))
        if min(seeds) >= FEWEST_SEEDS:
            return verdict
        text = f"{verdict.summary} Fewer than {FEWEST_SEEDS} seeds decide nothing."
        return replace(verdict, outcome="inconclusive", summary=text)


@dataclass(frozen=True)
class Comparison(PairedRule):
    """A rule about one variant, which is compared with others."""

    winner: str
    others: tuple[str, ...]
    variants: tuple[Variant, ...]
    tasks: tuple[str, ...]
    seed: int = field(default=0, kw_only=True)

    @property
    def compared(self) -> tuple[str, ...]:
        return (self.winner, *self.others)


def statement(groups: Groups, compared: Sequence[str], tasks: Sequence[str], *, one_by_one: bool = False) -> str:
    """Return what was run and what was not, in words: tasks, paired seeds, budgets and settings.

    Over several tasks only as many seeds count as each of them has, unless tasks are judged `one_by_one`.
    """
    counts = [len(group.seeds(compared)) for group in groups.values()]
    counts = counts if one_by_one else [min(counts)]
    steps = {task: _budget(group) for task, group in groups.items()}
    run = f"{_counted(len(groups), len(tasks))} ({', '.join(sorted(groups))})"
    if 1 < len(groups) == len(tasks):
        run = f"{all_of(len(tasks))} tasks"
    paired = f"{_span(counts)} paired {'seed' if max(counts) == 1 else 'seeds'}"
    sentences = [f"{run}, {paired}, {_span(list(steps.values()))} steps."]
    if absent := [task for task in tasks if task not in groups]:
        sentences.append(f"Not run with all that is compared: {', '.join(absent)}; the verdict is not about them.")
    followed = {run.follows for group in groups.values() for label in compared for run in group.runs[label].values()}
    if followed == {"ours"}:
        return " ".join([*sentences, "The runs have our settings: rewards scaled, exploration fitted to the budget."])
    if short := {task: full for task in groups if (full := _stated_budget(task)) and steps[task] < full}:
        sentences.append(f"The paper's budget there is {_span(list(short.values()))} steps.")
    if len(followed) == 1:
        source = {"paper": "the paper", "released": "the code"}.get(*followed)
        if source is not None:
            sentences.append(f"Where the paper and its released code differ (D1 to D16), the runs follow {source}.")
    return " ".join(sentences)


def _counted(found: int, wanted: int) -> str:
    if wanted > 1:
        return f"{found} of {wanted} tasks"
    return f"{found} {'task' if found == 1 else 'tasks'}"


def _budget(group: Group) -> int:
    return min(int(run.steps[-1]) for seeds in group.runs.values() for run in seeds.values())


def _stated_budget(task: str) -> int | None:
    if task.split("/")[0] not in STATED:
        return None
    return find_task(task).training.budget


def _span(numbers: list[int]) -> str:
    low, high = min(numbers), max(numbers)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


TITLE = "Task by task"


def by_task(groups: Groups, winner: str, others: Sequence[str], name: str, measure: Measure, seed: int) -> Table:
    """Return the winner's lead over each of the others on each task, corrected for all of these comparisons."""
    entries: Table = []
    p_values = []
    for task, group in sorted(groups.items()):
        for other in others:
            values = scores({task: group}, (winner, other), measure)
            if not values:
                continue
            ours, theirs = values[winner], values[other]
            generator = named_generator(seed, "task by task", name, task, other)
            difference, p_value = paired_difference(ours, theirs, generator=generator)
            ahead = int(np.count_nonzero(ours > theirs))
            p_values.append(p_value)
            entries.append(
                {
                    "measure": name,
                    "task": task,
                    "against": other,
                    "difference": difference,
                    "p (Holm)": p_value,
                    "seeds ahead": f"{ahead} of {len(ours)}",
                }
            )
    return [{**entry, "p (Holm)": corrected} for entry, corrected in zip(entries, holm(p_values), strict=True)]
