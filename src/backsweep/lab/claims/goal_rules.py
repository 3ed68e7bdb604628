"""Rules for the questions about graph values. Their constants were chosen before the runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backsweep.agent.palette import title_of
from backsweep.jit.random_streams import named_generator
from backsweep.lab.claims.evidence import Evidence, TrainedRun
from backsweep.lab.claims.groups import (
    Group,
    Groups,
    area,
    final_score,
    final_success,
    groups_of,
    scores,
    success,
    success_area,
)
from backsweep.lab.claims.question import NOT_RUN, Check, Table, Variant, Verdict
from backsweep.lab.claims.rules import LEVEL
from backsweep.lab.claims.summary import TITLE, Comparison, TrainingRule, by_task
from backsweep.lab.stats import Interval, bootstrap, median_interval, quantile, steps_to, steps_to_keep

SOLVED = 0.9  # of all episodes
ENOUGH_SEEDS = 8
"""Fewer give differences on a single task that chance alone would give too often."""
Clock = Callable[[TrainedRun], tuple[float, bool]]


def kept(run: TrainedRun) -> tuple[float, bool]:
    """Return the step from which a run solves 90% of episodes for good, and True; or its length, and False."""
    return steps_to_keep(run.steps, success(run), SOLVED)


def median_steps(runs: Sequence[TrainedRun], clock: Clock, *names: str) -> Interval:
    """Return the Kaplan-Meier median of the steps until something happens, with its interval."""
    times, happened = zip(*map(clock, runs), strict=True)
    return median_interval(times, happened, generator=named_generator(0, "steps", *names))


@dataclass(frozen=True)
class Soonest(Comparison):
    """One method solves every task within a budget, in at most half of the steps of the best of its rivals."""

    budget: int = 1_000_000
    reached: float = 0.95
    """Share of episodes that the median seed solves at some evaluation within the budget."""
    share: float = 0.5
    """Of the best rival's steps to 90% of episodes."""
    fewest: int = 5
    """Tasks on which it needs no more than that share."""

    def judge(self, groups: Groups) -> Verdict:
        """Holds if the median seed reaches 95% on every task, and needs few enough steps on enough of them."""
        entries = [self._entry(task, group) for task, group in sorted(groups.items())]
        checks = [self._reaches(task, group) for task, group in sorted(groups.items())]
        checks.append(self._in_fewer_steps([entry["holds"] for entry in entries]))
        labels = [variant.label for variant in self.variants]
        more = {
            "Steps to 90% of episodes, by the best rival": entries,
            "Steps from which on a run solves 90% of episodes": times_by_task(groups, labels),
            "Over tasks": over_tasks(groups, labels, self.seed),
            "Episodes that reach the goal, by task": successes_by_task(groups, labels, self.seed),
        }
        short = self._short(entries, len(groups))
        return self.conclude(checks, groups, [], more, one_by_one=True, short=short)

    def _short(self, entries: Sequence[dict[str, Any]], tasks: int) -> str:
        first = sum(entry[self.winner].estimate < entry["its steps"].estimate for entry in entries)
        enough = sum(entry["holds"] is True for entry in entries)
        title = title_of(self.winner)
        where = f"all {tasks} tasks" if first == tasks > 1 else f"{first} of {tasks} tasks"
        rivals = [title_of(name) for name in self.others]
        listed = f"{', '.join(rivals[:-1])} and {rivals[-1]}" if len(rivals) > 1 else rivals[0]
        start = f"{title[0].upper()}{title[1:]} come before {listed} on {where}"
        few = f"they need at most {self.share:g} times the best rival's steps on {enough}"
        return f"{start}; {few}." if enough >= self.fewest else f"{start}; {few}, and the goal was {self.fewest}."

    def _reaches(self, task: str, group: Group) -> Check:
        runs = list(group.runs[self.winner].values())
        first = median_steps(
            runs, lambda run: steps_to(run.steps, success(run), self.reached), "reached", task, self.winner
        )
        holds: bool | None = first.estimate <= self.budget
        if math.isinf(first.estimate) and min(run.steps[-1] for run in runs) < self.budget:
            holds = None  # the runs are shorter than the budget
        share = f"{self.reached:.0%} of episodes of {task}"
        text = f"The median seed of {title_of(self.winner)} solves {share} within {self.budget:,} steps"
        return Check(text, str(first), holds)

    def _entry(self, task: str, group: Group) -> dict[str, Any]:
        """Return the steps of the winner and of the best rival, and whether half of them are enough.

        A rival whose median seed never gets there needs at least the length of its runs.
        """
        ours = median_steps(list(group.runs[self.winner].values()), kept, task, self.winner)
        theirs = {other: median_steps(list(group.runs[other].values()), kept, task, other) for other in self.others}
        best = min(self.others, key=lambda other: theirs[other].estimate)
        length = min(float(run.steps[-1]) for run in group.runs[best].values())
        least = min(theirs[best].estimate, length)
        holds: bool | None = ours.estimate <= self.share * least
        if not holds and math.isinf(theirs[best].estimate):
            holds = None
        if math.isinf(ours.estimate):
            holds = False
        ratio = ours.estimate / theirs[best].estimate if math.isfinite(theirs[best].estimate) else math.nan
        return {
            "task": task,
            self.winner: ours,
            "best rival": best if math.isfinite(theirs[best].estimate) else "none gets there",
            "its steps": theirs[best],
            "ratio": None if math.isnan(ratio) else ratio,
            "holds": holds,
        }

    def _in_fewer_steps(self, found: Sequence[bool | None]) -> Check:
        sure, open_ = found.count(True), found.count(None) + len(self.tasks) - len(found)
        holds = True if sure >= self.fewest else (None if sure + open_ >= self.fewest else False)
        text = (
            f"{title_of(self.winner)} need at most {self.share:g} times the steps of the best of "
            f"{', '.join(map(title_of, self.others))} on at least {self.fewest} tasks"
        )
        return Check(text, f"on {sure} tasks, not on {found.count(False)}", holds)


