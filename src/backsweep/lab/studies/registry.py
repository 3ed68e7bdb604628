"""The studies that are not training, by name: each turns a seed into records, and says how much work that is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from backsweep.lab.seeds import FIRST_REPORTED, TUNING
from backsweep.lab.studies import collisions, coverage, graphs, repeats, speed
from backsweep.lab.studies.tabular.setting import METHODS, Setting
from backsweep.lab.studies.tabular.study import BATCHES, TARGETS, carry_out, settings_for, trace

Records = Iterator[dict[str, Any]]


@dataclass(frozen=True)
class StudyKind:
    """How a study is carried out for one seed, and how its work is counted for estimates of time."""

    records: Callable[..., Records]
    """From a seed and arguments to records."""
    work: Callable[..., float]
    """From arguments to a number of units, in proportion to the time they take."""
    unit: str
    sample: Mapping[str, Any]
    """Arguments of a small piece of the same work, from which the time per unit is taken."""


def tabular(
    seed: int, *, length: int = 20, batches: Sequence[int] = BATCHES, targets: Sequence[int] = TARGETS
) -> Records:
    """C1, C2, C19; for the first seed also every single backup of a few runs, which the report's NChain page plays."""
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


def timed(seed: int, *, rows: int = 1_000_000, repeats: int = 2_000) -> Records:
    """C11."""
    for name in speed.SAMPLERS:
        yield from speed.measure(name, rows, repeats, seed)


def collided(
    seed: int, *, tasks: Sequence[str] = collisions.TASKS, dimensions: Sequence[int] = collisions.DIMENSIONS
) -> Records:
    """C16."""
    for task in tasks:
        yield from collisions.count_collisions(task, tuple(dimensions), (seed,))


def ordered(seed: int, *, graphs: int = 400) -> Records:
    """C20."""
    yield from _orders((seed,), graphs)


def covered(seed: int, *, steps: int = 5_000) -> Records:
    """C21."""
    yield from coverage.all_coverage((seed,), steps)


def unrepeated(seed: int, *, lander_steps: int = 50_000) -> Records:
    """C22."""
    yield from repeats.compare_orders(seed)
    yield repeats.revisits(seed, lander_steps)


_orders = graphs.all_orders

STUDIES: dict[str, StudyKind] = {
    "tabular": StudyKind(tabular, _tabular_work, "backups", {"length": 6, "batches": (16,), "targets": (0,)}),
    "speed": StudyKind(
        timed, lambda rows=1_000_000, repeats=2_000: rows + 40.0 * repeats, "rows", {"rows": 5_000, "repeats": 50}
    ),
    "collisions": StudyKind(
        collided,
        lambda tasks=collisions.TASKS, dimensions=collisions.DIMENSIONS: float(len(tasks) * sum(dimensions)),
        "projections",
        {"tasks": ("minigrid/redbluedoors",), "dimensions": (1, 3)},
    ),
    "sweep-order": StudyKind(ordered, lambda graphs=400: float(graphs), "graphs", {"graphs": 5}),
    "coverage": StudyKind(covered, lambda steps=5_000: float(steps), "rows", {"steps": 500}),
    "no-repeats": StudyKind(
        unrepeated, lambda lander_steps=50_000: lander_steps + 1_000.0, "steps", {"lander_steps": 200}
    ),
}
