"""The schedule and the random actions."""

from __future__ import annotations

import numpy as np
import pytest

from backsweep.agent.learner.exploration import EpsilonSchedule, Explorer


def test_the_papers_schedule() -> None:
    epsilon = EpsilonSchedule()
    assert epsilon(0) == 1.0
    assert epsilon(49_999) == 1.0
    assert epsilon(50_000) == pytest.approx(1 - 0.99 * 0.05)
    assert epsilon(500_000) == pytest.approx(0.505)
    assert epsilon(1_000_000) == 0.01
    assert epsilon(5_000_000) == 0.01


def test_without_a_random_warm_up_the_line_begins_at_once() -> None:
    epsilon = EpsilonSchedule(steps=100, random_steps=0, end=0.0)
    assert [epsilon(step) for step in (0, 25, 50, 100)] == [1.0, 0.75, 0.5, 0.0]


def test_the_line_may_begin_later_than_the_run() -> None:
    epsilon = EpsilonSchedule(steps=100, random_steps=10, end=0.0)
    assert [epsilon(step, begins=40) for step in (5, 40, 65, 90, 140, 200)] == [1.0, 1.0, 0.75, 0.5, 0.0, 0.0]


def test_the_stream_depends_on_the_steps_alone() -> None:
    always, never = Explorer(3, 2), Explorer(3, 2)
    for _ in range(5):
        assert always.draw(1.0)[0].all()
        assert not never.draw(0.0)[0].any()
    assert np.array_equal(always.draw(0.5)[1], never.draw(0.5)[1])


def test_random_actions_cover_all_evenly() -> None:
    explorer = Explorer(0, 1000)
    counts = np.bincount((np.concatenate([explorer.draw(1.0)[1] for _ in range(30)]) * 3).astype(int), minlength=3)
    assert counts.sum() == 30_000
    assert (abs(counts - 10_000) < 400).all()
