"""Which charts each question has."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from backsweep.agent.palette import in_order, title_of
from backsweep.jit.random_streams import named_generator
from backsweep.lab.claims.chain_rules import all_settings, backups_to_solve, curve, tabular_records
from backsweep.lab.claims.evidence import Evidence, Records
from backsweep.lab.claims.measured_rules import ORDER_TEXTS, reported
from backsweep.lab.claims.question import Question, Verdict
from backsweep.lab.report.chart import AnyChart, Chart, DotCategory, DotChart, Dots, Facet, Series
from backsweep.lab.report.learning_charts import learning
from backsweep.lab.report.world_model_charts import world_model
from backsweep.lab.stats import curve_bands
from backsweep.lab.studies.graphs import KINDS
from backsweep.lab.studies.tabular.learner import METHODS
from backsweep.lab.studies.tabular.study import COMPARED, DIFFUSION_TARGETS, DIFFUSIONS, moments


def _view_label(view: dict[str, Any]) -> str:
    start = "from zero" if view["initial"] == "zero" else "from uniform(0, 0.1)"
    target = "no target table" if view["target_every"] == 0 else f"target copied every {view['target_every']}"
    size = "1 transition" if view["batch"] == 1 else f"{view['batch']} transitions"
    return f"{size} per backup, {target}, {start}"


def _facets(
    evidence: Evidence,
    lines: Mapping[str, dict[str, Any]],
    line: Callable[[str, Records], Series],
    views: Sequence[dict[str, Any]],
) -> list[Facet]:
    """Return a view for each setting that has records; `lines` are the options of each line's records."""
    facets = []
    for view in views:
        found = {name: tabular_records(evidence, **view, **options) for name, options in lines.items()}
        if series := [line(name, records) for name, records in found.items() if records]:
            facets.append(Facet(_view_label(view), series))
    return facets


def _solved(name: str, records: Records) -> Series:
    return Series.of_solved(name, *backups_to_solve(records), 1.0, float(records[0]["backups"]))


def _error(name: str, records: Records) -> Series:
    curves = np.array([curve(record, "error") for record in records])
    middle, low, high = curve_bands(curves, generator=named_generator(0, name))
    x = [max(float(moment), 0.7) for moment in moments(records[0]["backups"])]  # a logarithmic axis has no 0
    return Series(name, x, middle.tolist(), low.tolist(), high.tolist())


METHOD_LINES = {method: {"method": method} for method in METHODS}
PLANNED_LINES = {method: {"method": method} for method in COMPARED}
SOLVED_TITLE = "Share of data sets solved (one minus Kaplan-Meier)"


def solved(evidence: Evidence) -> list[AnyChart]:
    """Return the share of data sets solved by number of backups (C1)."""
    facets = _facets(evidence, METHOD_LINES, _solved, all_settings())
    chart = Chart(
        "c1-solved", SOLVED_TITLE, "backups", "solved", facets, log_x=True, y_unit="percent", pictured=(0, 1, 3)
    )
    return [chart]


def planned(evidence: Evidence) -> list[AnyChart]:
    """Return the same for graph values and TER, first where G7 decides."""
    facets = _facets(evidence, PLANNED_LINES, _solved, all_settings())
    decides = [_view_label({"batch": 64, "initial": "zero", "target_every": target}) for target in (100, 0)]
    places = tuple(place for label in decides for place, facet in enumerate(facets) if facet.label == label)
    first = places[0] if places else 0
    shown = places or (0,)
    return [
        Chart(
            "g7-solved",
            SOLVED_TITLE,
            "backups",
            "solved",
            facets,
            log_x=True,
            y_unit="percent",
            first=first,
            pictured=shown,
        )
    ]


def errors(evidence: Evidence) -> list[AnyChart]:
    """Return the value error by number of backups (C2)."""
    facets = _facets(evidence, METHOD_LINES, _error, all_settings())
    title = "Mean |Q - Q*|, interquartile mean over data sets"
    chart = Chart("c2-error", title, "backups", "value error", facets, log_x=True, pictured=(0, 1, 3))
    return [chart]


def diffusions(evidence: Evidence) -> list[AnyChart]:
    """Return the share of data sets that EBU solves with each diffusion factor (C19)."""
    lines = {f"beta {factor:g}": {"method": "ebu", "diffusion": factor} for factor in DIFFUSIONS}
    views = [view for view in all_settings() if view["target_every"] in DIFFUSION_TARGETS]
    facets = _facets(evidence, lines, _solved, views)
    widest = _view_label({"batch": 16, "initial": "zero", "target_every": 0})  # where beta 0 differs most
    first = next((place for place, facet in enumerate(facets) if facet.label == widest), 0)
    title = "EBU: share of data sets solved, by diffusion factor"
    chart = Chart("c19-solved", title, "backups", "solved", facets, log_x=True, y_unit="percent", first=first)
    return [replace(chart, pictured=(0, first) if first else (0,))]


