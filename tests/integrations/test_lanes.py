"""Lanes for trajectories that run at the same time."""

from __future__ import annotations

import warnings

import pytest

from backsweep.integrations import LanePool


def test_a_trajectory_that_loses_its_lane_and_goes_on_causes_one_warning() -> None:
    pool = LanePool(2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [pool.take(name, ends=False) for name in "aba"] == [0, 1, 0]
        assert pool.take("c", ends=False) == 1  # b may have been given up
    with pytest.warns(UserWarning, match="lanes must be at least the number of episodes .* more than 2"):
        pool.take("b", ends=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pool.take("a", ends=False)


def test_trajectories_that_were_given_up_cause_no_warning() -> None:
    pool = LanePool(2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for number in range(20):
            for _ in range(3):
                pool.take(number, ends=False)
