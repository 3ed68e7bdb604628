"""Charts of the questions about the chain: C1, C2 and C19."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from backsweep.jit.random_streams import named_generator
from backsweep.lab.claims.chain_rules import all_settings, backups_to_solve, curve, tabular_records
from backsweep.lab.claims.evidence import Evidence, Records
from backsweep.lab.report.chart import AnyChart, Chart, Facet, Series
from backsweep.lab.stats.intervals import curve_bands
from backsweep.lab.studies.tabular.setting import METHODS
from backsweep.lab.studies.tabular.study import DIFFUSION_TARGETS, DIFFUSIONS, moments


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


def solved(evidence: Evidence) -> list[AnyChart]:
    """Return the share of data sets solved by number of backups (C1)."""
    facets = _facets(evidence, METHOD_LINES, _solved, all_settings())
    title = "Share of data sets solved (one minus Kaplan-Meier)"
    chart = Chart("c1-solved", title, "backups", "solved", facets, log_x=True, y_unit="percent", pictured=(0, 1, 3))
    return [chart] if facets else []


def errors(evidence: Evidence) -> list[AnyChart]:
    """Return the value error by number of backups (C2)."""
    facets = _facets(evidence, METHOD_LINES, _error, all_settings())
    title = "Mean |Q - Q*|, interquartile mean over data sets"
    chart = Chart("c2-error", title, "backups", "value error", facets, log_x=True, pictured=(0, 1, 3))
    return [chart] if facets else []


def diffusions(evidence: Evidence) -> list[AnyChart]:
    """Return the share of data sets that EBU solves with each diffusion factor (C19)."""
    lines = {f"beta {factor:g}": {"method": "ebu", "diffusion": factor} for factor in DIFFUSIONS}
    views = [view for view in all_settings() if view["target_every"] in DIFFUSION_TARGETS]
    facets = _facets(evidence, lines, _solved, views)
    widest = _view_label({"batch": 16, "initial": "zero", "target_every": 0})  # where beta 0 differs most
    first = next((place for place, facet in enumerate(facets) if facet.label == widest), 0)
    title = "EBU: share of data sets solved, by diffusion factor"
    chart = Chart("c19-solved", title, "backups", "solved", facets, log_x=True, y_unit="percent", first=first)
    return [replace(chart, pictured=(0, first) if first else (0,))] if facets else []
