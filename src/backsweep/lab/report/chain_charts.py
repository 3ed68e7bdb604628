"""Charts of the questions about the chain: C1, C2 and C19."""

from __future__ import annotations

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
    rows = "1 transition" if view["batch"] == 1 else f"{view['batch']} transitions"
    return f"{rows} per backup, {target}, {start}"


def _solved_share(records: Records, name: str) -> Series:
    return Series.of_solved(name, *backups_to_solve(records), 1.0, float(records[0]["backups"]))


def solved(evidence: Evidence) -> list[AnyChart]:
    """Return the share of data sets solved by number of backups (C1)."""
    facets = []
    for view in all_settings():
        found = {method: tabular_records(evidence, method=method, **view) for method in METHODS}
        series = [_solved_share(records, method) for method, records in found.items() if records]
        if series:
            facets.append(Facet(_view_label(view), series))
    if not facets:
        return []
    title = "Share of data sets solved (one minus Kaplan-Meier)"
    return [Chart("c1-solved", title, "backups", "solved", facets, log_x=True, y_unit="percent", pictured=(0, 1, 3))]


def errors(evidence: Evidence) -> list[AnyChart]:
    """Return the value error by number of backups (C2)."""
    facets = []
    for view in all_settings():
        series = []
        for method in METHODS:
            records = tabular_records(evidence, method=method, **view)
            if not records:
                continue
            at = moments(records[0]["backups"])
            curves = np.array([curve(record, "error") for record in records])
            middle, low, high = curve_bands(curves, generator=named_generator(0, method))
            x = [max(float(moment), 0.7) for moment in at]  # a logarithmic axis has no 0
            series.append(Series(method, x, middle.tolist(), low.tolist(), high.tolist()))
        if series:
            facets.append(Facet(_view_label(view), series))
    if not facets:
        return []
    title = "Mean |Q - Q*|, interquartile mean over data sets"
    return [Chart("c2-error", title, "backups", "value error", facets, log_x=True, pictured=(0, 1, 3))]


def diffusions(evidence: Evidence) -> list[AnyChart]:
    """Return the share of data sets that EBU solves with each diffusion factor (C19)."""
    facets: list[Facet] = []
    first = 0
    for view in all_settings():
        if view["target_every"] not in DIFFUSION_TARGETS:
            continue
        found = {d: tabular_records(evidence, **view, method="ebu", diffusion=d) for d in DIFFUSIONS}
        series = [_solved_share(records, f"beta {d:g}") for d, records in found.items() if records]
        if series:
            if view == {"batch": 16, "initial": "zero", "target_every": 0}:
                first = len(facets)  # where beta 0 differs most
            facets.append(Facet(_view_label(view), series))
    if not facets:
        return []
    title = "EBU: share of data sets solved, by diffusion factor"
    pictured = (0, first) if first else (0,)
    return [
        Chart(
            "c19-solved",
            title,
            "backups",
            "solved",
            facets,
            log_x=True,
            y_unit="percent",
            pictured=pictured,
            first=first,
        )
    ]
