"""What the questions about graph values have in common: methods with our settings, and sizes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from backsweep.agent.settings import settings_fields
from backsweep.lab.claims.evidence import ADDED_LATER
from backsweep.lab.claims.question import Grid, Scale, Variant
from backsweep.lab.claims.questions.shared import SMOKE
from backsweep.lab.seeds import reporting, tuning

BUDGET = 1_000_000
SEEDS = 10

# The paper's constants of each method, explicit because other questions vary them.
_CONSTANTS: Mapping[str, Any] = {
    **{name: value for name, value in ADDED_LATER.items() if name not in ("encoder", "cell")},
    "diffusion": 0.5,
    "mix_with": "per",
    "per_alpha": 0.6,
    "predecessors": 3,
}
# Constants that differ between families of tasks.
_ON_THE_GRID: Mapping[str, Any] = {
    "eta": 0.5,
    "learning_rate": 3e-4,
    "ratio": 0.25,
    "target_interval": 1_000,
    "task_options": {},
}


def ours(method: str, label: str | None = None, **options: Any) -> Variant:
    """Return a line of a chart: a method with our settings' constants, except the given options."""
    given = settings_fields("ours", None, method, BUDGET)
    constants = {**_CONSTANTS, **{name: value for name, value in given.items() if name in {*_CONSTANTS, "eta"}}}
    return Variant(method if label is None else label, method, {**constants, **options})


def on_the_grid(method: str, label: str | None = None, **options: Any) -> Variant:
    """Return a line for MiniGrid tasks with their usual options, ratio and learning rate, except the given options."""
    given = settings_fields("ours", "minigrid", method, BUDGET)
    usual = {name: given.get(name, value) for name, value in _ON_THE_GRID.items()}
    return ours(method, label, **{**usual, **options})


def sizes(
    tasks: tuple[str, ...],
    variants: tuple[Variant, ...],
    *,
    laptop_tasks: tuple[str, ...] | None = None,
    lengths: Mapping[str, int] | None = None,
    seeds: tuple[int, ...] | None = None,
) -> dict[Scale, Grid | None]:
    """Return the three scales of a question; `lengths` are the steps of tasks with another budget than most."""
    full: dict[str, Any] = {"settings": "ours", "steps": BUDGET}
    short: dict[str, Any] = {"settings": "ours", "steps": BUDGET // 5, "capacity": BUDGET // 5}
    some = tasks if laptop_tasks is None else laptop_tasks
    seeds = reporting(SEEDS) if seeds is None else seeds
    other = {} if lengths is None else dict(lengths)
    fifths = {task: {"steps": steps // 5, "capacity": steps // 5} for task, steps in other.items()}
    return {
        "smoke": Grid(tasks[:1], variants, tuning(2), {**SMOKE, "settings": "ours"}),
        "laptop": Grid(some, variants, seeds[:3], short, fifths),
        "paper": Grid(tasks, variants, seeds, full, {task: {"steps": steps} for task, steps in other.items()}),
    }
