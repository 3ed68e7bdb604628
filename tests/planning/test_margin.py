"""The margin: no value lies further beyond the bounds than it allows, whatever the stored loops pay."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backsweep import GraphValues, Replay
from small_worlds import ACTIONS, DISCOUNT, STATES, add, make, streams, values_of
from strategies import examples
from twins.planning import PlainModel, Row

bounds = st.sampled_from([(-0.1, 0.1), (-1.0, 0.5), (0.0, 2.0), (-4.0, 4.0), (0.0, 0.0)])


@pytest.mark.kernels
@given(streams(), st.integers(3, 60), st.sampled_from([None, 0.0, 0.5, 1.0]), st.integers(0, 10_000), st.data())
@settings(max_examples=examples(60))
def test_values_are_clipped_as_in_the_twin_while_bounds_come_and_go(
    rounds: list[list[tuple[Row, bool]]], capacity: int, margin: float | None, seed: int, data: st.DataObject
) -> None:
    replay, random = make(capacity, margin=margin, cautious=False), np.random.default_rng(seed)
    live: list[Row] = []
    for rows in [*rounds, [], []]:
        for row, truncated in rows:
            add(replay, row, truncated)
            live = [*live, row][-capacity:]
        network, given = random.normal(size=(STATES, ACTIONS)) * 4, data.draw(bounds)
        replay.renew_values(lambda states, network=network: network[states], bounds=given)
        expected = PlainModel(live, ACTIONS).solve(network, given, DISCOUNT, margin=margin)
        assert values_of(replay) == pytest.approx(expected, abs=1e-6)


def a_loop_that_pays(**options: Any) -> Replay:
    """Return a replay in which state 0 leads to state 1, and state 1 to itself with a reward of 1."""
    values = GraphValues(gap=1.0, **options)
    replay = Replay(gym.spaces.Discrete(3), gym.spaces.Discrete(1), 10, gamma=0.9, values=values)
    replay.add(0, 0, 0.0, 1, False, False)
    replay.add(1, 0, 1.0, 1, False, True)
    return replay


def renew(replay: Replay, bounds: tuple[float, float] | None = None) -> list[float]:
    """Return the values of a replay after a renewal in which the network says 0."""
    replay.renew_values(lambda states: np.zeros((len(states), 1)), bounds=bounds)
    return replay.graph.values().tolist()


@pytest.mark.parametrize(("margin", "worth"), [(None, 10.0), (1.0, 2.0), (0.5, 1.5), (0.0, 1.0)])
def test_a_loop_is_worth_its_reward_forever_or_the_upper_limit(margin: float | None, worth: float) -> None:
    replay = a_loop_that_pays(margin=margin)
    assert renew(replay) == pytest.approx([0.9 * worth, worth])
    assert replay.read(np.arange(2)).target == pytest.approx([0.9 * worth, 1.0 + 0.9 * worth])


def test_values_follow_bounds_that_change() -> None:
    replay = a_loop_that_pays()
    for high, worth in ((1.0, 2.0), (2.0, 4.0), (0.5, 1.0), (50.0, 10.0), (1.0, 2.0)):
        assert renew(replay, (0.0, high)) == pytest.approx([0.9 * worth, worth])


def test_the_worst_loop_costs_at_most_the_lower_limit() -> None:
    replay = Replay(gym.spaces.Discrete(3), gym.spaces.Discrete(1), 10, gamma=0.9, values=GraphValues(gap=1.0))
    replay.add(1, 0, -1.0, 1, False, True)
    assert renew(replay) == pytest.approx([-2.0])


def test_nothing_is_clipped_along_an_episode() -> None:
    """Its rows pay at most the upper bound, and so does the network where it ends."""
    replay = Replay(gym.spaces.Discrete(9), gym.spaces.Discrete(1), 10, gamma=0.99, values=GraphValues(gap=1.0))
    for state in range(8):
        replay.add(state, 0, 1.0, state + 1, False, state == 7)
    replay.renew_values(lambda states: np.full((len(states), 1), 99.0))
    expected = [sum(0.99**step for step in range(8 - state)) + 0.99 ** (8 - state) * 8.0 for state in range(9)]
    assert replay.graph.values() == pytest.approx(expected)
    assert expected[0] > 8.0  # above the upper bound, below its limit


def test_a_saved_replay_keeps_its_limits(tmp_path: Path) -> None:
    replay = a_loop_that_pays()
    renew(replay)
    replay.save(tmp_path / "saved")
    other = Replay.load(tmp_path / "saved")
    for both in (replay, other):
        both.add(0, 0, 3.0, 1, False, True)  # the bounds widen
    assert renew(other) == renew(replay)
    assert replay.graph.values() == pytest.approx([6.0, 6.0])


@pytest.mark.parametrize("margin", [-0.1, np.nan, "1"])
def test_a_margin_that_is_no_share_is_refused(margin: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="margin must be 0 or more, or None"):
        GraphValues(margin=margin)
