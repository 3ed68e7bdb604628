"""The studies that are not training, by name: each makes records from a seed and counts its work."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from backsweep.lab.seeds import FIRST_REPORTED, TUNING
from backsweep.lab.studies import collisions, coverage, graphs, repeats, speed
from backsweep.lab.studies.tabular.learner import METHODS, PLANNED, Setting
from backsweep.lab.studies.tabular.study import BATCHES, COMPARED, TARGETS, carry_out, settings_for, trace

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


def tabular(seed: int, **size: Any) -> Records:
    """C1, C2 and C19: the paper's methods on the chain."""
    yield from _on_the_chain(seed, METHODS, METHODS, **size)


def planned(seed: int, **size: Any) -> Records:
    """G7: graph values on the chain, and TER."""
    yield from _on_the_chain(seed, COMPARED, tuple(PLANNED), **size)


def _on_the_chain(
    seed: int, methods: Sequence[str], traced: Sequence[str], *, length: int = 20, **size: Sequence[int]
) -> Records:
    """Yield all runs of some methods; for the first seed also every backup of a few, for the report's animation."""
    for setting in settings_for(seed, methods, length=length, **size):
        yield carry_out(setting)
    if seed in (FIRST_REPORTED, TUNING[0]):
        for target_every, backups in ((0, 240), (20, 800)):
            for method in traced:
                setting = Setting(
                    method=method, data_seed=seed, target_every=target_every, length=length, backups=backups
                )
                yield {"kind": "trace", **setting.to_json(), "steps": trace(setting)}


def _backups(
    methods: Sequence[str], *, length: int = 20, batches: Sequence[int] = BATCHES, targets: Sequence[int] = TARGETS
) -> float:
    settings = settings_for(0, methods, length=length, batches=batches, targets=targets)
    return float(sum(setting.backups for setting in settings))


# A run ends once it has converged, so only a chain of the full length and a target table give the usual mean.
_SMALL_CHAIN = {"batches": (16,), "targets": (20,)}


STUDIES: dict[str, StudyKind] = {
    "tabular": StudyKind(tabular, partial(_backups, METHODS), "backups", _SMALL_CHAIN),
    "tabular-graph": StudyKind(planned, partial(_backups, COMPARED), "backups", _SMALL_CHAIN),
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
