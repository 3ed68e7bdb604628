"""A question: plain data, and the rule that decides it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

from backsweep.agent.settings import settings_fields
from backsweep.lab.claims.evidence import Evidence
from backsweep.lab.seeds import TUNING, purpose_of
from backsweep.lab.stats import MOST

Table = list[dict[str, Any]]
"""Entries, each by column."""
Outcome = Literal["reproduced", "not reproduced", "holds", "does not hold", "inconclusive", "no verdict", "not run"]


@dataclass(frozen=True)
class Check:
    """One check of a claim, what was found, and whether it holds; None is undecided."""

    text: str
    found: str
    holds: bool | None
    needs: int | None = None
    """Seeds that would decide it while it is open, if what was found stays as it is; None if that is not known."""


@dataclass(frozen=True)
class Verdict:
    """The outcome, why, and the numbers behind it."""

    outcome: Outcome
    summary: str
    checks: tuple[Check, ...] = ()
    table: Table = field(default_factory=list)
    """Numbers for the report."""
    records: int = 0
    """The number of records or runs behind it."""
    more: dict[str, Table] = field(default_factory=dict)
    """Additional tables that do not decide, by title."""
    about: str = ""
    """What part of the claim it is about ("4 of 7 tasks"), empty for all of it."""
    short: str = ""
    """The result in one sentence: who is ahead, where, by how much."""
    number: str = ""
    """The number that the claim stands or falls with, for a table; empty where the short sentence says it."""

    @property
    def needs(self) -> int | None:
        """Seeds that would decide every check that is open; None if none is, or if that is not known."""
        if self.outcome != "inconclusive":
            return None
        return max(
            (check.needs for check in self.checks if check.holds is None and check.needs is not None), default=None
        )

    @property
    def needs_in_words(self) -> str:
        """How many seeds would decide it; empty if that is not known."""
        if self.needs is None:
            return ""
        many = f"{MOST:,} seeds or more" if self.needs >= MOST else f"about {self.needs:,} seeds"
        return f"{many}, if differences stay as they are"

    @property
    def headline(self) -> str:
        """The outcome, with what it is about if that is not everything."""
        return f"{self.outcome} on {self.about}" if self.about else self.outcome

    @property
    def checks_in_words(self) -> str:
        """How many checks of the claim hold, and which do not; empty for a claim with one check."""
        if len(self.checks) < 2:
            return ""
        holding = sum(check.holds is True for check in self.checks)
        every = holding == len(self.checks)
        words = [f"{all_of(holding)} parts hold" if every else f"{holding} of {len(self.checks)} parts hold"]
        for word, state in (("undecided", None), ("against it", False)):
            if texts := [check.text for check in self.checks if check.holds is state]:
                words.append(f"{word}: {texts[0] if len(texts) == 1 else len(texts)}")
        return "; ".join(words) + "."

    @property
    def found(self) -> str:
        """The whole verdict in words."""
        return " ".join(filter(None, (self.checks_in_words, self.summary)))


def all_of(count: int) -> str:
    """Return "Both" for two, else "All"."""
    return "Both" if count == 2 else f"All {count}"


NOT_RUN = Verdict("not run", "There are no records for this question yet.")


def as_goal(verdict: Verdict) -> Verdict:
    """Return a verdict in the words of a goal, which holds or does not."""
    words: dict[Outcome, Outcome] = {"reproduced": "holds", "not reproduced": "does not hold"}
    return replace(verdict, outcome=words.get(verdict.outcome, verdict.outcome))


def all_checks(
    checks: list[Check], summary: str, table: Table, records: int, more: dict[str, Table] | None = None, **words: str
) -> Verdict:
    """Return "reproduced" if every check holds, "not reproduced" if one does not, else "inconclusive".

    `words` are its short sentence and its number.
    """
    holds = [check.holds for check in checks]
    outcome: Outcome = "inconclusive"
    if False in holds:
        outcome = "not reproduced"
    elif None not in holds and holds:
        outcome = "reproduced"
    return Verdict(outcome, summary, tuple(checks), table, records, {} if more is None else more, **words)


Scale = Literal["smoke", "laptop", "paper"]
Kind = Literal["graph values", "tuning", "paper", "released code"]


@dataclass(frozen=True)
class Variant:
    """One line of a chart: a method with a question's options."""

    label: str
    method: str
    options: Mapping[str, Any] = field(default_factory=dict)
    on: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Options that it has on some tasks only."""
    usual: frozenset[str] = frozenset()
    """Options at their usual value, which settings with another value override."""

    def options_on(self, task: str, settings: str) -> dict[str, Any]:
        """Return its options on a task under some settings."""
        given = settings_fields(settings, task.split("/")[0], self.method, 1)
        decided = {name: given[name] for name in self.usual if name in given}
        return {**self.options, **decided, **self.on.get(task, {})}

    @property
    def option_names(self) -> set[str]:
        """Every option that it sets on any task."""
        return set(self.options).union(*self.on.values())


@dataclass(frozen=True)
class PlannedRun:
    """A training run of a grid."""

    task: str
    variant: Variant
    seed: int
    options: Mapping[str, Any]

    @property
    def name(self) -> str:
        """The displayed name."""
        return f"{self.task} {self.variant.label} seed {self.seed}"


@dataclass(frozen=True)
class Grid:
    """Tasks x variants x seeds with common options, and `task_options` for single tasks.

    A task is a task id or a Gymnasium id.
    """

    tasks: tuple[str, ...]
    variants: tuple[Variant, ...]
    seeds: tuple[int, ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    task_options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def subset(self, tasks: Sequence[str] = (), lines: Sequence[str] = (), seeds: Sequence[int] = ()) -> Grid:
        """Return the grid with only these tasks, lines and seeds; an empty argument keeps the grid's."""
        return replace(
            self,
            tasks=tuple(task for task in self.tasks if task in tasks) if tasks else self.tasks,
            variants=tuple(each for each in self.variants if each.label in lines) if lines else self.variants,
            seeds=tuple(dict.fromkeys(seeds)) if seeds else self.seeds,
        )

    def with_settings(self, settings: str | None) -> Grid:
        """Return the grid with other settings: "ours", "paper" or "released"; None keeps the grid's."""
        return self if settings is None else replace(self, options={**self.options, "settings": settings})

    def runs(self) -> tuple[PlannedRun, ...]:
        """Return every run of the grid."""
        settings = self.options.get("settings", "paper")

        def options(task: str, variant: Variant) -> dict[str, Any]:
            return {**self.options, **self.task_options.get(task, {}), **variant.options_on(task, settings)}

        return tuple(
            PlannedRun(task, variant, seed, options(task, variant))
            for task in self.tasks
            for variant in self.variants
            for seed in self.seeds
        )


