"""What several questions have in common: tasks, lines of a chart, and sizes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from backsweep.lab.claims.question import Grid, Scale, Study, Variant
from backsweep.lab.seeds import reporting, tuning

MINIGRID = (
    "minigrid/doorkey",
    "minigrid/unlock",
    "minigrid/redbluedoors",
    "minigrid/simplecrossing-easy",
    "minigrid/simplecrossing-hard",
    "minigrid/lavacrossing-easy",
    "minigrid/lavacrossing-hard",
)
SOKOBAN = (
    "sokoban/5x5-1",
    "sokoban/5x5-2",
    "sokoban/6x6-1",
    "sokoban/6x6-2",
    "sokoban/6x6-3",
    "sokoban/7x7-1",
    "sokoban/7x7-2",
)
SOKOBAN_ETA = 0.2
"""The share of prioritized rows on Sokoban, TER's by the main text. Explicit because C4 has a line without sweeps."""
LAVA_HARD, SIMPLE_HARD = "minigrid/lavacrossing-hard", "minigrid/simplecrossing-hard"

# Explicit because other questions vary these options.
USUAL: Mapping[str, Any] = {"ratio": 0.25, "diffusion": 0.5, "task_options": {}}
SLIPPERY: dict[str, Any] = {"task_options": {"random_action_chance": 0.1}}
ENDLESS: dict[str, Any] = {"task_options": {"goals_terminate": False}, "exact": False}
ENDLESS_TASKS = (SIMPLE_HARD, LAVA_HARD)


def variant(method: str, label: str | None = None, **options: Any) -> Variant:
    """Return a line of a chart: a method with the usual options, except those given."""
    usual = frozenset(USUAL) - set(options)
    return Variant(method if label is None else label, method, {**USUAL, **options}, usual=usual)


UER, PER, EBU, DISCOR = variant("uer"), variant("per"), variant("ebu"), variant("discor")
TER, SHUFFLED = variant("ter"), variant("ter-shuffled")
BASELINES = (UER, PER, EBU, DISCOR)
ALL = (*BASELINES, TER)
WITH_SHUFFLED = (*ALL, SHUFFLED)
NAMES = tuple(variant.label for variant in BASELINES)

SCORES = (
    "Normalised return (exact where the task's states can be listed) at the end and as area under the curve; "
    "interquartile mean over tasks and paired seeds, stratified bootstrap."
)
"""What most questions measure, in words."""

# Just enough to see that everything runs; tuning seeds, so nothing is reported.
SMOKE: Mapping[str, Any] = {
    "steps": 400,
    "warmup_steps": 100,
    "epsilon_steps": 300,
    "evaluation_interval": 200,
    "evaluation_episodes": 2,
    "record_interval": 100,
    "target_interval": 50,
    "capacity": 400,
    "probe_size": 16,
    "batch_size": 16,
    "convolutions": ((8, 8, 4), (8, 3, 2)),
    "linear": (32,),
    "exact": False,
}
# An evening on a laptop: a shortened budget, with exploration and warm-up shortened alike.
LAPTOP: Mapping[str, Any] = {
    "steps": 200_000,
    "warmup_steps": 5_000,
    "epsilon_steps": 60_000,
    "evaluation_interval": 10_000,
    "capacity": 200_000,
}


def study_scales(name: str, seeds: int, small: Mapping[str, Any]) -> dict[Scale, Study]:
    """Return the three scales of a study: a tuning seed with `small` arguments, and `seeds` reporting seeds."""
    full = Study(name, reporting(seeds))
    return {"smoke": Study(name, tuning(1), small), "laptop": full, "paper": full}


def grids(
    tasks: tuple[str, ...],
    variants: tuple[Variant, ...],
    *,
    laptop_tasks: tuple[str, ...] | None = None,
    smoke_options: Mapping[str, Any] | None = None,
    paper_options: Mapping[str, Any] | None = None,
    paper_tasks: Mapping[str, Mapping[str, Any]] | None = None,
) -> dict[Scale, Grid]:
    """Return the three scales of a question: one task and two seeds, a laptop's evening, and the paper's.

    `paper_tasks` are options that single tasks have at the paper's scale.
    """
    return {
        "smoke": Grid(tasks[:1], variants, tuning(2), {**SMOKE, **(smoke_options or {})}),
        "laptop": Grid(tasks if laptop_tasks is None else laptop_tasks, variants, reporting(5), LAPTOP),
        "paper": Grid(tasks, variants, reporting(5), paper_options or {}, paper_tasks or {}),
    }
