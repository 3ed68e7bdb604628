"""What is drawn for each question, as numbers: the page and the pictures are made from the same."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backsweep.jit.random_streams import named_generator
from backsweep.lab.claims.chain_rules import backups_to_solve, curve, tabular_records
from backsweep.lab.claims.evidence import Evidence, TrainedRun
from backsweep.lab.claims.goal_rules import SOLVED, kept
from backsweep.lab.claims.groups import Group, comparable, complete, final_score, groups_for, scores
from backsweep.lab.claims.lead_rules import GrowsWithSize
from backsweep.lab.claims.measured_rules import reported
from backsweep.lab.claims.question import Question
from backsweep.lab.stats.intervals import curve_bands, performance_profile
from backsweep.lab.stats.survival import kaplan_meier
from backsweep.lab.studies.tabular.setting import METHODS
from backsweep.lab.studies.tabular.study import BATCHES, DIFFUSION_TARGETS, DIFFUSIONS, INITIALS, TARGETS, moments


@dataclass(frozen=True)
class Series:
    """One line, with a band around it where there is one."""

    name: str
    x: list[float]
    y: list[float]
    low: list[float] = field(default_factory=list)
    high: list[float] = field(default_factory=list)
    steps: bool = False
    """Whether the line goes in steps."""
    points: bool = False
    """Whether there are points with bars instead of a line with a band."""


@dataclass(frozen=True)
class Facet:
    """One view of a chart; the reader chooses between them."""

    label: str
    series: list[Series]


@dataclass(frozen=True)
class Chart:
    """A chart: axes and views."""

    name: str
    title: str
    x: str
    y: str
    facets: list[Facet]
    log_x: bool = False
    log_y: bool = False
    y_shows: tuple[float, ...] = (0.0,)
    """Values that the y axis reaches at the least."""
    pictured: tuple[int, ...] = (0,)
    """Which views the picture file shows."""

    def to_json(self) -> dict[str, Any]:
        """Return the chart as plain JSON, numbers cut to four digits."""
        return {**dataclasses.asdict(self), "facets": [_short(dataclasses.asdict(facet)) for facet in self.facets]}


def charts_for(question: Question, evidence: Evidence, slug: str) -> list[Chart]:
    """Return the charts of a question; none where nothing was run. `slug` begins the names of those about training."""
    special: dict[str, Callable[[Evidence], list[Chart]]] = {
        "C1": _solved,
        "C2": _errors,
        "C11": _speeds,
        "C19": _diffusions,
        "C21": _coverage,
    }
    if question.id in special:
        return special[question.id](evidence)
    return _learning(question, evidence, slug) if question.variants else []


def _views() -> list[dict[str, Any]]:
    return [
        {"batch": batch, "initial": initial, "target_every": target}
        for batch in BATCHES
        for initial in INITIALS
        for target in TARGETS
    ]


def _view_label(view: dict[str, Any]) -> str:
    start = "from zero" if view["initial"] == "zero" else "from uniform(0, 0.1)"
    target = "no target table" if view["target_every"] == 0 else f"target copied every {view['target_every']}"
    rows = "1 transition" if view["batch"] == 1 else f"{view['batch']} transitions"
    return f"{rows} per backup, {target}, {start}"


def _solved_share(records: list[dict[str, Any]], name: str) -> Series:
    times, happened = backups_to_solve(records)
    at, waiting = kaplan_meier(times, happened)
    budget = float(records[0]["backups"])
    share = (1.0 - waiting).tolist()
    return Series(name, [1.0, *at.tolist(), budget], [0.0, *share, share[-1] if share else 0.0], steps=True)


def _solved(evidence: Evidence) -> list[Chart]:
    facets = []
    for view in _views():
        found = {method: tabular_records(evidence, method=method, **view) for method in METHODS}
        series = [_solved_share(records, method) for method, records in found.items() if records]
        if series:
            facets.append(Facet(_view_label(view), series))
    if not facets:
        return []
    title = "Share of data sets solved (one minus Kaplan-Meier)"
    return [Chart("c1-solved", title, "backups", "solved", facets, log_x=True, pictured=(0, 1, 3))]


def _errors(evidence: Evidence) -> list[Chart]:
    facets = []
    for view in _views():
        series = []
        for method in METHODS:
            records = tabular_records(evidence, method=method, **view)
            if not records:
                continue
            at = moments(records[0]["backups"])
            curves = np.array([curve(record, "error") for record in records])
            middle, low, high = curve_bands(curves, generator=named_generator(0, method), repeats=300)
            x = [max(float(moment), 0.7) for moment in at]  # a logarithmic axis has no 0
            series.append(Series(method, x, middle.tolist(), low.tolist(), high.tolist()))
        if series:
            facets.append(Facet(_view_label(view), series))
    if not facets:
        return []
    title = "Mean |Q - Q*|, interquartile mean over data sets"
    return [Chart("c2-error", title, "backups", "value error", facets, log_x=True, pictured=(0, 1, 3))]


def _diffusions(evidence: Evidence) -> list[Chart]:
    facets = []
    for view in _views():
        if view["target_every"] not in DIFFUSION_TARGETS:
            continue
        found = {d: tabular_records(evidence, **view, method="ebu", diffusion=d) for d in DIFFUSIONS}
        series = [_solved_share(records, f"beta {d:g}") for d, records in found.items() if records]
        if series:
            facets.append(Facet(_view_label(view), series))
    if not facets:
        return []
    title = "EBU: share of data sets solved, by diffusion factor"
    return [Chart("c19-solved", title, "backups", "solved", facets, log_x=True, pictured=(0, 8))]


def _speeds(evidence: Evidence) -> list[Chart]:
    records = reported(evidence, "speed")
    if not records:
        return []
    facets = []
    for operation in ("sample", "add"):
        series = []
        for method in dict.fromkeys(record["method"] for record in records):
            rounds = [r for r in records if r["method"] == method and r["operation"] == operation]
            x = [float(r["round"] + 1) for r in rounds]
            y = [r["mean"] * 1e6 for r in rounds]
            series.append(Series(method, x, y, [r["median"] * 1e6 for r in rounds], y))
        label = "drawing a batch" if operation == "sample" else "adding a step"
        facets.append(Facet(f"{label}: mean, and down to the median", series))
    return [Chart("c11-speed", "Microseconds per batch or step", "round", "µs", facets, pictured=(0, 1))]


def _coverage(evidence: Evidence) -> list[Chart]:
    records = reported(evidence, "coverage")
    if not records:
        return []
    series = []
    for eta, mixed in dict.fromkeys((r["eta"], r["mixed_in"]) for r in records):
        same = [r for r in records if (r["eta"], r["mixed_in"]) == (eta, mixed)]
        name = f"eta {eta:g} from {mixed}" if eta else "no mixing (stopped at the limit)"
        series.append(Series(name, [float(r["seed"]) for r in same], [float(r["batches"]) for r in same]))
    facet = Facet("all seeds", series)
    return [Chart("c21-batches", "Batches until every row was drawn", "seed", "batches", [facet])]


def _learning(question: Question, evidence: Evidence, slug: str) -> list[Chart]:
    groups = groups_for(question, evidence)
    bounded = all(run.bounded for group in groups.values() for runs in group.runs.values() for run in runs.values())
    curves = [
        _curves(question, groups, slug, "score", "Score", lambda run: run.score, (0.0, 1.0) if bounded else ()),
        _curves(
            question,
            groups,
            slug,
            "success",
            "Share of episodes that reach the goal",
            lambda run: run.numbers["exact_success"],
            (0.0, 1.0),
        ),
        _curves(
            question,
            groups,
            slug,
            "value error",
            "Mean |Q - Q*| over all states and actions",
            lambda run: run.numbers["value_error"],
            log_y=True,
        ),
    ]
    found = [chart for chart in curves if chart is not None]
    if question.kind == "graph values":
        return [*_soonest(question, groups, slug), *found]
    return [*found[:1], *_profiles(question, groups, slug), *found[1:], *_leads(question, groups, slug)]


def _soonest(question: Question, groups: dict[str, Group], slug: str) -> list[Chart]:
    """Return which share of runs has solved its task by each step, on all tasks and on each; nothing where unknown."""
    known = {
        task: group
        for task, group in sorted(groups.items())
        if not any(
            np.isnan(run.numbers["exact_success"]).any() for runs in group.runs.values() for run in runs.values()
        )
    }
    places: dict[str, list[Group]] = {task: [group] for task, group in known.items()}
    if len(known) > 1:
        places = {f"all {len(known)} tasks": list(known.values()), **places}
    facets = []
    for title, members in places.items():
        found = {
            variant.label: [run for group in members for run in group.runs.get(variant.label, {}).values()]
            for variant in question.variants
        }
        facets.append(Facet(title, [_solved_runs(label, runs) for label, runs in found.items() if runs]))
    if not facets:
        return []
    title = f"Share of runs that solve {SOLVED:.0%} of episodes from there on (one minus Kaplan-Meier)"
    pictured = tuple(range(min(len(facets), 8)))
    name = f"{slug}-soonest"
    return [Chart(name, title, "environment steps", "runs", facets, y_shows=(0.0, 1.0), pictured=pictured)]


def _solved_runs(label: str, runs: Sequence[TrainedRun]) -> Series:
    found = [kept(run) for run in runs]
    at, waiting = kaplan_meier([time for time, _ in found], [done for _, done in found])
    share = (1.0 - waiting).tolist()
    length = max(float(run.steps[-1]) for run in runs)
    return Series(label, [0.0, *at.tolist(), length], [0.0, *share, share[-1] if share else 0.0], steps=True)


def _profiles(question: Question, groups: dict[str, Group], slug: str) -> list[Chart]:
    """Return which share of runs ends above each score: all of the distribution, not its middle alone."""
    groups = complete(groups, question.compared)
    labels = comparable(question, groups)
    values = scores(groups, labels, final_score)
    if not values:
        return []
    everything = np.concatenate([found.ravel() for found in values.values()])
    thresholds = np.linspace(min(0.0, everything.min()), max(1.0, everything.max()), 60)
    series = []
    for label, found in values.items():
        share, low, high = performance_profile(found, thresholds, generator=named_generator(0, "profile", label))
        series.append(Series(label, thresholds.tolist(), share.tolist(), low.tolist(), high.tolist()))
    facet = Facet(f"{len(values[labels[0]])} paired seeds on {values[labels[0]].shape[1]} tasks", series)
    title = "Share of runs that end above a score (performance profile)"
    return [Chart(f"{slug}-profile", title, "score", "share of runs", [facet])]


def _leads(question: Question, groups: dict[str, Group], slug: str) -> list[Chart]:
    """Return the lead on each task against the task's size and against the density of the measured graph."""
    charts = []
    rules = getattr(question.rule, "rules", (question.rule,))
    for rule in (rule for rule in rules if isinstance(rule, GrowsWithSize)):
        leads = rule.leads(complete(groups, rule.compared))
        for name, x, of in (
            ("size", "ways to place player and boxes", lambda lead: float(lead.size)),
            ("density", "edges per state of the measured graph", lambda lead: lead.edges_per_vertex),
        ):
            known = [lead for lead in leads if math.isfinite(of(lead))]
            series = [
                Series(
                    lead.task,
                    [of(lead)],
                    [lead.interval.estimate],
                    [lead.interval.low],
                    [lead.interval.high],
                    points=True,
                )
                for lead in known
            ]
            if series:
                title = f"Lead of {rule.winner} over the mean of the others, in {rule.measure[0]}, by task"
                facet = Facet(f"{len(series)} tasks, 95% intervals", series)
                chart = f"{slug}-lead-{name}"
                charts.append(Chart(chart, title, x, "lead", [facet], log_x=name == "size"))
    return charts


