"""Comparisons on single tasks, which are shown with a verdict and decide nothing.

With few seeds a bootstrap's p-values are too small: an exact sign test of five pairs cannot go below 0.06. So every
entry also says on how many seeds the winner is ahead.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from backsweep.jit.random_streams import named_generator
from backsweep.lab.claims.groups import Groups, Measure, scores
from backsweep.lab.claims.verdict import Table
from backsweep.lab.stats.intervals import holm, paired_difference

TITLE = "Task by task"


def by_task(groups: Groups, winner: str, others: Sequence[str], name: str, measure: Measure, seed: int) -> Table:
    """Return the winner's lead over each of the others on each task, corrected for all of these comparisons."""
    entries: Table = []
    p_values = []
    for task, group in sorted(groups.items()):
        for other in others:
            values = scores({task: group}, (winner, other), measure)
            if not values:
                continue
            ours, theirs = values[winner], values[other]
            generator = named_generator(seed, "task by task", name, task, other)
            difference, p_value = paired_difference(ours, theirs, generator=generator)
            ahead = int(np.count_nonzero(ours > theirs))
            p_values.append(p_value)
            entries.append(
                {
                    "measure": name,
                    "task": task,
                    "against": other,
                    "difference": difference,
                    "p (Holm)": p_value,
                    "seeds ahead": f"{ahead} of {len(ours)}",
                }
            )
    return [{**entry, "p (Holm)": corrected} for entry, corrected in zip(entries, holm(p_values), strict=True)]