def subsets(
    grids: Sequence[Grid], tasks: Sequence[str] = (), lines: Sequence[str] = (), seeds: Sequence[int] = ()
) -> list[Grid]:
    """Return each grid with only the named tasks, lines and seeds; unknown names raise."""
    choices: tuple[tuple[str, Sequence[Any], list[Any]], ...] = (
        ("task", tasks, [task for grid in grids for task in grid.tasks]),
        ("line", lines, [variant.label for grid in grids for variant in grid.variants]),
    )
    for what, names, known in choices:
        for name in names:
            if name not in known:
                there = ", ".join(map(str, dict.fromkeys(known))) or "none"
                raise ValueError(f"no {what} {name!r} in these questions at this scale; they have {there}")
    check_seeds(grids, seeds)
    return [grid.subset(tasks, lines, seeds) for grid in grids]


@dataclass(frozen=True)
class Study:
    """Work that is not training: one of `lab.studies`, with its arguments and a file for each seed."""

    name: str
    seeds: tuple[int, ...]
    arguments: Mapping[str, Any] = field(default_factory=dict)

    def with_seeds(self, seeds: Sequence[int]) -> Study:
        """Return the study with other seeds, or itself if none are given."""
        return replace(self, seeds=tuple(seeds)) if seeds else self


def check_seeds(plans: Sequence[Grid | Study], seeds: Sequence[int]) -> None:
    """Refuse seeds for tuning where runs are reported, and other seeds where they are not."""
    tuning = f"{TUNING[0]} to {TUNING[-1]}"
    for purpose in {purpose_of(plan.seeds[0]) for plan in plans}:
        if other := [seed for seed in seeds if purpose_of(seed) != purpose]:
            if purpose == "tuning":
                advice = "--scale laptop and --scale paper take other seeds, except for T1"
                raise ValueError(f"--seeds must be from {tuning} here, the seeds for tuning, got {other[0]}; {advice}")
            raise ValueError(f"--seeds must not be from {tuning} here, the seeds for tuning, got {other[0]}")


