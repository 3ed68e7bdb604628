"""Which seeds are for trying things out, and which for reporting; they share none.

A number may be chosen (a learning rate, a budget, a rule's threshold) by looking at the seeds for tuning. Whatever the
report shows comes from the seeds for reporting. A seed gives every method the same stream of levels, or the same data
set, so runs with the same seed are pairs.
"""

from __future__ import annotations

TUNING = range(0, 50)
REPORTING = range(100, 1_000)


def purpose_of(seed: int) -> str:
    """Return what a seed is for: "tuning", "reporting" or "other"."""
    if seed in TUNING:
        return "tuning"
    return "reporting" if seed in REPORTING else "other"


def reporting(count: int) -> tuple[int, ...]:
    """Return the first `count` seeds for reporting."""
    return tuple(REPORTING[:count])


def tuning(count: int) -> tuple[int, ...]:
    """Return the first `count` seeds for tuning."""
    return tuple(TUNING[:count])
