"""Makes a report from a results folder."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from backsweep.agent.palette import in_order, title_of
from backsweep.jit.random_streams import named_generator
from backsweep.lab.claims.evidence import Evidence, TrainedRun, left_bounds, read_evidence, return_bounds, settings_of
from backsweep.lab.claims.groups import (
    Group,
    Groups,
    Measure,
    area,
    comparable,
    complete,
    final,
    final_score,
    groups_for,
    not_compared,
    on_one_scale,
    scores,
)
from backsweep.lab.claims.question import Kind, Question, Table, Verdict
from backsweep.lab.claims.questions import QUESTIONS, find_question
from backsweep.lab.report.chart import AnyChart
from backsweep.lab.report.charts import charts_for
from backsweep.lab.report.learning_charts import trials
from backsweep.lab.report.solving_time import SolvingTimes, read_soonest
from backsweep.lab.report.tables import DIVERGED, SUCCESS
from backsweep.lab.stats import aggregates, median_interval, steps_to

OFTEN = 0.15
"""Share of diverged runs above which the summary mentions them."""
GOOD_ENOUGH = 0.8  # of the way from the worst episode to the best
THRESHOLD_TITLE = f"Steps until a run scores {GOOD_ENOUGH}"
SUCCESS_TITLE = "Episodes that reach the goal at the end, one number per seed, from the worst to the best"
DIVERGED_TITLE = "Runs whose mean value of the probe states left the bounds of returns at some evaluation"

SETTINGS_IN_WORDS = {
    "ours": "our settings",
    "paper": "the paper's settings",
    "released": "the released code's settings",
}


@dataclass
class Answer:
    """A question with its verdict, charts and tables."""

    question: Question
    verdict: Verdict
    follows: str = "paper"
    """Whose settings its runs have: "ours", "paper" or "released"."""
    charts: list[AnyChart] = field(default_factory=list)
    scores: Table = field(default_factory=list)
    """Scores by method, where there are training runs."""
    thresholds: Table = field(default_factory=list)
    """Steps until a run is good enough, by task and method."""
    successes: Table = field(default_factory=list)
    """Share of episodes that reach the goal at the end, by task and method, where it is known exactly."""
    diverged: Table = field(default_factory=list)
    """Diverged runs by task and method, if there are any."""
    sources: Table = field(default_factory=list)
    """The configuration of the runs behind it, one entry per task and method."""

    @property
    def by_task(self) -> dict[str, Table]:
        """The tables by task and method that have entries, by title."""
        tables = {THRESHOLD_TITLE: self.thresholds, SUCCESS_TITLE: self.successes, DIVERGED_TITLE: self.diverged}
        return {title: entries for title, entries in tables.items() if entries}

    @property
    def id(self) -> str:
        """The question's id, followed by the settings if they are not the question's."""
        return self.question.id if self.usual else f"{self.question.id} {self.follows}"

    @property
    def usual(self) -> bool:
        """Whether its runs have the question's settings."""
        return self.follows == self.question.settings

    @property
    def slug(self) -> str:
        """The beginning of its file names and anchors."""
        return self.id.lower().replace(" ", "-")

    @property
    def short(self) -> str:
        """The result in one sentence."""
        verdict = self.verdict
        short = verdict.short or f"{verdict.checks_in_words} {verdict.summary.split('. ')[0].rstrip('.')}.".strip()
        return f"{short} It would take {verdict.needs_in_words}." if verdict.needs else short

    @property
    def caution(self) -> str:
        """A warning about the runs, or an empty text."""
        gone = sum(entry[DIVERGED] for entry in self.diverged)
        runs = sum(entry["runs"] for entry in self.diverged)
        of_graph = [entry[DIVERGED] for entry in self.diverged if entry["method"] == "graph"]
        unless = ", in none of graph values" if of_graph and not sum(of_graph) else ""
        return f"Values diverged in {gone} of {runs} runs{unless}." if gone > OFTEN * runs else ""

    @property
    def title(self) -> str:
        """The question's title, followed by the settings if they are not the question's."""
        return self.question.title + ("" if self.usual else f" (with {SETTINGS_IN_WORDS[self.follows]})")


