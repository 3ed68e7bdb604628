"""All tabular runs on one data set, and their records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from backsweep.lab.studies.tabular.dataset import chain_data
from backsweep.lab.studies.tabular.learner import METHODS, PLANNED, Setting, TableLearner, backups_for

INITIALS = ("zero", "uniform")
TARGETS = (0, 20, 100, 250)
BATCHES = (1, 16, 64)
DIFFUSIONS = (0.0, 0.25, 0.5, 0.75, 1.0)
DIFFUSION_TARGETS = (0, 20)
CONVERGED = 1e-6  # rewards and discounts are 32-bit numbers, so errors get no smaller


COMPARED = (*PLANNED, "ter")
"""The methods of G7: graph values, and TER."""


def settings_for(
    data_seed: int,
    methods: Sequence[str] = METHODS,
    *,
    length: int = 20,
    batches: Sequence[int] = BATCHES,
    targets: Sequence[int] = TARGETS,
) -> Iterator[Setting]:
    """Yield every run of some methods on one data set; with EBU also its other diffusion factors (C19)."""
    for batch in batches:
        for initial in INITIALS:
            for target in targets:
                shared: dict[str, Any] = {
                    "data_seed": data_seed,
                    "initial": initial,
                    "target_every": target,
                    "batch": batch,
                    "length": length,
                    "backups": backups_for(target),
                }
                for method in methods:
                    yield Setting(method=method, **shared)
                if "ebu" in methods and target in DIFFUSION_TARGETS:
                    for diffusion in DIFFUSIONS:
                        if diffusion != 0.5:  # EBU's default, covered above
                            yield Setting(method="ebu", diffusion=diffusion, **shared)


@lru_cache
def moments(backups: int) -> tuple[int, ...]:
    """Return the backups after which a run is measured: densely up to 100, then logarithmically."""
    late = np.geomspace(100, max(backups, 101), 16).astype(int)
    chosen = {*range(0, 20, 2), *range(20, 101, 5), *late.tolist()}
    return tuple(sorted(moment for moment in chosen if moment <= backups))


def carry_out(setting: Setting) -> dict[str, Any]:
    """Return the record of one run; its curves end once they have converged."""
    learner = TableLearner(setting, chain_data(setting.data_seed, setting.length, setting.episodes))
    looked_at = frozenset(moments(setting.backups))
    error, right = [], []
    solved_at, lost = None, 0
    while True:
        if learner.backups in looked_at:
            error.append(float(f"{learner.value_error:.4g}"))
            ahead = learner.values[:-1, 0] > learner.values[:-1, 1]
            right.append(float(f"{ahead.mean():.3g}"))
            if learner.value_error < CONVERGED:
                break
        if learner.backups == setting.backups:
            break
        learner.back_up()
        solved = learner.solved
        if solved_at is None:
            solved_at = learner.backups if solved else None
        elif not solved:
            lost += 1
    return {
        "kind": "tabular",
        **setting.to_json(),
        "solved_at": solved_at,
        "lost": lost,
        "solved": learner.solved,
        "error": error,
        "right": right,
    }


def trace(setting: Setting) -> list[list[float]]:
    """Return every backup of a run with batches of one: state, action and the new value."""
    learner = TableLearner(setting, chain_data(setting.data_seed, setting.length, setting.episodes))
    steps = []
    for _ in range(setting.backups):
        batch = learner.back_up()
        state, action = int(batch.observation[0]), int(batch.action[0])
        steps.append([state, action, round(float(learner.values[state, action]), 4)])
    return steps
