"""Rules for claims about training runs. Their constants were chosen before the runs were evaluated.

All of them compare runs with the same task, settings and seed, by the interquartile mean over tasks and seeds, with a
stratified bootstrap, and correct for multiple comparisons.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from backsweep.agent.palette import title_of
from backsweep.jit.random_streams import named_generator
from backsweep.lab.claims.evidence import Evidence
from backsweep.lab.claims.groups import Groups, Measure, area, complete, final_score, scores
from backsweep.lab.claims.question import Check, Outcome, Table, Variant, Verdict, all_of
from backsweep.lab.claims.summary import TITLE, Comparison, PairedRule, TrainingRule, by_task
from backsweep.lab.stats import Interval, holm, paired_difference, plain, probability_of_improvement, seeds_needed

LEVEL = 0.05
MARGIN = 0.05  # differences of the normalised score smaller than this do not matter


@dataclass(frozen=True)
class Better(Comparison):
    """One variant is better than each of the others."""

    measures: tuple[tuple[str, Measure], ...] = (("final score", final_score), ("area under the curve", area))
    also: tuple[str, ...] = ()
    """Variants that the winner is also compared with; they decide nothing."""
    shown: tuple[tuple[str, Measure], ...] = ()
    """Measures that are also shown; they decide nothing."""

    def judge(self, groups: Groups) -> Verdict:
        """Holds if the winner is ahead of every other in every measure with a corrected p-value of at most 0.05.

        Fails if it is behind one of them as clearly, or if the whole interval lies within the margin around 0.
        """
        table = [
            entry
            for name, measure in self.measures
            for entry in self._entries(groups, self.others, name, measure, True)
        ]
        checks = [
            Check(
                f"{title_of(self.winner)} ahead of {title_of(entry['against'])} in {entry['measure']}",
                f"{entry['difference']}, p {entry['p (Holm)']:.3g}",
                _ahead(entry["difference"], entry["p (Holm)"]),
                _needs_to_lead(entry["difference"], entry["seeds"]),
            )
            for entry in table
        ]
        closest = min(table, key=lambda entry: entry["difference"].estimate)
        against = [entry for entry, check in zip(table, checks, strict=True) if check.holds is False]
        # Comparisons that decide nothing are corrected on their own, so that they do not weaken those that do.
        table += [
            entry
            for other in self.also
            for name, measure in self.measures
            for entry in self._entries(groups, (other,), name, measure, False)
        ]
        table += [
            entry for name, measure in self.shown for entry in self._entries(groups, self.others, name, measure, False)
        ]
        task_entries = [
            entry
            for names in (self.others, *((other,) for other in self.also))
            for name, measure in (*self.measures, *self.shown)
            for entry in by_task(groups, self.winner, names, name, measure, self.seed)
        ]
        number = f"{closest['difference']} over {title_of(closest['against'])} in {closest['measure']}"
        short = _where_ahead(self.winner, self.others, self.measures[0][0], task_entries) + _what_decides(against)
        return self.conclude(checks, groups, table, {TITLE: task_entries}, short=short, number=number)

    def _entries(self, groups: Groups, others: Sequence[str], name: str, measure: Measure, decides: bool) -> Table:
        labels = self.compared if decides else (self.winner, *others)
        values = scores(complete(groups, labels), labels, measure)
        if not values:
            return []
        ours = values[self.winner]
        results = [
            paired_difference(ours, values[other], generator=named_generator(self.seed, name, other))
            for other in others
        ]
        return [
            {
                "measure": name,
                "against": other,
                "difference": difference,
                "p (Holm)": p_value,
                "chance of improvement": probability_of_improvement(
                    ours, values[other], generator=named_generator(self.seed, "improvement", name, other)
                ),
                "tasks": ours.shape[1],
                "seeds": ours.shape[0],
                "decides": decides,
            }
            for other, (difference, _), p_value in zip(
                others, results, holm([p_value for _, p_value in results]), strict=True
            )
        ]


@dataclass(frozen=True)
class Alike(PairedRule):
    """Some variants are about equal: no two of them differ by more than the margin."""

    labels: tuple[str, ...]
    variants: tuple[Variant, ...]
    tasks: tuple[str, ...] = ()
    margin: float = MARGIN
    measure: tuple[str, Measure] = ("final score", final_score)
    seed: int = field(default=0, kw_only=True)

    @property
    def compared(self) -> tuple[str, ...]:
        return self.labels

    def judge(self, groups: Groups) -> Verdict:
        """Compare all pairs, with intervals widened for their number (Bonferroni)."""
        name, measure = self.measure
        values = scores(groups, self.labels, measure)
        checks: list[Check] = []
        table: Table = []
        pairs = self.pairs()
        for first, second in pairs:
            difference, _ = paired_difference(
                values[first],
                values[second],
                level=1.0 - LEVEL / len(pairs),
                generator=named_generator(self.seed, first, second),
            )
            needs = seeds_needed(difference, len(values[first]), self.distance(difference))
            text = f"{self.text(first, second)} in {name}"
            checks.append(Check(text, str(difference), self.holds(difference), needs))
            table.append({"measure": name, "first": first, "second": second, "difference": difference})
        furthest = max(table, key=lambda entry: self.away(entry["difference"]))
        number = f"{furthest['difference']} {title_of(furthest['first'])} over {title_of(furthest['second'])}"
        short = _undecided(checks, table, self.margin) or _decided(checks, furthest)
        more = {TITLE: self._by_task(groups)} if len(groups) > 1 else None
        return self.conclude(checks, groups, table, more, short=short, number=number)

    def _by_task(self, groups: Groups) -> Table:
        """Return the differences on each task, which decide nothing."""
        name, measure = self.measure
        return [
            {"method": first, **entry}
            for first, second in self.pairs()
            for entry in by_task(groups, first, (second,), name, measure, self.seed)
        ]

    def pairs(self) -> list[tuple[str, str]]:
        """Return the pairs to compare."""
        return [(a, b) for place, a in enumerate(self.labels) for b in self.labels[place + 1 :]]

    def text(self, first: str, second: str) -> str:
        """Return the claim about a pair, in words."""
        return f"{title_of(first)} and {title_of(second)} alike"

    def away(self, difference: Interval) -> float:
        """Return how far a difference is from what is claimed."""
        return abs(difference.estimate)

    def distance(self, difference: Interval) -> float:
        """Return how far the estimate is from where the decision changes."""
        return abs(self.margin - self.away(difference))

    def holds(self, difference: Interval) -> bool | None:
        """Return True for an interval within the margin, False for one wholly outside it."""
        return difference.within(-self.margin, self.margin)


@dataclass(frozen=True)
class NotBehind(Alike):
    """The first variant is at most the margin worse than each of the others."""

    def pairs(self) -> list[tuple[str, str]]:
        return [(self.labels[0], other) for other in self.labels[1:]]

    def text(self, first: str, second: str) -> str:
        return f"{title_of(first)} not behind {title_of(second)}"

    def away(self, difference: Interval) -> float:
        """Return how far the first is behind."""
        return -difference.estimate

    def holds(self, difference: Interval) -> bool | None:
        """Return True for an interval above minus the margin, False for one wholly below it."""
        return difference.within(-self.margin, math.inf)


@dataclass(frozen=True)
class Together:
    """Several rules at once about the same runs: all of them must hold."""

    rules: tuple[TrainingRule, ...]

    @property
    def variants(self) -> tuple[Variant, ...]:
        """The variants of all rules."""
        return self.rules[0].variants

    @property
    def tasks(self) -> tuple[str, ...]:
        """The tasks of all rules."""
        return _united(self.rules, "tasks")

    @property
    def compared(self) -> tuple[str, ...]:
        """What all rules compare."""
        return _united(self.rules, "compared")

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
        # If nothing is decided, all rules say the same.
        telling = found[:1] if set(outcomes) == {"inconclusive"} else found
        more: dict[str, Table] = {}
        for verdict in found:
            for title, entries in verdict.more.items():
                more.setdefault(title, []).extend(entries)
        return Verdict(
            outcome,
            " ".join(dict.fromkeys(verdict.summary for verdict in found)),
            tuple(check for verdict in found for check in verdict.checks),
            [entry for verdict in found for entry in verdict.table],
            max(verdict.records for verdict in found),
            more,
            number="; ".join(filter(None, (verdict.number for verdict in found))),
            about=found[0].about if len({verdict.about for verdict in found}) == 1 else "",
            short=" ".join(filter(None, (verdict.short for verdict in telling))),
        )


def _needs_to_lead(difference: Interval, seeds: int) -> int:
    """Return the seeds by which a difference would be clear, or clearly too small to matter, whichever comes first."""
    distance = max(abs(difference.estimate), MARGIN - abs(difference.estimate))
    return seeds_needed(difference, seeds, distance)


def _ahead(difference: Interval, p_value: float) -> bool | None:
    """Return whether a lead is significant; False if it is significantly negative or too small to matter."""
    if p_value <= LEVEL:
        return difference.estimate > 0
    return False if difference.low > -MARGIN and difference.high < MARGIN else None


def _where_ahead(winner: str, losers: Sequence[str], measure: str, entries: Sequence[dict[str, Any]]) -> str:
    """Return on how many tasks the winner is ahead of all others, and behind one of them, in words."""
    ahead, behind, tasks = [], [], list(dict.fromkeys(entry["task"] for entry in entries))
    for task in tasks:
        here = [
            entry
            for entry in entries
            if (entry["task"], entry["measure"]) == (task, measure) and entry["against"] in losers
        ]
        clear = [entry["difference"].estimate for entry in here if entry["p (Holm)"] <= LEVEL]
        if len(clear) == len(here) and min(clear) > 0:
            ahead.append(task)
        elif clear and min(clear) < 0:
            behind.append(task)
    others = title_of(losers[0]) if len(losers) == 1 else f"{all_of(len(losers)).lower()} others"
    where = f"{len(ahead)} of {len(tasks)} tasks" if len(tasks) > 1 else ("the task" if ahead else "no task")
    rival, lost = "it" if len(losers) == 1 else "one of them", len(behind) or "none"
    title = title_of(winner)
    title = f"{title[0].upper()}{title[1:]}"
    if measure == "final score" and len(tasks) == 1:
        ends = f"ahead of {others}" if ahead else f"neither ahead of {others} nor behind {rival}"
        if behind:
            ends = f"behind {others if len(losers) == 1 else f'at least one of {len(losers)} others'}"
        return f"{title} ends {ends}."
    if measure == "final score":
        return f"{title} ends ahead of {others} on {where}, behind {rival} on {lost}."
    return f"{title}: higher {measure} than {others} on {where}, lower than {rival} on {lost}."


def _what_decides(against: Sequence[dict[str, Any]]) -> str:
    """Return the comparison over all tasks that contradicts a claim most, in words; nothing if none does."""
    if not against:
        return ""
    entry = min(against, key=lambda entry: entry["difference"].estimate)
    where = "It is" if entry["tasks"] == 1 else "Over all tasks it is"
    behind = entry["difference"].high < 0
    how = f"{_in_digits(-entry['difference'].estimate)} behind" if behind else "level with"
    return f" {where} {how} {title_of(entry['against'])} in the {entry['measure']}."


def _in_digits(size: float) -> str:
    return "less than 0.001" if size < 0.001 else f"{size:.{2 if size < 10 else 3}g}"


def _decided(checks: Sequence[Check], furthest: dict[str, Any]) -> str:
    """Return how many comparisons are as claimed, and the one that is furthest from it, in words."""
    found = f"{_found(furthest)}."
    if len(checks) == 1:
        return found[0].upper() + found[1:]
    holding = sum(check.holds is True for check in checks)
    return f"{holding} of {len(checks)} comparisons are as claimed; the furthest off: {found}"


def _found(entry: dict[str, Any]) -> str:
    """Return a difference in words."""
    first, second, estimate = title_of(entry["first"]), title_of(entry["second"]), entry["difference"].estimate
    where = "behind" if estimate < 0 else "ahead of"
    return f"{first} is {_in_digits(abs(estimate))} {where} {second} in the {entry['measure']}"


def _undecided(checks: Sequence[Check], table: Table, margin: float) -> str:
    """Return how many comparisons are open, and how wide their intervals are, in words; nothing if all are decided."""
    undecided = [entry for check, entry in zip(checks, table, strict=True) if check.holds is None]
    if not undecided:
        return ""
    differences = [entry["difference"] for entry in undecided]
    widest = max(differences, key=lambda difference: difference.high - difference.low)
    count = len(checks)
    apart = f"{len(undecided)} of {count} comparisons stay open"
    if len(undecided) == count:
        # A rule may ask for more than a difference: for one that is large enough.
        if all(difference.low <= 0 <= difference.high for difference in differences):
            apart = _alike(undecided)
        elif count == 1:
            found = _found(undecided[0])
            return f"{found[0].upper()}{found[1:]}; whether by more than {plain(margin)} stays open: {widest}."
        else:
            apart = f"{all_of(count)} comparisons stay open"
    return f"{apart}: differences of the {undecided[0]['measure']} are as uncertain as {widest}."


def _alike(entries: Table) -> str:
    """Return which methods cannot be told apart, in words."""
    firsts, seconds = ({entry[name] for entry in entries} for name in ("first", "second"))
    if len(firsts) > 1:
        return "No two methods can be told apart"
    others = " and ".join(sorted(map(title_of, seconds)))
    return f"{title_of(*firsts)} cannot be told apart from {others}"


def _united(rules: Sequence[TrainingRule], name: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(entry for rule in rules for entry in getattr(rule, name)))