@dataclass
class Report:
    """All answers, and remarks about the records."""

    answers: list[Answer]
    evidence: Evidence
    soonest: SolvingTimes | None = None
    """When each method solves each task with our settings; None if unknown."""

    @property
    def remarks(self) -> list[str]:
        """Notes about records that were not used."""
        torn = [
            f"{path}: {count} {'line' if count == 1 else 'lines'} could not be read and were skipped"
            for path, count in sorted(self.evidence.torn.items())
        ]
        damaged = [f"left out: {text}" for text in dict.fromkeys(self.evidence.damaged)]
        return damaged + torn + _by_task(sorted(dict.fromkeys(self.evidence.left_out)))


_OTHERS = re.compile(r"(\S+): (\d+) runs? with other settings \(\w+\) (?:is|are) not compared")


def _by_task(remarks: list[str]) -> list[str]:
    """Return remarks with one line per task for the runs with other settings."""
    others: Counter[str] = Counter()
    rest = []
    for remark in remarks:
        if found := _OTHERS.fullmatch(remark):
            others[found[1]] += int(found[2])
        else:
            rest.append(remark)
    return rest + [not_compared(task, count) for task, count in others.items()]


KINDS: dict[str, tuple[Kind, ...]] = {
    "Graph values": ("graph values", "tuning"),
    "The paper's claims": ("paper",),
    "The paper's released code": ("released code",),
}


def by_kind(answers: Sequence[Answer]) -> dict[str, list[Answer]]:
    """Return the answers by section title, the project's own questions first."""
    return {title: [answer for answer in answers if answer.question.kind in kinds] for title, kinds in KINDS.items()}


def make_report(results: Path, say: Callable[[str], None] = lambda _: None) -> Report:
    """Read a results folder and answer every question from it. `say` is told what is done next."""
    say(f"reading {results} ...")
    evidence = read_evidence(results)
    count = len(evidence.runs) + len(evidence.tuning)
    say(f"deciding {len(QUESTIONS)} questions from {count:,} {'run' if count == 1 else 'runs'} ...")
    tuning = evidence.of_tuning()
    by_settings = {settings: evidence.with_settings(settings) for settings in SETTINGS_IN_WORDS}
    answers: list[Answer] = []
    for question in QUESTIONS:
        if question.kind == "tuning":
            answers.append(_answer(question, tuning, question.settings))
        else:
            answers += _answers(question, by_settings)
    return Report(answers, evidence, read_soonest(evidence, find_question("G1")))


def _answers(question: Question, by_settings: dict[str, Evidence]) -> list[Answer]:
    """Return a question's answer with its settings, then those with others; "not run" only if it has no runs at all."""
    usual = _answer(question, by_settings[question.settings], question.settings)
    others = [
        _answer(question, runs, settings)
        for settings, runs in by_settings.items()
        if settings != question.settings and question.variants and _trained(question, runs)
    ]
    run = [answer for answer in (usual, *others) if answer.verdict.outcome != "not run"]
    return run or [usual]


def _answer(question: Question, evidence: Evidence, follows: str) -> Answer:
    answer = Answer(question, question.decide(evidence), follows)
    if answer.verdict.outcome == "not run":
        return answer
    if question.kind == "tuning":
        answer.charts = trials(answer.verdict, answer.slug)
        answer.sources = _sources(question, evidence)
        return answer
    answer.charts = charts_for(question, evidence, answer.slug, answer.verdict)
    if question.variants and answer.charts and _trained(question, evidence):
        answer.sources = _sources(question, evidence)
    if answer.sources and question.whole_runs:
        answer.scores = _scores(question, evidence)
        answer.thresholds, answer.successes = _thresholds(question, evidence), _successes(question, evidence)
        answer.diverged = _diverged(question, evidence)
    return answer


def _trained(question: Question, evidence: Evidence) -> bool:
    """Return whether the training of a question that has a study as well was run; the study alone is not about it."""
    return not question.trains or bool(complete(groups_for(question, evidence), question.compared))


