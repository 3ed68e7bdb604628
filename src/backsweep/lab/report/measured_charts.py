"""Charts of what is measured or checked directly: C11, C16, C20, C21 and C22. One dot per measurement."""

from __future__ import annotations

import numpy as np

from backsweep.agent.palette import in_order, title_of
from backsweep.lab.claims.evidence import Evidence
from backsweep.lab.claims.measured_rules import ORDER_TEXTS, reported
from backsweep.lab.report.chart import AnyChart, DotCategory, DotChart, Dots
from backsweep.lab.studies.graphs import KINDS


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
    if not categories:
        return []
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
    if not categories:
        return []
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
    if not categories:
        return []
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
    if not categories:
        return []
    title = "Stretches of rows that are one episode, last step first"
    return [DotChart("c22-episodes", title, "stretches", categories, unit="percent", bars=True, x_shows=(0.0, 1.0))]
