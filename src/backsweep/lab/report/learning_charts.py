"""Charts of the questions about training runs: leads, curves, and when runs solve a task."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backsweep.agent.palette import title_of
from backsweep.jit.random_streams import named_generator
from backsweep.lab.claims.evidence import Evidence, TrainedRun
from backsweep.lab.claims.goal_rules import SOLVED, kept
from backsweep.lab.claims.groups import (
    Group,
    Groups,
    comparable,
    complete,
    final_score,
    groups_for,
    on_one_scale,
    scores,
)
from backsweep.lab.claims.lead_rules import GrowsWithSize
from backsweep.lab.claims.question import Question, Verdict
from backsweep.lab.claims.summary import TITLE as BY_TASK
from backsweep.lab.report.chart import AnyChart, Chart, DotCategory, DotChart, Dots, Facet, Series, Unit, task_title
from backsweep.lab.stats import curve_bands, performance_profile

MOST_PANELS = 8  # in one picture file
Curve = Callable[[TrainedRun], NDArray[np.float64]]
"""A number of each of a run's evaluations."""


def learning(question: Question, evidence: Evidence, slug: str, verdict: Verdict) -> list[AnyChart]:
    """Return the charts of a question about training; the first one shows what decides."""
    groups = groups_for(question, evidence)
    bounded = [run.bounded for group in groups.values() for runs in group.runs.values() for run in runs.values()]
    curves = partial(_curves, question, groups, slug)
    unless = "" if all(bounded) else "; the return where those are unknown"
    title = f"Score (0 the worst episode, 1 the best{unless})" if any(bounded) else "Return"
    shows = (0.0, 1.0) if all(bounded) else ()
    measured = (
        curves("score", title, lambda run: run.score, shows),
        curves("success", "Episodes that reach the goal", _number("exact_success"), (0.0, 1.0), unit="percent"),
        curves("value error", "Mean |Q - Q*| over all states and actions", _number("value_error"), log_y=True),
    )
    found: list[AnyChart] = [chart for chart in measured if chart is not None]
    if question.kind == "graph values":
        found = [*_soonest(question, groups, slug), *found]
    else:
        ahead = _lead_by_task(question, verdict, slug)
        found = [*ahead, *found[:1], *_profiles(question, groups, slug), *found[1:], *_leads(question, groups, slug)]
    known = tuple(variant.label for variant in question.variants)
    return [replace(chart, known=known) for chart in found]


def trials(verdict: Verdict, slug: str) -> list[AnyChart]:
    """Return the mean success of each trial over its whole run, the best first: a chart for each set of tasks.

    Trials on different tasks cannot be compared; one that is alone on its tasks is in the tables.
    """
    tasks: dict[str, tuple[str, ...]] = {}
    for entry in verdict.more.get("By task", []):
        tasks[entry["method"]] = (*tasks.get(entry["method"], ()), entry["task"])
    column = "area under success"
    together: dict[tuple[str, ...], list[DotCategory]] = {}
    for entry in sorted(
        (entry for entry in verdict.table if column in entry), key=lambda entry: -float(entry[column].estimate)
    ):
        area, method = entry[column], entry["method"].split(", ")[0]
        dots = Dots(method, [area.estimate], area.estimate, area.low, area.high)
        together.setdefault(tasks.get(entry["method"], ()), []).append(DotCategory(title_of(entry["method"]), [dots]))
    charts: list[AnyChart] = []
    several = {where: categories for where, categories in together.items() if len(categories) > 1} or together
    for place, (where, categories) in enumerate(sorted(several.items(), key=lambda entry: -len(entry[1]))):
        title = "Episodes that reach the goal over the whole run, area under the curve, with 95% intervals"
        title += f", on {' and '.join(map(task_title, where))}" if where else ""
        name = f"{slug}-trials" + (f"-{place + 1}" if place else "")
        charts.append(DotChart(name, title, "episodes that reach the goal", categories, unit="percent", bars=True))
    return charts