def _scores(question: Question, evidence: Evidence) -> Table:
    """Return the aggregate scores of comparable variants, by task where tasks have units of their own."""
    groups = complete(groups_for(question, evidence), question.compared)
    labels = comparable(question, groups)
    names = in_order(variant.label for variant in question.variants if variant.label not in labels)
    if lacking := [title_of(name) for name in names if any(name in group.runs for group in groups.values())]:
        text = f"{', '.join(lacking)}: not on all tasks with all seeds that the others have, so no score"
        evidence.left_out.append(f"{question.id}: {text}")
    entries = []
    for name, measure in (("final score", final_score), ("area under the curve", area)):
        if on_one_scale(groups):
            entries += _aggregates(groups, labels, name, measure, {"tasks": len(groups)})
        else:
            for task, group in sorted(groups.items()):
                entries += _aggregates({task: group}, labels, name, measure, {"task": task})
    return entries


def _aggregates(groups: Groups, labels: Sequence[str], name: str, measure: Measure, where: dict[str, Any]) -> Table:
    values = scores(groups, labels, measure) if groups else {}
    return [
        {"measure": name, "method": label, **where, "seeds": len(values[label]), **found}
        for label, found in (aggregates(values) if values else {}).items()
    ]


def _runs(question: Question, evidence: Evidence) -> Iterator[tuple[Group, str, list[TrainedRun]]]:
    """Yield the runs of each task and variant, with variants in the question's order."""
    for _, group in sorted(groups_for(question, evidence).items()):
        for variant in question.variants:
            if variant.label in group.runs:
                yield group, variant.label, list(group.runs[variant.label].values())


def _thresholds(question: Question, evidence: Evidence) -> Table:
    """Return the median steps to the threshold, with runs that never reach it censored; only for bounded scores."""
    entries = []
    for group, label, runs in _runs(question, evidence):
        if all(run.bounded for run in runs):
            times, happened = zip(*(steps_to(run.steps, run.score, GOOD_ENOUGH) for run in runs), strict=True)
            generator = named_generator(0, group.task, label)
            entries.append(
                {
                    "task": group.task,
                    "method": label,
                    f"runs that reach {GOOD_ENOUGH}": f"{sum(happened)} of {len(runs)}",
                    "median steps": median_interval(times, happened, generator=generator),
                }
            )
    return entries


def _successes(question: Question, evidence: Evidence) -> Table:
    """Return each run's final share of episodes that reach the goal, from the worst seed to the best."""
    entries = []
    for group, label, runs in _runs(question, evidence):
        found = sorted(final(run.numbers["exact_success"]) for run in runs)
        if not np.isnan(found).any():
            entries.append({"task": group.task, "method": label, SUCCESS: found})
    return entries


def _diverged(question: Question, evidence: Evidence) -> Table:
    """Return how many runs left the bounds of returns; nothing if none did or no bounds are known."""
    entries = []
    for group, label, runs in _runs(question, evidence):
        bounds = [(run, bound) for run in runs if (bound := return_bounds(run.config)) is not None]
        if bounds:
            count = sum(left_bounds(run.numbers["probe_q"], bound) for run, bound in bounds)
            entries.append({"task": group.task, "method": label, DIVERGED: count, "runs": len(bounds)})
    return entries if any(entry[DIVERGED] for entry in entries) else []


def _sources(question: Question, evidence: Evidence) -> Table:
    """Return the configuration and records of the runs of each task and variant."""
    entries = []
    for group, label, runs in _runs(question, evidence):
        config, place = runs[0].config, runs[0].place
        entries.append(
            {
                "task": group.task,
                "method": label,
                "seeds": ", ".join(map(str, sorted(run.seed for run in runs))),
                "configuration": group.exact[label],
                "steps": config.get("steps"),
                "capacity": config.get("capacity"),
                "settings": settings_of(config),
                "records": str((place if place.is_file() else place.parent).relative_to(evidence.root)),
            }
        )
    return entries
