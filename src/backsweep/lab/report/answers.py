"""From a results folder to a report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from backsweep.jit.random_streams import named_generator
from backsweep.lab.claims.bounds import left_bounds, return_bounds
from backsweep.lab.claims.evidence import Evidence, TrainedRun, read_evidence, settings_of
from backsweep.lab.claims.groups import Group, area, comparable, complete, final_score, groups_for, scores
from backsweep.lab.claims.question import Kind, Question
from backsweep.lab.claims.registry import QUESTIONS, find_question
from backsweep.lab.claims.verdict import Verdict
from backsweep.lab.report.chart import AnyChart
from backsweep.lab.report.charts import charts_for
from backsweep.lab.report.learning_charts import trials
from backsweep.lab.report.soonest import Soonest, read_soonest
from backsweep.lab.report.tables import RUNAWAY, SUCCESS
from backsweep.lab.stats.curves import steps_to
from backsweep.lab.stats.survival import median_interval

OFTEN = 0.15
"""Share of runs whose values ran away from which on a reader is told so at once."""
GOOD_ENOUGH = 0.8  # of the way from the worst episode to the best
THRESHOLD_TITLE = f"Steps until a run scores {GOOD_ENOUGH}"
SUCCESS_TITLE = "Episodes that reach the goal at the end, one number per seed, from the worst to the best"
RUNAWAY_TITLE = "Runs whose mean value of the probe's states left, at some evaluation, what any episode can pay"

SETTINGS_IN_WORDS = {
    "ours": "our settings",
    "paper": "the paper's settings",
    "released": "the released code's settings",
}


@dataclass
class Answer:
    """A question, what came out, and what is drawn for it."""

    question: Question
    verdict: Verdict
    follows: str = "paper"
    """Whose settings its runs have: "ours", "paper" or "released"."""
    charts: list[AnyChart] = field(default_factory=list)
    scores: list[dict[str, Any]] = field(default_factory=list)
    """Scores by method, where there are training runs."""
    thresholds: list[dict[str, Any]] = field(default_factory=list)
    """Steps until a run is good enough, by task and method."""
    successes: list[dict[str, Any]] = field(default_factory=list)
    """How often the goal is reached at the end, by task and method, where that is known exactly."""
    runaways: list[dict[str, Any]] = field(default_factory=list)
    """Runs whose values left what an episode can pay, by task and method, where there are any."""
    sources: list[dict[str, Any]] = field(default_factory=list)
    """The configuration of the runs behind it, one row per task and method."""

    @property
    def by_task(self) -> dict[str, list[dict[str, Any]]]:
        """The tables by task and method that have rows, by title."""
        tables = {THRESHOLD_TITLE: self.thresholds, SUCCESS_TITLE: self.successes, RUNAWAY_TITLE: self.runaways}
        return {title: rows for title, rows in tables.items() if rows}

    @property
    def id(self) -> str:
        """The question's, with the settings where they are not the question's own."""
        return self.question.id if self.usual else f"{self.question.id} {self.follows}"

    @property
    def usual(self) -> bool:
        """Whether its runs have the settings that the question asks about first."""
        return self.follows == self.question.settings

    @property
    def slug(self) -> str:
        """What names of files and places on the page begin with."""
        return self.id.lower().replace(" ", "-")

    @property
    def short(self) -> str:
        """What came out, in one sentence that a reader wants."""
        verdict = self.verdict
        return verdict.short or f"{verdict.parts_in_words} {verdict.summary.split('. ')[0].rstrip('.')}.".strip()

    @property
    def caution(self) -> str:
        """What to keep in mind about the runs, found in the records; empty where there is nothing."""
        gone = sum(row[RUNAWAY] for row in self.runaways)
        runs = sum(row["runs"] for row in self.runaways)
        return f"Values ran away in {gone} of {runs} runs." if gone > OFTEN * runs else ""

    @property
    def title(self) -> str:
        """The question's, and what is other about the runs."""
        return self.question.title + ("" if self.usual else f" (with {SETTINGS_IN_WORDS[self.follows]})")


@dataclass
class Report:
    """All answers, and what is to be said about the records."""

    answers: list[Answer]
    evidence: Evidence
    soonest: Soonest | None = None
    """When each method solves each task with our settings; None where that is not known."""

    @property
    def remarks(self) -> list[str]:
        """What the reader should know about the records."""
        torn = [
            f"{path}: {count} {'line' if count == 1 else 'lines'} could not be read and count for nothing"
            for path, count in sorted(self.evidence.torn.items())
        ]
        return torn + sorted(dict.fromkeys(self.evidence.left_out))


KINDS: dict[str, tuple[Kind, ...]] = {
    "Graph values": ("graph values", "tuning"),
    "The paper's claims": ("paper",),
}


def by_kind(answers: Sequence[Answer]) -> dict[str, list[Answer]]:
    """Return the answers by the title that they are shown under, the project's own questions first."""
    return {title: [answer for answer in answers if answer.question.kind in kinds] for title, kinds in KINDS.items()}