def _curves(
    question: Question,
    groups: dict[str, Group],
    slug: str,
    name: str,
    title: str,
    measure: Callable[[TrainedRun], NDArray[np.float64]],
    y_shows: tuple[float, ...] = (),
    *,
    log_y: bool = False,
) -> Chart | None:
    """Return how something developed on each task; None if no task has it."""
    facets = [
        Facet(f"{task} ({group.size} runs)", _lines(question, group, measure)) for task, group in sorted(groups.items())
    ]
    facets = [facet for facet in facets if facet.series]
    if not facets:
        return None
    return Chart(
        f"{slug}-{name.replace(' ', '-')}",
        f"{title}, interquartile mean over seeds with 95% intervals",
        "environment steps",
        name,
        facets,
        y_shows=y_shows,
        log_y=log_y,
        pictured=tuple(range(min(len(facets), 8))),
    )


def _lines(question: Question, group: Group, measure: Callable[[TrainedRun], NDArray[np.float64]]) -> list[Series]:
    series = []
    for variant in question.variants:
        runs = [run for run in group.runs.get(variant.label, {}).values() if not np.isnan(measure(run)).any()]
        if not runs:
            continue
        count = min(len(run.steps) for run in runs)
        steps = runs[0].steps[:count]
        curves = np.array([measure(run)[:count] for run in runs if np.array_equal(run.steps[:count], steps)])
        middle, low, high = curve_bands(curves, generator=named_generator(0, variant.label), repeats=300)
        series.append(Series(variant.label, steps.tolist(), middle.tolist(), low.tolist(), high.tolist()))
    return series


def _short(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _short(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_short(item) for item in value]
    if isinstance(value, float):
        return float(f"{value:.4g}") if math.isfinite(value) else None
    return value