@dataclass(frozen=True)
class NowhereBehind(Comparison):
    """On worlds of several kinds, one method is behind none of the others, and ahead of all of them somewhere."""

    titles: dict[str, str] = field(default_factory=dict)
    """Names of worlds that are variants of a task."""

    def judge(self, groups: Groups) -> Verdict:
        """Ahead and behind mean a difference with a p of at most 0.05, corrected over all worlds and opponents."""
        measures = (("final score", final_score), ("area under the curve", area))
        entries = [
            entry
            for name, measure in measures
            for entry in by_task(groups, self.winner, self.others, name, measure, self.seed)
        ]
        checks = []
        ahead = []
        for task in (task for task in self.tasks if task in groups):
            here = [entry for entry in entries if entry["task"] == task]
            behind = [entry for entry in here if _clear(entry) and entry["difference"].estimate < 0]
            found = "; ".join(f"{entry['measure']}, over {entry['against']}: {entry['difference']}" for entry in here)
            checks.append(Check(f"{self.winner} is not behind on {self.titles.get(task, task)}", found, not behind))
            if any(
                all(_clear(entry) and entry["difference"].estimate > 0 for entry in here if entry["measure"] == name)
                for name, _ in measures
            ):
                ahead.append(self.titles.get(task, task))
        open_ = len(groups) < len(self.tasks)
        others = "both" if len(self.others) == 2 else " and ".join(self.others)
        text = f"{self.winner} is ahead of {others} somewhere, at the end or in area"
        checks.append(Check(text, ", ".join(ahead) or "nowhere", True if ahead else (None if open_ else False)))
        short = f"{title_of(self.winner)} ahead on {len(ahead)} of {len(groups)} tasks, behind on "
        short += f"{sum(check.holds is False for check in checks[:-1]) or 'none'}."
        short = short[0].upper() + short[1:]
        verdict = self.conclude(checks, groups, [], {TITLE: entries}, one_by_one=True, short=short)
        return replace(verdict, summary=f"{verdict.summary}{self._caution(groups)}")

    def _caution(self, groups: Groups) -> str:
        """Return a sentence about how little a few seeds tell: resampling them never changes a sign that all share."""
        few = min(len(group.seeds(self.compared)) for group in groups.values())
        if few >= ENOUGH_SEEDS:
            return ""
        return (
            f" With {few} seeds a difference counts as clear if all of them agree on its sign; by chance alone one "
            f"comparison in {2 ** (few - 1)} would."
        )


