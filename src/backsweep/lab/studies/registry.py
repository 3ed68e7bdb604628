"""The studies that are not training, by name: each makes records from a seed and counts its work."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from backsweep.lab.seeds import FIRST_REPORTED, TUNING
from backsweep.lab.studies import collisions, coverage, graphs, repeats, speed
from backsweep.lab.studies.tabular.learner import METHODS, Setting
from backsweep.lab.studies.tabular.study import BATCHES, TARGETS, carry_out, settings_for, trace

Records = Iterator[dict[str, Any]]


@dataclass(frozen=True)
class StudyKind:
    """A study: how its records are made, and how its work is counted for estimates of time."""

    records: Callable[..., Records]
    """From a seed and arguments to records."""
    work: Callable[..., float]
    """From arguments to an amount of work, proportional to the time it takes."""
    unit: str
    sample: Mapping[str, Any]
    """Arguments of a small study that is timed for estimates."""


def tabular(
    seed: int, *, length: int = 20, batches: Sequence[int] = BATCHES, targets: Sequence[int] = TARGETS
) -> Records:
    """C1, C2, C19; for the first seed also every backup of a few runs, for the report's animation of the chain."""
    for setting in settings_for(seed, length=length, batches=batches, targets=targets):
        yield carry_out(setting)
    if seed in (FIRST_REPORTED, TUNING[0]):
        for target_every, backups in ((0, 240), (20, 800)):
            for method in METHODS:
                setting = Setting(
                    method=method, data_seed=seed, target_every=target_every, length=length, backups=backups
                )
                yield {"kind": "trace", **setting.to_json(), "steps": trace(setting)}


def _tabular_work(*, length: int = 20, batches: Sequence[int] = BATCHES, targets: Sequence[int] = TARGETS) -> float:
    return float(sum(setting.backups for setting in settings_for(0, length=length, batches=batches, targets=targets)))


STUDIES: dict[str, StudyKind] = {
    "tabular": StudyKind(tabular, _tabular_work, "backups", {"length": 6, "batches": (16,), "targets": (0,)}),
    "speed": StudyKind(
        speed.measure_all,
        lambda rows=1_000_000, repeats=2_000: rows + 40.0 * repeats,
        "rows",
        {"rows": 5_000, "repeats": 50},
    ),
    "collisions": StudyKind(
        collisions.count_collisions,
        lambda tasks=collisions.MINIGRID, dimensions=collisions.DIMENSIONS: float(len(tasks) * sum(dimensions)),
        "projections",
        {"tasks": ("minigrid/redbluedoors",), "dimensions": (1, 3)},
    ),
    "sweep-order": StudyKind(graphs.all_orders, lambda graphs=400: float(graphs), "graphs", {"graphs": 5}),
    "coverage": StudyKind(coverage.all_coverage, lambda steps=5_000: float(steps), "rows", {"steps": 500}),
    "no-repeats": StudyKind(
        repeats.no_repeats, lambda lander_steps=50_000: lander_steps + 1_000.0, "steps", {"lander_steps": 200}
    ),
}
