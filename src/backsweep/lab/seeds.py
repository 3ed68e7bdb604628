"""Which seeds are for tuning and which for reporting; the two are disjoint.

Constants (a learning rate, a budget, a rule's threshold) may be chosen on tuning seeds. The report uses only other
seeds. A seed gives every method the same stream of levels, or the same data set, so runs with the same seed are paired.
"""

from __future__ import annotations

TUNING = range(10_000, 10_100)
FIRST_REPORTED = 100  # lower seeds were used while the code was written


def purpose_of(seed: int) -> str:
    """Return the purpose of a seed: "tuning" or "reporting"."""
    return "tuning" if seed in TUNING else "reporting"


def reporting(count: int) -> tuple[int, ...]:
    """Return `count` seeds for reporting."""
    return tuple(range(FIRST_REPORTED, FIRST_REPORTED + count))


def tuning(count: int) -> tuple[int, ...]:
    """Return `count` seeds for tuning."""
    return tuple(TUNING[:count])