def make_report(results: Path) -> Report:
    """Read a results folder and answer every question from it."""
    evidence = read_evidence(results)
    tuning = evidence.of_tuning()
    following = {whom: evidence.following(whom) for whom in SETTINGS_IN_WORDS}
    answers = []
    for question in QUESTIONS:
        if question.kind == "tuning":
            answers.append(_answer(question, tuning, question.settings))
            continue
        answers.append(_answer(question, following[question.settings], question.settings))
        for whom, runs in following.items():
            # Runs of another question may be part of this one too; the table need not say so twice.
            if whom != question.settings and question.variants:
                answer = _answer(question, runs, whom)
                if answer.verdict.outcome != "not run":
                    answers.append(answer)
    return Report(answers, evidence, read_soonest(evidence, find_question("G1")))


def _answer(question: Question, evidence: Evidence, follows: str) -> Answer:
    answer = Answer(question, question.decide(evidence), follows)
    if answer.verdict.outcome == "not run":
        return answer
    if question.kind == "tuning":
        answer.charts = trials(answer.verdict, answer.slug)
        answer.sources = _sources(question, evidence)
        return answer
    answer.charts = charts_for(question, evidence, answer.slug, answer.verdict)
    if question.variants and answer.charts:
        answer.scores, answer.sources = _scores(question, evidence), _sources(question, evidence)
        answer.thresholds, answer.successes = _thresholds(question, evidence), _successes(question, evidence)
        answer.runaways = _runaways(question, evidence)
    return answer


def _scores(question: Question, evidence: Evidence) -> list[dict[str, Any]]:
    """Return the aggregate scores of the variants that share seeds on some task."""
    from backsweep.lab.stats.aggregate import aggregates

    groups = complete(groups_for(question, evidence), question.compared)
    labels = comparable(question, groups)
    for label in (variant.label for variant in question.variants):
        if label not in labels and any(label in group.runs for group in groups.values()):
            evidence.left_out.append(f"{question.id}: {label} lacks tasks or seeds that the others have, so no score")
    rows = []
    for name, measure in (("final score", final_score), ("area under the curve", area)):
        values = scores(groups, labels, measure) if groups else {}
        for label, found in (aggregates(values) if values else {}).items():
            rows.append({"measure": name, "method": label, "tasks": len(groups), "seeds": len(values[label]), **found})
    return rows


def _in_order(question: Question, group: Group) -> Iterator[tuple[str, dict[int, TrainedRun]]]:
    """Yield a task's runs in the order of the question's variants, not in that of the folders."""
    for variant in question.variants:
        if variant.label in group.runs:
            yield variant.label, group.runs[variant.label]


def _thresholds(question: Question, evidence: Evidence) -> list[dict[str, Any]]:
    """Return the median of the steps until a run's score is at the threshold; runs that never are count as censored.

    Where scores have no bounds, no share of the way to the best one is known, and there is nothing to return.
    """
    rows = []
    for task, group in sorted(groups_for(question, evidence).items()):
        for label, runs in _in_order(question, group):
            if not all(run.bounded for run in runs.values()):
                continue
            found = [steps_to(run.steps, run.score, GOOD_ENOUGH) for run in runs.values()]
            times, happened = [time for time, _ in found], [done for _, done in found]
            rows.append(
                {
                    "task": task,
                    "method": label,
                    f"runs that reach {GOOD_ENOUGH}": f"{sum(happened)} of {len(runs)}",
                    "median steps": median_interval(times, happened, generator=named_generator(0, task, label)),
                }
            )
    return rows


def _successes(question: Question, evidence: Evidence) -> list[dict[str, Any]]:
    """Return the share of episodes that reach the goal by each run's last policy, from the worst seed to the best."""
    rows = []
    for task, group in sorted(groups_for(question, evidence).items()):
        for label, runs in _in_order(question, group):
            found = sorted(float(run.numbers["exact_success"][-1]) for run in runs.values())
            if not np.isnan(found).any():
                rows.append({"task": task, "method": label, SUCCESS: found})
    return rows


def _runaways(question: Question, evidence: Evidence) -> list[dict[str, Any]]:
    """Return how many runs had values that no episode can pay; nothing if no run had, or if no bounds are known."""
    rows = []
    for task, group in sorted(groups_for(question, evidence).items()):
        for label, runs in _in_order(question, group):
            bounds = [return_bounds(run.config) for run in runs.values()]
            gone = [
                left_bounds(run.numbers["probe_q"], bound)
                for run, bound in zip(runs.values(), bounds, strict=True)
                if bound is not None
            ]
            if gone:
                rows.append({"task": task, "method": label, RUNAWAY: sum(gone), "runs": len(gone)})
    return rows if any(row[RUNAWAY] for row in rows) else []


def _sources(question: Question, evidence: Evidence) -> list[dict[str, Any]]:
    rows = []
    for task, group in sorted(groups_for(question, evidence).items()):
        for label, runs in _in_order(question, group):
            run = next(iter(runs.values()))
            config, place = run.config, run.place
            rows.append(
                {
                    "task": task,
                    "method": label,
                    "seeds": ", ".join(map(str, sorted(runs))),
                    "configuration": group.exact[label],
                    "steps": config.get("steps"),
                    "capacity": config.get("capacity"),
                    "settings": settings_of(config),
                    "records": str((place if place.is_file() else place.parent).relative_to(evidence.root)),
                }
            )
    return rows
