"""Statistics against scipy, against plain loops, and against answers worked out by hand."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import mannwhitneyu, trim_mean

from backsweep.lab.stats import (
    aggregates,
    area_under,
    bootstrap,
    curve_bands,
    holm,
    interquartile_mean,
    kaplan_meier,
    median_interval,
    paired_difference,
    performance_profile,
    plain,
    probability_of_improvement,
    quantile,
    restricted_mean,
    steps_to,
)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_interquartile_mean_is_scipys_trimmed_mean() -> None:
    for size in (1, 2, 3, 4, 5, 7, 8, 35):
        values = rng(size).normal(size=(6, size))
        assert np.allclose(interquartile_mean(values), trim_mean(values, 0.25, axis=1))


def test_aggregates_are_those_of_a_plain_stratified_bootstrap() -> None:
    scores = {"a": rng(1).normal(0.6, 0.1, (10, 7)), "b": rng(2).normal(0.4, 0.2, (10, 7))}
    ours = aggregates(scores)
    measures: dict[str, Callable[[NDArray[np.float64]], float]] = {
        "iqm": lambda values: trim_mean(values, 0.25, axis=None),
        "median": lambda values: np.median(values.mean(axis=0)),
        "mean": lambda values: np.mean(values),
    }
    generator = rng(9)
    for name, values in scores.items():
        drawn = [
            np.column_stack([generator.choice(task, len(task)) for task in values.T])  # runs within each task
            for _ in range(2_000)
        ]
        for measure, of in measures.items():
            found = ours[name][measure]
            low, high = np.percentile([of(entry) for entry in drawn], [2.5, 97.5])
            assert found.estimate == pytest.approx(of(values))
            assert found.low == pytest.approx(low, abs=0.01)
            assert found.high == pytest.approx(high, abs=0.01)
    alone = bootstrap(scores["a"], generator=rng())
    assert alone.estimate == pytest.approx(ours["a"]["iqm"].estimate)
    assert alone.low == pytest.approx(ours["a"]["iqm"].low, abs=0.01)


def test_runs_are_resampled_within_their_task() -> None:
    """Tasks that differ much more than their runs do not widen an interval."""
    scores = np.arange(5.0) * 10 + rng(3).normal(0, 0.1, (8, 5))
    mean = aggregates({"a": scores})["a"]["mean"]
    assert mean.high - mean.low < 0.1


def test_probability_of_improvement_is_the_mann_whitney_statistic() -> None:
    first, second = rng(3).integers(0, 5, (8, 4)).astype(float), rng(4).integers(0, 5, (6, 4)).astype(float)
    ours = probability_of_improvement(first, second, generator=rng())
    wins = [mannwhitneyu(first[:, task], second[:, task]).statistic / (8 * 6) for task in range(4)]
    assert ours.estimate == pytest.approx(np.mean(wins))
    assert ours.low < ours.estimate < ours.high
    sure = probability_of_improvement(first + 10, second, generator=rng())
    assert (sure.estimate, sure.low, sure.high) == (1.0, 1.0, 1.0)


def test_performance_profiles_count_runs_above_each_threshold() -> None:
    scores, thresholds = np.array([[0.1, 0.9], [0.5, 0.9]]), np.array([0.0, 0.3, 0.6, 1.0])
    share, low, high = performance_profile(scores, thresholds, generator=rng())
    assert share.tolist() == [1.0, 0.75, 0.5, 0.0]
    assert (low <= share).all()
    assert (share <= high).all()


def test_paired_differences_find_a_shift_and_no_shift() -> None:
    base = rng(5).normal(size=(20, 3))
    interval, p_value = paired_difference(base + 0.2, base, generator=rng())
    assert interval.estimate == pytest.approx(0.2)
    assert interval.low == pytest.approx(0.2)
    assert p_value < 0.01
    _, same = paired_difference(base, base, generator=rng())
    assert same == 1.0


def test_intervals_cover_the_truth_about_as_often_as_they_say() -> None:
    covered = 0
    for trial in range(200):
        generator = rng(1000 + trial)
        interval = bootstrap(generator.normal(0.5, 0.2, (20, 3)), generator=generator)
        covered += interval.low <= 0.5 <= interval.high
    assert covered >= 0.88 * 200


def test_holm_by_hand() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([]) == []
    assert holm([0.9, 0.8]) == [1.0, 1.0]


def test_kaplan_meier_by_hand() -> None:
    # At 1 one of four is done, at 2 one drops out, at 3 one of the two left is done, at 4 the last drops out.
    moments, waiting = kaplan_meier([1, 2, 3, 4], [True, False, True, False])
    assert moments.tolist() == [1.0, 3.0]
    assert waiting.tolist() == pytest.approx([0.75, 0.375])
    assert quantile([1, 2, 3, 4], [True, False, True, False]) == 3.0
    assert quantile([1, 2, 3, 4], [True, False, False, False]) == math.inf
    assert restricted_mean([1, 2, 3, 4], [True] * 4, 10.0) == 2.5
    assert restricted_mean([10, 10], [False, False], 10.0) == 10.0


def test_median_interval_is_infinite_where_half_never_get_there() -> None:
    times, happened = [5.0] * 5 + [100.0] * 5, [True] * 5 + [False] * 5
    found = median_interval(times, happened, generator=rng())
    assert found.estimate == 5.0
    assert found.low == 5.0
    assert found.high == math.inf


def test_curves() -> None:
    assert area_under([0, 10, 20], [0.0, 1.0, 1.0]) == pytest.approx(0.75)
    assert area_under([5], [0.4]) == 0.4
    assert steps_to([10, 20, 30], [0.1, 0.6, 0.9], 0.5) == (20.0, True)
    assert steps_to([10, 20, 30], [0.1, 0.2, 0.3], 0.5) == (30.0, False)
    middle, low, high = curve_bands(np.tile([1.0, 2.0], (5, 1)), generator=rng())
    assert middle.tolist() == low.tolist() == high.tolist() == [1.0, 2.0]


def test_numbers_as_text() -> None:
    assert [plain(value) for value in (math.inf, 35.0, 1234.5, 0.12345, -2.0)] == [
        "never",
        "35",
        "1,234",
        "0.123",
        "-2",
    ]
