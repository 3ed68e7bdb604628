"""Noise of stored outcomes: as the twin measures it, and no targets where there is too much."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backsweep import GraphValues, Mixture, Prioritized, Replay, Uniform
from backsweep.planning import noise_kernels
from backsweep.samplers import Sampler
from strategies import examples
from twins import planning as twin
from twins.planning import Row

STATES, ACTIONS = 6, 2


def make(limit: float | None, capacity: int = 20_000, states: int = STATES, sampler: Sampler | None = None) -> Replay:
    return Replay(
        gym.spaces.Discrete(states),
        gym.spaces.Discrete(ACTIONS),
        capacity,
        sampler,
        gamma=0.9,
        seed=7,
        values=GraphValues(noise_limit=limit),
    )


def zeros(states: Any) -> Any:
    return np.zeros((len(states), ACTIONS))


def add_all(replay: Replay, rows: list[Row]) -> None:
    for row in rows:
        replay.add(row.state, row.action, row.reward, row.successor, row.terminated, not row.terminated)


ROWS = st.builds(
    Row, st.integers(0, 5), st.integers(0, 1), st.sampled_from([0.0, 1.0]), st.integers(0, 5), st.booleans()
)


@pytest.mark.kernels
@given(st.lists(ROWS, min_size=1, max_size=60), st.integers(5, 70))
@settings(max_examples=examples(100))
def test_noise_is_that_of_the_twin(rows: list[Row], capacity: int) -> None:
    replay = make(None, capacity)
    add_all(replay, rows)
    replay.renew_values(zeros)
    planner = replay.machinery.planner
    assert planner is not None
    expected = twin.noise(rows[-capacity:], noise_kernels.ENOUGH_REPEATED)
    assert noise_kernels.measure_noise(planner.model, 1, 100) == pytest.approx(expected)
    assert replay.stats()["noise"] == 0.0  # so few rows say nothing


def tosses(count: int, rng: np.random.Generator, tries: int = 1) -> list[Row]:
    """Return rows from many states, each tried some times, that lead to one of two others by chance."""
    states = np.repeat(np.arange(2, 2 + count), tries)
    return [Row(int(state), 0, 0.0, int(rng.integers(2)), False) for state in rng.permutation(states)]


def test_where_outcomes_are_chance_and_seldom_repeat_there_are_no_targets() -> None:
    rng = np.random.default_rng(0)
    replay = make(0.22, states=1_002)
    add_all(replay, tosses(1_000, rng, tries=2))
    renewal = replay.renew_values(zeros)
    assert renewal.asked == renewal.updates == 0
    assert replay.stats()["too_noisy"] == 1
    assert np.isnan(replay.sample(32).target).all()
    assert np.isnan(replay.graph.values()).all()
    vertex = replay.graph.vertex(2)
    assert vertex is not None
    assert np.isnan(replay.graph.action_values(vertex)).all()
    assert {replay.explore(2, unit) for unit in (0.0, 0.49, 0.51, 0.99)} == {0, 1}
    assert [replay.explore(2, unit) for unit in (0.49, 0.51)] == [0, 1]  # both alike, though one was never tried


def test_with_more_tries_chance_averages_out_and_planning_begins() -> None:
    rng = np.random.default_rng(0)
    replay = make(0.22, states=1_002)
    add_all(replay, tosses(1_000, rng, tries=2))
    replay.renew_values(zeros)
    assert np.isnan(replay.sample(8).target).all()
    add_all(replay, tosses(1_000, rng, tries=8))
    renewal = replay.renew_values(zeros)
    assert renewal.asked > 0
    assert replay.stats()["too_noisy"] == 0
    assert np.isfinite(replay.sample(32).target).all()


def test_a_renewal_whose_network_fails_leaves_no_values() -> None:
    rng = np.random.default_rng(0)
    replay = make(0.22, states=1_002)
    add_all(replay, tosses(1_000, rng, tries=2))
    replay.renew_values(zeros)
    add_all(replay, tosses(1_000, rng, tries=8))
    with pytest.raises(ValueError, match="finite"):
        replay.renew_values(lambda states: np.full((len(states), ACTIONS), np.nan))
    assert replay.stats()["too_noisy"] == 1
    assert np.isnan(replay.sample(32).target).all()


def test_the_plan_after_noise_is_that_of_a_replay_that_always_planned() -> None:
    def both() -> tuple[Replay, Replay]:
        return make(0.22, 20_000, 1_002), make(None, 20_000, 1_002)

    gated, always = both()
    rng = np.random.default_rng(3)
    for tries in (2, 10):
        rows = [row._replace(reward=float(row.successor)) for row in tosses(1_000, rng, tries)]
        for replay in (gated, always):
            add_all(replay, rows)
            replay.renew_values(zeros, bounds=(0.0, 10.0))
    np.testing.assert_allclose(gated.graph.values(), always.graph.values(), atol=1e-3)


def test_states_that_never_repeat_are_not_called_noisy() -> None:
    replay = make(0.0, states=1_002)
    add_all(replay, [Row(state, 0, 1.0, state + 1, False) for state in range(1_001)])
    add_all(replay, [Row(0, 0, 1.0, 50, False), Row(0, 0, 1.0, 60, False)])  # 3 of 1,003 rows repeat a pair
    replay.renew_values(zeros)
    assert replay.stats()["noise"] == 0.0
    assert np.isfinite(replay.sample(32).target).all()


def test_a_loaded_replay_knows_that_it_was_too_noisy(tmp_path: Path) -> None:
    replay = make(0.22, states=1_002)
    add_all(replay, tosses(1_000, np.random.default_rng(0), tries=2))
    replay.renew_values(zeros)
    replay.save(tmp_path / "save")
    loaded = Replay.load(tmp_path / "save")
    assert loaded.stats()["too_noisy"] == 1
    assert np.isnan(loaded.sample(8).target).all()


def test_while_it_is_noisy_priorities_do_not_count() -> None:
    rng = np.random.default_rng(0)
    replay, uniform = (make(0.22, states=1_002, sampler=sampler) for sampler in (Prioritized(), Uniform()))
    rows = tosses(1_000, rng, tries=2)
    for each in (replay, uniform):
        add_all(each, rows)
        each.renew_values(zeros)
    for _ in range(3):
        batch = replay.sample(64)
        replay.update_priorities(batch.row, np.linspace(0.0, 100.0, 64))
        assert np.isnan(batch.target).all()
        assert (batch.weight == 1).all()
        np.testing.assert_array_equal(batch.row, uniform.sample(64).row)
    mixed = make(0.22, states=1_002, sampler=Mixture([(0.5, Prioritized()), (0.5, Uniform())]))
    add_all(mixed, rows)
    mixed.update_priorities(np.arange(2_000), np.where(np.arange(2_000) == 5, 1e6, 0.0))
    assert (mixed.sample(64).row == 5).sum() > 20
    mixed.renew_values(zeros)
    assert (mixed.sample(64).row == 5).sum() < 5


def test_priorities_are_kept_for_when_it_is_less_noisy() -> None:
    rng = np.random.default_rng(0)
    replay = make(0.22, states=1_002, sampler=Prioritized())
    add_all(replay, tosses(1_000, rng, tries=2))
    replay.renew_values(zeros)
    replay.update_priorities(np.arange(2_000), np.zeros(2_000))
    add_all(replay, tosses(1_000, rng, tries=8))
    replay.update_priorities(np.arange(2_000, 10_000), np.where(np.arange(8_000) == 0, 1e6, 0.0))
    assert (replay.sample(64).row == 2_000).sum() < 5
    replay.renew_values(zeros)
    assert (replay.sample(64).row == 2_000).sum() > 40


@pytest.mark.parametrize("limit", [-0.1, float("nan"), "much"])
def test_a_limit_that_is_no_number_is_refused(limit: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="noise_limit"):
        GraphValues(noise_limit=limit)