def _category(label: str, name: str, values: list[float], note: str = "") -> DotCategory:
    return DotCategory(label, [Dots(name, values, float(np.median(values)), note=note)])


def speeds(evidence: Evidence) -> list[AnyChart]:
    """Return the time of a batch and of an added step, a dot for each round (C11)."""
    records = reported(evidence, "speed")
    charts: list[AnyChart] = []
    for operation, what in (("sample", "Drawing a batch"), ("add", "Adding a step")):
        categories = []
        for method in in_order(record["method"] for record in records):
            rounds = [r for r in records if r["method"] == method and r["operation"] == operation]
            if rounds:
                worst = float(np.median([r["max"] for r in rounds])) * 1e6
                note = f"slowest {worst:,.0f} µs"
                categories.append(_category(title_of(method), method, [r["mean"] * 1e6 for r in rounds], note))
        if categories:
            title = f"{what}: mean of each round, in microseconds"
            charts.append(DotChart(f"c11-{operation}", title, "µs", categories, bars=True))
    return charts


def collisions(evidence: Evidence) -> list[AnyChart]:
    """Return how many pairs of states share a key at each dimension (C16)."""
    records = reported(evidence, "collisions")
    categories = []
    for dimension in sorted({record["dimension"] for record in records}):
        tasks: dict[str, int] = {}
        for record in (record for record in records if record["dimension"] == dimension):
            tasks[record["task"]] = tasks.get(record["task"], 0) + record["collisions"]
        note = f"{sum(tasks.values())} on {len(tasks)} tasks"
        categories.append(
            _category(
                f"{dimension} numbers" if dimension > 1 else "1 number", "collisions", [sum(tasks.values())], note
            )
        )
    title = "Pairs of states with the same key, by the size of the key"
    return [DotChart("c16-collisions", title, "pairs on all tasks", categories, bars=True, x_shows=(0.0, 5.0))]


def one_sweep(evidence: Evidence) -> list[AnyChart]:
    """Return the share of graphs that one reverse sweep solves, by kind of rewards (C20)."""
    records = reported(evidence, "sweep-order")
    categories = []
    for kind in KINDS:
        same = [record for record in records if record["rewards"] == kind]
        graphs, exact = sum(r["graphs"] for r in same), sum(r["exact"] for r in same)
        if graphs:
            categories.append(
                _category(ORDER_TEXTS[kind], "one sweep", [exact / graphs], f"{exact:,} of {graphs:,} graphs")
            )
    title = "Graphs that one reverse sweep solves exactly"
    return [DotChart("c20-solved", title, "graphs", categories, unit="percent", bars=True, x_shows=(0.0, 1.0))]


def coverage(evidence: Evidence) -> list[AnyChart]:
    """Return the batches until every stored row was drawn, a dot for each seed (C21)."""
    records = reported(evidence, "coverage")
    categories = []
    for eta, mixed in dict.fromkeys((r["eta"], r["mixed_in"]) for r in records):
        same = [r for r in records if (r["eta"], r["mixed_in"]) == (eta, mixed)]
        values = [float(r["batches"]) if not r["never_drawn"] else np.inf for r in same]
        left = max(r["never_drawn"] for r in same)
        note = f"up to {left:,} rows never drawn" if left else "every row drawn"
        label = f"{eta:.0%} from {title_of(mixed)}" if eta else "no mixing"
        categories.append(_category(label, "batches", values, note))
    title = "Batches until every stored row was drawn, a dot for each seed"
    return [DotChart("c21-batches", title, "batches", categories, bars=True, beyond="never")]


def whole_episodes(evidence: Evidence) -> list[AnyChart]:
    """Return the share of stretches of rows that are one episode in reverse (C22)."""
    records = reported(evidence, "no-repeats")
    categories = []
    for sampler in dict.fromkeys(record["sampler"] for record in records):
        same = [record for record in records if record["sampler"] == sampler]
        total, whole = sum(r["stretches"] for r in same), sum(r["whole_episodes"] for r in same)
        line = "ebu" if sampler == "ebu" else "ter"
        categories.append(_category(title_of(sampler), line, [whole / total], f"{whole:,} of {total:,}"))
    title = "Stretches of rows that are one episode, last step first"
    return [DotChart("c22-episodes", title, "stretches", categories, unit="percent", bars=True, x_shows=(0.0, 1.0))]


SPECIAL: dict[str, Callable[[Evidence], list[AnyChart]]] = {
    "C1": solved,
    "C2": errors,
    "C11": speeds,
    "C16": collisions,
    "C17": world_model,
    "C19": diffusions,
    "C20": one_sweep,
    "C21": coverage,
    "C22": whole_episodes,
    "G7": planned,
}


def charts_for(question: Question, evidence: Evidence, slug: str, verdict: Verdict) -> list[AnyChart]:
    """Return the charts of a question that was run; names of charts about training begin with `slug`."""
    if question.id in SPECIAL:
        return [chart for chart in SPECIAL[question.id](evidence) if chart.places]
    return learning(question, evidence, slug, verdict) if question.variants else []