def _in_order(question: Question, groups: Groups) -> list[tuple[str, Group]]:
    """Return the tasks in the question's order."""
    known = list(question.tasks)
    return sorted(groups.items(), key=lambda item: (known.index(item[0]) if item[0] in known else len(known), item[0]))


def _lead_by_task(question: Question, verdict: Verdict, slug: str) -> list[AnyChart]:
    """Return one method's lead over each of the others by task; nothing if the rules have several winners.

    If a rule compares pairs of methods, each pair has its difference.
    """
    entries = verdict.more.get(BY_TASK, [])
    rules = getattr(question.rule, "rules", (question.rule,))
    winners = {rule.winner for rule in rules if hasattr(rule, "winner")}
    firsts = winners or {entry["method"] for entry in entries if "method" in entry}
    if not entries or not firsts or len(winners) > 1:
        return []
    measure = entries[0]["measure"]
    entries = [entry for entry in entries if entry["measure"] == measure]
    tasks = [task for task in question.tasks if any(entry["task"] == task for entry in entries)]
    pairs = len(firsts) > 1

    def line(entry: dict[str, Any]) -> str:
        return f"{title_of(entry['method'])} minus {title_of(entry['against'])}" if pairs else str(entry["against"])

    categories = [
        DotCategory(
            task_title(task),
            [
                Dots(line(entry), [d.estimate], d.estimate, d.low, d.high, f"{entry['seeds ahead']} seeds")
                for entry in entries
                if entry["task"] == task
                for d in [entry["difference"]]
            ],
            task,
        )
        for task in tasks
    ]
    first = "one method" if pairs else title_of(firsts.pop())
    others = list(dict.fromkeys(entry["against"] for entry in entries))
    other = title_of(others[0]) if len(others) == 1 else "each other method" if not pairs else "another"
    title = f"{first[0].upper()}{first[1:]} minus {other}: {measure} by task, with 95% intervals"
    return [
        DotChart(f"{slug}-ahead", title, f"how far {'the first' if pairs else first} is above the other", categories)
    ]


def _soonest(question: Question, groups: Groups, slug: str) -> list[AnyChart]:
    """Return the share of runs that have solved their task by each step, over all tasks and by task."""
    known = {
        task: group
        for task, group in _in_order(question, groups)
        if not any(
            np.isnan(run.numbers["exact_success"]).any() for runs in group.runs.values() for run in runs.values()
        )
    }
    places: dict[str, list[Group]] = {task: [group] for task, group in known.items()}
    if len(known) > 1:
        names = ", ".join(map(task_title, known))
        whole = (
            f"all {len(known)} tasks" if len(known) == len(groups) else f"{len(known)} of {len(groups)} tasks: {names}"
        )
        places = {whole: list(known.values()), **places}
    facets = []
    for place, members in places.items():
        found = {
            variant.label: [run for group in members for run in group.runs.get(variant.label, {}).values()]
            for variant in question.variants
        }
        task = place if place in known else ""
        series = [_solved_runs(label, runs) for label, runs in found.items() if runs]
        facets.append(Facet(task_title(task) if task else place, series, task))
    if not facets:
        return []
    title = f"Share of runs that solve {SOLVED:.0%} of episodes from there on (one minus Kaplan-Meier)"
    return [
        Chart(
            f"{slug}-soonest",
            title,
            "environment steps",
            "runs",
            facets,
            y_shows=(0.0, 1.0),
            y_unit="percent",
            pictured=tuple(range(min(len(facets), MOST_PANELS))),
        )
    ]


def _solved_runs(label: str, runs: Sequence[TrainedRun]) -> Series:
    times, happened = zip(*(kept(run) for run in runs), strict=True)
    return Series.of_solved(label, times, happened, 0.0, max(float(run.steps[-1]) for run in runs))