@dataclass(frozen=True)
class Trials(TrainingRule):
    """A table of constants tried on tuning seeds; it decides nothing."""

    variants: tuple[Variant, ...]
    tasks: tuple[str, ...]
    seed: int = field(default=0, kw_only=True)

    def decide(self, evidence: Evidence) -> Verdict:
        """Return the table of trials."""
        groups = groups_of(evidence, self.variants, self.tasks)
        if not groups:
            return NOT_RUN
        labels = self.compared
        runs = sum(group.size for group in groups.values())
        tried = [label for label in labels if any(label in group.runs for group in groups.values())]
        summary = f"{len(tried)} of {len(labels)} trials on {len(groups)} of {len(self.tasks)} tasks, {runs} runs."
        more = {"By task": successes_by_task(groups, labels, self.seed)}
        return Verdict("no verdict", summary, (), over_tasks(groups, labels, self.seed), runs, more)


def times_by_task(groups: Groups, labels: Sequence[str]) -> Table:
    """Return the steps until 90% of episodes are solved, by task and method: the median seed, and how many seeds."""
    return [
        {
            "task": task,
            "method": label,
            f"runs that reach {SOLVED}": f"{sum(kept(run)[1] for run in runs)} of {len(runs)}",
            "median steps": median_steps(runs, kept, task, label),
        }
        for task, group in sorted(groups.items())
        for label in labels
        if (runs := list(group.runs.get(label, {}).values()))
    ]


def successes_by_task(groups: Groups, labels: Sequence[str], seed: int) -> Table:
    """Return the share of episodes that reach the goal by task and method, at the end and over the whole run."""
    return [
        {"task": task, "method": label, "seeds": len(group.runs[label]), **_successes({task: group}, label, seed)}
        for task, group in sorted(groups.items())
        for label in labels
        if label in group.runs
    ]


def over_tasks(groups: Groups, labels: Sequence[str], seed: int) -> Table:
    """Return each method's results over all of its tasks; seeds are resampled within each task."""
    entries = []
    for label in labels:
        runs = [run for group in groups.values() for run in group.runs.get(label, {}).values()]
        if not runs:
            continue
        times = scores(groups, (label,), lambda run: kept(run)[0])[label]
        entries.append(
            {
                "method": label,
                "tasks": times.shape[1],
                "seeds": times.shape[0],
                f"runs that reach {SOLVED}": f"{sum(kept(run)[1] for run in runs)} of {len(runs)}",
                "mean steps, no more than the run has": bootstrap(
                    times, _mean, generator=named_generator(seed, "mean steps", label)
                ),
                "median seed over all": quantile([kept(run)[0] for run in runs], [kept(run)[1] for run in runs]),
                **_successes(groups, label, seed),
            }
        )
    return entries


def _successes(groups: Groups, label: str, seed: int) -> dict[str, Interval]:
    """Return the interquartile means of the success at the end and over the run."""
    return {
        name: bootstrap(
            scores(groups, (label,), measure)[label], generator=named_generator(seed, name, label, *sorted(groups))
        )
        for name, measure in (("success at the end", final_success), ("area under success", success_area))
    }


def _mean(drawn: NDArray[np.float64]) -> NDArray[np.float64]:
    means: NDArray[np.float64] = drawn.mean(axis=-1)
    return means


def _clear(entry: dict[str, Any]) -> bool:
    return bool(entry["p (Holm)"] <= LEVEL)
