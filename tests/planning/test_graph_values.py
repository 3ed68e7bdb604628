"""Graph values: the model follows the live rows, and its solution is the plain one's."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backsweep import GraphValues, Quantized, Replay, Topological, Uniform
from small_worlds import ACTIONS, BOUNDS, DISCOUNT, STATES, add, make, streams, values_of
from strategies import examples
from twins.planning import PlainModel, Row, widened


@pytest.mark.kernels
@given(
    streams(),
    st.integers(3, 60),
    st.sampled_from(["network", "never"]),
    st.integers(0, 10_000),
    st.sampled_from([1, 4]),
)
@settings(max_examples=examples(60))
def test_values_targets_and_action_values_are_those_of_the_twin(
    rounds: list[list[tuple[Row, bool]]], capacity: int, untried: str, seed: int, gap: int
) -> None:
    replay = make(capacity, untried=untried, gap=float(gap), floor=2.0)
    random = np.random.default_rng(seed)
    live: list[Row] = []
    for rows in rounds:
        for row, truncated in rows:
            add(replay, row, truncated)
            live = [*live, row][-capacity:]
        network = random.normal(size=(STATES, ACTIONS)) * 4
        asked: list[int] = []

        def q_values(states: Any, network: Any = network, asked: Any = asked) -> Any:
            asked.extend(states.tolist())
            return network[states]

        renewal = replay.renew_values(q_values, bounds=BOUNDS, batch_size=3)
        model = PlainModel(live, ACTIONS)
        values = model.solve(network, BOUNDS, DISCOUNT, untried == "network")
        assert values_of(replay) == pytest.approx(values, abs=1e-6)
        need = [s for s in model.states if len(model.tried(s)) < (ACTIONS if untried == "network" else 1)]
        assert sorted(asked) == sorted(need)
        assert renewal.asked == len(need)
        assert renewal.unsolved == 0
        batch = replay.read(np.arange(replay.stats()["rows_ever_added"] - len(live), replay.stats()["rows_ever_added"]))
        q = [model.q_value(row.state, row.action, values, DISCOUNT) for row in live]
        expected = [widened(q, values[row.state], gap, 2.0) for q, row in zip(q, live, strict=True)]
        assert batch.target == pytest.approx(expected, abs=1e-4)
        planner = replay.machinery.planner
        assert planner is not None
        np.testing.assert_array_equal(planner.targets(batch.row), batch.target)  # two kernels, one result
        by_row = dict(zip([row.state for row in live], planner.tried_values(batch.row), strict=True))
        for state in {row.state for row in live}:
            np.testing.assert_allclose(by_row[state], replay.graph.action_values(replay.graph.vertex(state)), atol=1e-6)
            found = replay.graph.action_values(replay.graph.vertex(state))
            assert np.flatnonzero(~np.isnan(found)).tolist() == model.tried(state)
            for action in model.tried(state):
                assert found[action] == pytest.approx(model.q_value(state, action, values, DISCOUNT), abs=1e-6)


@pytest.mark.kernels
@given(streams(), st.integers(3, 60), st.sampled_from(["network", "never"]), st.integers(0, 10_000))
@settings(max_examples=examples(30))
def test_without_a_future_a_value_is_the_best_mean_reward(
    rounds: list[list[tuple[Row, bool]]], capacity: int, untried: str, seed: int
) -> None:
    replay = make(capacity, untried=untried, discount=0.0, gap=1.0)
    network = np.random.default_rng(seed).normal(size=(STATES, ACTIONS)) * 4
    live: list[Row] = []
    for rows in rounds:
        for row, truncated in rows:
            add(replay, row, truncated)
            live = [*live, row][-capacity:]
        replay.renew_values(lambda states: network[states], bounds=BOUNDS)
        model = PlainModel(live, ACTIONS)
        values = model.solve(network, BOUNDS, 0.0, untried == "network")
        assert values_of(replay) == pytest.approx(values, abs=1e-6)
        q = [model.q_value(row.state, row.action, values, 0.0) for row in live]
        expected = [widened(q, values[row.state], 1.0, math.inf) for q, row in zip(q, live, strict=True)]
        assert replay.read(np.arange(replay.oldest, replay.total)).target == pytest.approx(expected, abs=1e-4)


@given(streams(), st.integers(0, 10_000))
@settings(max_examples=examples(20))
def test_the_order_in_which_rows_came_does_not_matter(rounds: list[list[tuple[Row, bool]]], seed: int) -> None:
    random = np.random.default_rng(seed)
    rows = [row for some in rounds for row, _ in some]
    network = random.normal(size=(STATES, ACTIONS))
    one, other = make(), make()
    for row in rows:
        add(one, row)
    for place in random.permutation(len(rows)):
        add(other, rows[place])
        if random.random() < 0.1:
            other.renew_values(lambda states: 3 * network[states], bounds=BOUNDS)
    for replay in (one, other):
        replay.renew_values(lambda states: network[states], bounds=BOUNDS)
    assert values_of(one) == pytest.approx(values_of(other), abs=1e-6)


@given(streams(), st.integers(0, 10_000))
@settings(max_examples=examples(20))
def test_a_network_that_says_more_never_lowers_a_value_and_changes_shrink_by_the_discount(
    rounds: list[list[tuple[Row, bool]]], seed: int
) -> None:
    network = np.random.default_rng(seed).normal(size=(STATES, ACTIONS))
    low, high = make(), make()
    for replay, q_values in ((low, network), (high, network + 0.5)):
        for some in rounds:
            for row, _ in some:
                add(replay, row)
        replay.renew_values(lambda states, q_values=q_values: q_values[states], bounds=(-100.0, 100.0))
    before, after = values_of(low), values_of(high)
    for state, value in before.items():
        assert value - 1e-6 <= after[state] <= value + 0.5 + 1e-6


def test_rows_newer_than_the_renewal_have_the_value_of_their_own_outcome() -> None:
    replay = make(gap=1.0, floor=10.0)
    add(replay, Row(0, 0, 1.0, 1, True))
    add(replay, Row(2, 0, -1.0, 0, False))
    assert np.isnan(replay.read([0, 1]).target).all()
    replay.renew_values(lambda states: np.zeros((len(states), ACTIONS)), bounds=BOUNDS)
    add(replay, Row(3, 1, -1.0, 0, False))  # leads to a state whose value is known
    add(replay, Row(3, 2, -1.0, 4, False))  # leads to a new one
    add(replay, Row(0, 1, -2.0, 5, True))  # ends
    target = replay.read([0, 1, 2, 3, 4]).target
    assert target[[0, 1, 2, 4]] == pytest.approx([1.0, -1.0 + DISCOUNT, -1.0 + DISCOUNT, -2.0])
    assert np.isnan(target[3])
    assert np.isnan(replay.graph.action_values(replay.graph.vertex(3))).all()
    assert np.isnan(values_of(replay)[3])


def test_only_termination_ends() -> None:
    replay = make(gap=1.0)
    replay.add(0, 0, 0.0, 1, False, True)
    replay.add(2, 0, 0.0, 3, True, False)
    replay.renew_values(lambda states: np.full((len(states), ACTIONS), 2.0), bounds=BOUNDS)
    assert replay.read([0, 1]).target == pytest.approx([2.0 * DISCOUNT, 0.0])
    assert values_of(replay)[3] == 0.0


def test_states_that_share_a_vertex_are_asked_about_by_an_observation_that_is_still_there() -> None:
    space = gym.spaces.Box(0, 10, (1,), np.float32)
    replay = Replay(space, gym.spaces.Discrete(2), 2, encoder=Quantized(1.0), values=GraphValues(), gamma=0.5)
    asked: list[float] = []

    def q_values(observations: Any) -> Any:
        asked.extend(observations[:, 0].tolist())
        return np.zeros((len(observations), 2))

    def add_step(start: float, end: float) -> None:
        replay.add(np.array([start], np.float32), 0, 0.0, np.array([end], np.float32), False, True)

    for start, end in [(2.25, 5.0), (2.5, 6.0), (7.0, 2.75)]:  # the row that arrives at 2.75 keeps the vertex of 2.25
        add_step(start, end)
    replay.renew_values(q_values)
    assert sorted(asked) in ([2.5, 6.0, 7.0], [2.75, 6.0, 7.0])
    add_step(8.0, 9.0)
    asked.clear()
    replay.renew_values(q_values)
    assert sorted(asked) == [2.75, 7.0, 8.0, 9.0]


@pytest.mark.parametrize("sampler", [Uniform(), Topological()])
def test_a_loaded_replay_goes_on_exactly(tmp_path: Path, sampler: Any) -> None:
    random = np.random.default_rng(3)
    replay = make(40, sampler, gap=5.0)

    def play_on(replay: Replay, random: np.random.Generator) -> list[Any]:
        seen = []
        for _ in range(4):
            for _ in range(15):
                state, successor = random.integers(STATES, size=2).tolist()
                row = Row(
                    state, int(random.integers(ACTIONS)), float(random.normal()), successor, random.random() < 0.1
                )
                add(replay, row, bool(random.random() < 0.2))
            network = random.normal(size=(STATES, ACTIONS))
            seen.append(replay.renew_values(lambda states, network=network: network[states]))
            batch = replay.sample(16)
            seen += [batch.row.tolist(), batch.target.tolist(), replay.graph.values().tolist()]
        return seen

    play_on(replay, random)
    replay.save(tmp_path / "save")
    loaded = Replay.load(tmp_path / "save")
    state = random.bit_generator.state
    expected = play_on(replay, random)
    random.bit_generator.state = state
    assert play_on(loaded, random) == expected


def test_learned_bounds_are_the_best_and_worst_stretch_of_an_episode() -> None:
    replay = make()
    for state, reward, ends in [(0, -1.0, False), (1, 2.0, False), (2, 3.0, True), (0, -4.0, False), (1, 1.0, True)]:
        replay.add(state, 0, reward, state + 1, ends, False)
    replay.renew_values(lambda states: np.zeros((len(states), ACTIONS)))
    stats = replay.stats()
    assert (stats["lowest_value"], stats["highest_value"]) == (-4.0, 5.0)


def network_that_says(value: Any) -> Any:
    return lambda states: np.full((len(states), ACTIONS), value)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda r: r.renew_values(np.zeros((1, 3))), TypeError, "q_values must be a function"),
        (lambda r: r.renew_values(lambda s: np.zeros((len(s), 2))), ValueError, r"q_values must return shape \(1, 3\)"),
        (lambda r: r.renew_values(network_that_says(np.nan)), ValueError, "q_values must return finite values"),
        (lambda r: r.renew_values(network_that_says("x")), TypeError, "q_values must return numbers"),
        (lambda r: r.renew_values(network_that_says(0), bounds=(1, -1)), ValueError, "bounds must be finite"),
        (lambda r: r.renew_values(network_that_says(0), bounds=(np.nan, 1)), ValueError, "bounds must be finite"),
        (lambda r: r.renew_values(network_that_says(0), bounds=3), TypeError, "bounds must be two numbers"),
        (lambda r: r.renew_values(network_that_says(0), batch_size=0), ValueError, "batch_size must be 1 or more"),
    ],
)
def test_bad_calls_are_refused_and_change_nothing(call: Any, error: type[Exception], words: str) -> None:
    replay = make()
    add(replay, Row(0, 0, 1.0, 1, True))
    replay.renew_values(network_that_says(0.5), bounds=BOUNDS)
    add(replay, Row(0, 1, 5.0, 1, True))
    before = replay.read([0]).target, values_of(replay)
    with pytest.raises(error, match=words):
        call(replay)
    assert replay.read([0]).target == before[0]
    assert values_of(replay) == before[1]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"gap": 0.5}, "gap must be 1 or more"),
        ({"gap": float("nan")}, "gap must be"),
        ({"floor": -1.0}, "floor must be 0 or more"),
        ({"untried": "best"}, "untried must be one of"),
        ({"discount": 1.0}, "discount must be in"),
        ({"tolerance": 0.0}, "tolerance must be above 0"),
        ({"most_backups": 0}, "most_backups must be 1 or more"),
    ],
)
def test_bad_settings_are_refused(options: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        GraphValues(**options)


def test_what_cannot_be_planned_is_refused() -> None:
    discrete, box = gym.spaces.Discrete(3), gym.spaces.Box(0, 1, (2,))
    with pytest.raises(TypeError, match="needs a Discrete action space"):
        Replay(discrete, box, 10, values=GraphValues())
    with pytest.raises(ValueError, match="needs n_step=1, got 3"):
        Replay(discrete, discrete, 10, values=GraphValues(), n_step=3)
    with pytest.raises(ValueError, match="discount below 1"):
        Replay(discrete, discrete, 10, values=GraphValues(), gamma=1.0)
    with pytest.raises(TypeError, match="values must be a GraphValues"):
        Replay(discrete, discrete, 10, values=Uniform())  # type: ignore[arg-type]
    plain = Replay(discrete, discrete, 10)
    with pytest.raises(ValueError, match="make it with values=GraphValues"):
        plain.renew_values(lambda states: states)
    with pytest.raises(ValueError, match="make it with values=GraphValues"):
        plain.graph.values()
