"""How much of what the model says is chance."""

# mypy: disable-error-code="no-any-return,arg-type,assignment,return-value"
from __future__ import annotations

from backsweep.jit.compilation import kernel
from backsweep.planning.model_kernels import COUNT, FIRST_ARC, NEXT_OF_PAIR, PAIRS_HIGH, ROWS, Model

ENOUGH_REPEATED = 0.05
"""With a smaller share of rows whose state and action were stored before, nothing is known about noise."""
ENOUGH_ROWS = 1_000
"""Nor with fewer rows in all."""
MOST_PAIRS = 50_000
"""At most about this many pairs are looked at, evenly spaced: renewals of large graphs take no longer for it."""


@kernel
def measure_noise(model: Model, enough_rows: int, most_pairs: int) -> tuple[float, float]:
    """Return the chance that two rows of the same state and action differ in where they led, and the noise.

    Noise is the share of an average pair's outcome that is chance: that chance divided by the mean number of rows of a
    pair, because with more rows chance averages out. Both are 0 if there are too few rows, or too few that repeat a
    pair.
    """
    pairs, arcs, high = model.pairs, model.arcs, model.counters[PAIRS_HIGH]
    found, rows, repeated, agreeing = 0, 0, 0, 0.0
    for pair in range(0, high, 1 + high // most_pairs):
        count = pairs[pair, COUNT]
        if count == 0:
            continue
        found += 1
        rows += count
        if count == 1:
            continue
        repeated += count
        same, ended = 0.0, count  # rows without an arc are those that terminated
        link = pairs[pair, FIRST_ARC]
        while link:
            led = arcs[link - 1, ROWS]
            same += led * (led - 1.0)
            ended -= led
            link = arcs[link - 1, NEXT_OF_PAIR]
        agreeing += (same + ended * (ended - 1.0)) / (count - 1.0)
    if rows < enough_rows or repeated == 0 or repeated < ENOUGH_REPEATED * rows:
        return 0.0, 0.0
    differing = 1.0 - agreeing / repeated
    return differing, differing * found / rows