class Rule(Protocol):
    """Turns evidence into a verdict."""

    def decide(self, evidence: Evidence) -> Verdict:
        """Return the verdict; "not run" without evidence."""


@dataclass(frozen=True, kw_only=True)
class Question:
    """A claim of the paper, or a goal of this project, and what would test it."""

    id: str
    title: str
    question: str
    """In plain words."""
    claim: str
    """What the paper says, or the goal."""
    stated: str = ""
    """The numbers that the paper states for a claim; most of them are curves."""
    metric: str
    decided_by: str
    """The rule in words, written before the runs; `rule` implements it."""
    rule: Rule
    scales: Mapping[Scale, Grid | Study | None] = field(default_factory=dict)
    """What is run at each scale; None where a question has nothing to run there."""
    trains: Mapping[Scale, Grid] = field(default_factory=dict)
    """What is trained as well, for a question that has a study."""
    missing: str = ""
    """What this project cannot run yet."""
    kind: Kind = "paper"
    """A claim of the paper, a question about graph values or the paper's released code, or trials on tuning seeds."""

    @property
    def claimed_by(self) -> str:
        """Whose claim it is, as a title."""
        return {"paper": "The paper says", "released code": "The hypothesis"}.get(self.kind, "The goal")

    @property
    def settings(self) -> str:
        """The default settings of its runs: the paper's for the paper's claims."""
        return "paper" if self.kind == "paper" else "ours"

    def decide(self, evidence: Evidence) -> Verdict:
        """Return the rule's verdict: a claim is reproduced or not, a goal holds or does not."""
        verdict = self.rule.decide(evidence)
        return verdict if self.kind == "paper" else as_goal(verdict)

    @property
    def variants(self) -> tuple[Variant, ...]:
        """The lines of its charts, if it is about training."""
        variants: tuple[Variant, ...] = getattr(self.rule, "variants", ())
        return variants

    @property
    def tasks(self) -> tuple[str, ...]:
        """The tasks that the claim is about, if any."""
        tasks: tuple[str, ...] = getattr(self.rule, "tasks", ())
        return tasks

    @property
    def compared(self) -> tuple[str, ...]:
        """The variants that the rule compares; the others are only shown."""
        labels: tuple[str, ...] = getattr(self.rule, "compared", ())
        return labels or tuple(variant.label for variant in self.variants)

    @property
    def whole_runs(self) -> bool:
        """Whether the claim is about whole runs; if not, tables of them would say something else."""
        return bool(getattr(self.rule, "whole_runs", True))

    def plan(self, scale: Scale) -> Grid | Study | None:
        """Return what is run at a scale."""
        return self.scales.get(scale)

    def plans(self, scale: Scale) -> tuple[Grid | Study, ...]:
        """Return everything that is run at a scale, a study and the training that goes with it."""
        found = (self.scales.get(scale), self.trains.get(scale))
        return tuple(what for what in found if what is not None)
