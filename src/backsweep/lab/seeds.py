"""Which seeds are for trying things out, and which for reporting; they share none.

A number may be chosen (a learning rate, a budget, a rule's threshold) by looking at seeds for tuning. Whatever the
report shows comes from other seeds. A seed gives every method the same stream of levels, or the same data set, so runs
with the same seed are pairs.
"""

from __future__ import annotations

TUNING = range(10_000, 10_100)
FIRST_REPORTED = 100  # those below were looked at while the code was written


def purpose_of(seed: int) -> str:
    """Return what a seed is for: "tuning" or "reporting"."""
    return "tuning" if seed in TUNING else "reporting"


def reporting(count: int) -> tuple[int, ...]:
    """Return `count` seeds for reporting."""
    return tuple(range(FIRST_REPORTED, FIRST_REPORTED + count))


def tuning(count: int) -> tuple[int, ...]:
    """Return `count` seeds for tuning."""
    return tuple(TUNING[:count])
