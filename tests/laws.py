"""Chi-square against an exact law. Seeds are fixed, so a test that passes goes on passing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping

from scipy import stats

ALPHA = 1e-4


def assert_law(drawn: Iterable[Hashable], law: Mapping[Hashable, float]) -> None:
    """Demand that the draws could come from `law`, which gives each outcome its probability."""
    counts = Counter(drawn)
    total = sum(counts.values())
    assert abs(sum(law.values()) - 1) < 1e-9
    possible = {outcome for outcome, chance in law.items() if chance > 0}
    assert set(counts) <= possible, set(counts) - possible
    outcomes = sorted(possible, key=repr)
    expected = [law[outcome] * total for outcome in outcomes]
    assert min(expected) >= 5, "too few draws for the test"
    if len(outcomes) > 1:
        result = stats.chisquare([counts[outcome] for outcome in outcomes], expected)
        assert result.pvalue > ALPHA, (result, counts)
