"""Rules for claims about training runs. Every number in them was chosen before any run was looked at.

All of them compare runs with the same task, settings and seed, by the interquartile mean over tasks and seeds, with a
stratified bootstrap, and correct for the number of comparisons by Holm's method.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from backsweep.evaluation.intervals import holm, paired_difference, probability_of_improvement
from backsweep.experiments.comparing import Group, Measure, area, final_score, groups_of, scores
from backsweep.experiments.evidence import Evidence
from backsweep.experiments.question import Variant
from backsweep.experiments.verdict import NOT_RUN, Outcome, Part, Verdict, all_parts
from backsweep.seeding import named_generator

LEVEL = 0.05
FEWEST_SEEDS = 3
MARGIN = 0.05  # differences of the normalised score smaller than this do not matter


@dataclass(frozen=True)
class Better:
    """One variant is better than each of the others."""

    winner: str
    losers: tuple[str, ...]
    variants: tuple[Variant, ...]
    tasks: tuple[str, ...] = ()
    measures: tuple[tuple[str, Measure], ...] = (("final score", final_score), ("area under the curve", area))
    seed: int = field(default=0, kw_only=True)

    def decide(self, evidence: Evidence) -> Verdict:
        """Holds if the winner is ahead of every loser in every measure with a corrected p-value of at most 0.05.

        Fails if it is behind one of them as clearly, or if the whole interval lies within the margin around 0.
        """
        labels = (self.winner, *self.losers)
        groups, missing = _groups(evidence, self.variants, self.tasks, labels)
        if not groups:
            return missing
        parts: list[Part] = []
        table: list[dict[str, Any]] = []
        for name, measure in self.measures:
            values = scores(groups, labels, measure)
            ours = values[self.winner]
            results = [
                paired_difference(ours, values[loser], generator=named_generator(self.seed, name, loser))
                for loser in self.losers
            ]
            corrected = holm([p_value for _, p_value in results])
            for loser, (difference, _), p_value in zip(self.losers, results, corrected, strict=True):
                generator = named_generator(self.seed, "improvement", name, loser)
                chance = probability_of_improvement(ours, values[loser], generator=generator)
                holds: bool | None = None
                if p_value <= LEVEL:
                    holds = difference.estimate > 0
                elif difference.low > -MARGIN and difference.high < MARGIN:
                    holds = False
                parts.append(Part(f"{self.winner} ahead of {loser} in {name}", f"{difference}, p {p_value:.3g}", holds))
                table.append(
                    {
                        "measure": name,
                        "against": loser,
                        "difference": difference,
                        "p (Holm)": p_value,
                        "chance of improvement": chance,
                    }
                )
        return _with_enough(parts, groups, labels, table)


@dataclass(frozen=True)
class Alike:
    """Some variants are about equal: no two of them differ by more than the margin."""

    labels: tuple[str, ...]
    variants: tuple[Variant, ...]
    tasks: tuple[str, ...] = ()
    margin: float = MARGIN
    measure: tuple[str, Measure] = ("final score", final_score)
    seed: int = field(default=0, kw_only=True)

    def decide(self, evidence: Evidence) -> Verdict:
        """Holds if every pair's interval lies within the margin; fails if one lies wholly outside it."""
        groups, missing = _groups(evidence, self.variants, self.tasks, self.labels)
        if not groups:
            return missing
        name, measure = self.measure
        values = scores(groups, self.labels, measure)
        parts: list[Part] = []
        table: list[dict[str, Any]] = []
        pairs = [(a, b) for place, a in enumerate(self.labels) for b in self.labels[place + 1 :]]
        level = 1.0 - LEVEL / len(pairs)
        for first, second in pairs:
            generator = named_generator(self.seed, first, second)
            difference, _ = paired_difference(values[first], values[second], level=level, generator=generator)
            inside = -self.margin <= difference.low and difference.high <= self.margin
            outside = difference.low > self.margin or difference.high < -self.margin
            parts.append(Part(f"{first} and {second} alike in {name}", str(difference), _decided(inside, outside)))
            table.append({"measure": name, "first": first, "second": second, "difference": difference})
        return _with_enough(parts, groups, self.labels, table)


@dataclass(frozen=True)
class Together:
    """Several rules at once: all of them must hold."""

    rules: tuple[Better | Alike, ...]

    def decide(self, evidence: Evidence) -> Verdict:
        """Holds if every rule does."""
        verdicts = [rule.decide(evidence) for rule in self.rules]
        found = [verdict for verdict in verdicts if verdict.outcome != "not run"]
        if not found:
            return verdicts[0]
        outcomes = [verdict.outcome for verdict in verdicts]
        outcome: Outcome = "inconclusive"
        if "not reproduced" in outcomes:
            outcome = "not reproduced"
        elif set(outcomes) == {"reproduced"}:
            outcome = "reproduced"
        return Verdict(
            outcome,
            " ".join(verdict.summary for verdict in found),
            tuple(part for verdict in found for part in verdict.parts),
            [row for verdict in found for row in verdict.table],
            max(verdict.records for verdict in found),
        )


def _groups(
    evidence: Evidence, variants: Sequence[Variant], tasks: Sequence[str], labels: Sequence[str]
) -> tuple[dict[str, Group], Verdict]:
    found = groups_of(evidence, variants, tasks)
    complete = {task: group for task, group in found.items() if group.seeds(labels)}
    if complete:
        return complete, NOT_RUN
    runs = sum(group.size for group in found.values())
    if not runs:
        return {}, NOT_RUN
    there = {label for group in found.values() for label in group.runs}
    missing = [label for label in labels if label not in there]
    if missing:
        text = f"{runs} runs of {', '.join(sorted(there))} are there, none of {', '.join(missing)}."
        return {}, Verdict("not run", text)
    text = f"There are {runs} runs, but no task has one seed of everything that is compared."
    return {}, Verdict("inconclusive", text, records=runs)


def _with_enough(
    parts: list[Part], groups: dict[str, Group], labels: Sequence[str], table: list[dict[str, Any]]
) -> Verdict:
    count = min(len(group.seeds(labels)) for group in groups.values())
    runs = sum(len(group.seeds(labels)) for group in groups.values()) * len(labels)
    steps = sorted(
        {int(run.steps[-1]) for group in groups.values() for seeds in group.runs.values() for run in seeds.values()}
    )
    budget = f"{steps[0]:,}" if len(steps) == 1 else f"{steps[0]:,} to {steps[-1]:,}"
    summary = (
        f"{len(groups)} {'task' if len(groups) == 1 else 'tasks'} ({', '.join(sorted(groups))}), {count} paired "
        f"{'seed' if count == 1 else 'seeds'}, {budget} steps."
    )
    if count < FEWEST_SEEDS:
        return Verdict(
            "inconclusive", f"{summary} Fewer than {FEWEST_SEEDS} seeds decide nothing.", tuple(parts), table, runs
        )
    return all_parts(parts, summary, table, runs)


def _decided(inside: bool, outside: bool) -> bool | None:
    return True if inside else (False if outside else None)


def spread(values: Sequence[float]) -> str:
    """Return median and quartiles of some numbers as text."""
    low, middle, high = np.percentile(np.asarray(values, np.float64), [25, 50, 75])
    return f"{middle:.3g} ({low:.3g} to {high:.3g})"