def _profiles(question: Question, groups: Groups, slug: str) -> list[AnyChart]:
    """Return the share of runs that end above each score: the whole distribution."""
    groups = complete(groups, question.compared)
    labels = comparable(question, groups)
    values = scores(groups, labels, final_score)
    if not values or not on_one_scale(groups):
        return []
    everything = np.concatenate([found.ravel() for found in values.values()])
    thresholds = np.linspace(min(0.0, everything.min()), max(1.0, everything.max()), 60)
    series = []
    for label, found in values.items():
        share, low, high = performance_profile(found, thresholds, generator=named_generator(0, "profile", label))
        series.append(Series(label, thresholds.tolist(), share.tolist(), low.tolist(), high.tolist()))
    count, tasks = values[labels[0]].shape
    facet = Facet(
        f"{count} paired {'seed' if count == 1 else 'seeds'} on {tasks} {'task' if tasks == 1 else 'tasks'}", series
    )
    title = "Share of runs that end above a score (performance profile)"
    return [Chart(f"{slug}-profile", title, "score", "share of runs", [facet], y_unit="percent")]


def _leads(question: Question, groups: Groups, slug: str) -> list[AnyChart]:
    """Return the lead by task against the task's size and the density of its graph."""
    charts: list[AnyChart] = []
    rules = getattr(question.rule, "rules", (question.rule,))
    for rule in (rule for rule in rules if isinstance(rule, GrowsWithSize)):
        leads = rule.leads(complete(groups, rule.compared))
        for name, x, of in (
            ("size", "ways to place player and boxes", lambda lead: float(lead.size)),
            ("density", "edges per state of the measured graph", lambda lead: lead.edges_per_vertex),
        ):
            series = [
                Series(
                    task_title(lead.task),
                    [of(lead)],
                    [lead.interval.estimate],
                    [lead.interval.low],
                    [lead.interval.high],
                    points=True,
                )
                for lead in leads
                if math.isfinite(of(lead))
            ]
            if series:
                title = f"Lead of {title_of(rule.winner)} over the mean of the others, in {rule.measure[0]}, by task"
                facet = Facet(f"{len(series)} tasks, 95% intervals", series)
                charts.append(Chart(f"{slug}-lead-{name}", title, x, "lead", [facet], log_x=name == "size"))
    return charts


def _number(name: str) -> Curve:
    return lambda run: run.numbers[name]


def _curves(
    question: Question,
    groups: Groups,
    slug: str,
    name: str,
    title: str,
    measure: Curve,
    y_shows: tuple[float, ...] = (),
    *,
    log_y: bool = False,
    unit: Unit = "",
) -> Chart | None:
    """Return the curves of a measure by task; None if no task has it."""
    facets = [
        Facet(f"{task_title(task)}, {group.size} {'run' if group.size == 1 else 'runs'}", lines, task)
        for task, group in _in_order(question, groups)
        if (lines := _lines(question, group, measure))
    ]
    if not facets:
        return None
    return Chart(
        f"{slug}-{name.replace(' ', '-')}",
        f"{title}: interquartile mean over seeds, 95% intervals",
        "environment steps",
        name,
        facets,
        y_shows=y_shows,
        y_unit=unit,
        log_y=log_y,
        pictured=tuple(range(min(len(facets), MOST_PANELS))),
    )


def _lines(question: Question, group: Group, measure: Curve) -> list[Series]:
    series = []
    for variant in question.variants:
        runs = [run for run in group.runs.get(variant.label, {}).values() if not np.isnan(measure(run)).any()]
        if not runs:
            continue
        count = min(len(run.steps) for run in runs)
        steps = runs[0].steps[:count]
        curves = np.array([measure(run)[:count] for run in runs if np.array_equal(run.steps[:count], steps)])
        middle, low, high = curve_bands(curves, generator=named_generator(0, variant.label))
        series.append(Series(variant.label, steps.tolist(), middle.tolist(), low.tolist(), high.tolist()))
    return series
