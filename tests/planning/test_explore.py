"""Random actions by the graph: weights as the twin's, errors that name the argument, nothing else changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backsweep import GraphValues, Replay, Uniform
from backsweep.planning import exploration_kernels
from backsweep.planning.model_kernels import CERTAIN, DIFFERING
from strategies import examples
from twins.planning import PlainModel, Row, exploration_weights, explored_action

STATES, ACTIONS = 6, 4


def make(capacity: int = 1_000) -> Replay:
    return Replay(
        gym.spaces.Discrete(STATES), gym.spaces.Discrete(ACTIONS), capacity, Uniform(), gamma=0.9, values=GraphValues()
    )


def add(replay: Replay, row: Row, truncated: bool = False) -> None:
    replay.add(row.state, row.action, row.reward, row.successor, row.terminated, truncated and not row.terminated)


def zeros(states: Any) -> Any:
    return np.zeros((len(states), ACTIONS))


@st.composite
def walks(draw: Any) -> list[tuple[Row, bool]]:
    """Return the rows of some episodes, each row beginning where the last one ended, with their truncations."""
    rows, state = [], 0
    for _ in range(draw(st.integers(1, 60))):
        successor = draw(st.integers(0, STATES - 1))
        end = draw(st.sampled_from(["", "", "", "terminated", "truncated"]))
        rows.append((Row(state, draw(st.integers(0, ACTIONS - 1)), -1.0, successor, end == "terminated"), end != ""))
        state = draw(st.integers(0, STATES - 1)) if end else successor
    return rows


@pytest.mark.kernels
@given(
    walks(), st.integers(2, 70), st.integers(0, 20), st.floats(0, 1, exclude_max=True), st.sampled_from([0.0, 0.1, 1.0])
)
@settings(max_examples=examples(80))
def test_weights_and_actions_are_those_of_the_twin(
    rows: list[tuple[Row, bool]], capacity: int, renewed_at: int, unit: float, differing: float
) -> None:
    replay = make(capacity)
    live: list[Row] = []
    for place, (row, ended) in enumerate(rows):
        add(replay, row, ended)
        live = [*live, row][-capacity:]
        if place == renewed_at:
            replay.renew_values(zeros, bounds=(-10.0, 0.0))
        planner = replay.machinery.planner
        assert planner is not None
        planner.model.counters[DIFFERING] = round(differing * CERTAIN)  # so few rows say nothing
        asked = replay.explore(row.successor, unit)  # every row counts at once
        model = PlainModel(live, ACTIONS)
        for state in range(STATES):
            vertex = replay.graph.vertex(state)
            if vertex is None:
                assert replay.explore(state, unit) == int(unit * ACTIONS)
                continue
            visits = {other: _visits(replay, other) for other in range(STATES)}
            expected = exploration_weights(model, state, visits, differing)
            found = np.empty(ACTIONS)
            exploration_kernels.weigh_actions(vertex, planner.experience, planner.model, found)
            assert found == pytest.approx(expected)
            if min(abs(unit * sum(expected) - edge) for edge in np.cumsum(expected)) > 1e-9:
                assert replay.explore(state, unit) == explored_action(unit, expected)
        assert 0 <= asked < ACTIONS


def _visits(replay: Replay, state: int) -> int:
    vertex = replay.graph.vertex(state)
    return 0 if vertex is None else replay.graph.visits(vertex)


def test_exploring_leaves_values_and_targets_as_they_are() -> None:
    """What a renewal computes does not depend on whether the graph was asked for actions in between."""
    quiet, asked = make(40), make(40)
    random = np.random.default_rng(0)
    state = 0
    for step in range(200):
        action, successor, ends = int(random.integers(ACTIONS)), int(random.integers(STATES)), random.random() < 0.1
        row = Row(state, action, float(random.normal()), successor, bool(ends))
        for replay in (quiet, asked):
            add(replay, row)
        asked.explore(successor, float(random.random()))
        state = successor if not ends else 0
        if step % 20 == 19:
            for replay in (quiet, asked):
                replay.renew_values(zeros)
            np.testing.assert_allclose(asked.graph.values(), quiet.graph.values(), atol=1e-4)
            rows = np.arange(replay.oldest, replay.total)
            np.testing.assert_allclose(asked.read(rows).target, quiet.read(rows).target, atol=1e-3)


@pytest.mark.parametrize("renewed", [False, True])
def test_a_save_between_exploring_and_a_renewal_changes_nothing(tmp_path: Any, renewed: bool) -> None:
    replay, random = make(40), np.random.default_rng(1)

    def steps(*replays: Replay) -> list[int]:
        found = []
        for _ in range(60):
            state, action, successor = (int(random.integers(most)) for most in (STATES, ACTIONS, STATES))
            ends, unit = bool(random.random() < 0.1), float(random.random())
            for each in replays:
                add(each, Row(state, action, -1.0, successor, ends), truncated=True)
                found.append(each.explore(successor, unit))
        return found

    steps(replay)
    if renewed:
        replay.renew_values(zeros)
        steps(replay)
    replay.save(tmp_path / "saved")
    again = Replay.load(tmp_path / "saved")
    found = steps(replay, again)
    assert found[::2] == found[1::2]
    for each in (replay, again):
        each.renew_values(zeros)
    assert np.array_equal(replay.graph.values(), again.graph.values())


def test_known_ends_and_standing_still_are_not_explored_again() -> None:
    replay = make()
    add(replay, Row(0, 0, 0.0, 0, False))  # changes nothing
    add(replay, Row(0, 1, -1.0, 5, True))  # ends the episode
    add(replay, Row(0, 2, 0.0, 3, False), truncated=True)  # leads to a state that has one visit
    actions = [replay.explore(0, unit) for unit in np.linspace(0, 1, 1_000, endpoint=False)]
    assert sorted(set(actions)) == [2, 3]
    assert actions.count(3) / actions.count(2) == pytest.approx(2.0, rel=0.02)


def slippery(limit: float | None) -> Replay:
    """Return a replay of 1,200 steps that lead anywhere, and state 0, where both tries changed nothing or ended."""
    replay = Replay(
        gym.spaces.Discrete(STATES), gym.spaces.Discrete(2), 2_000, gamma=0.9, values=GraphValues(noise_limit=limit)
    )
    random = np.random.default_rng(0)
    for _ in range(1_200):
        state, action, successor = (int(random.integers(*most)) for most in ((1, STATES), (0, 2), (1, STATES)))
        replay.add(state, action, 0.0, successor, terminated=False, truncated=True)
    for _ in range(100):
        replay.add(0, 0, 0.0, 3, terminated=False, truncated=True)
    replay.add(0, 1, 0.0, 0, terminated=False, truncated=True)
    replay.renew_values(lambda states: np.zeros((len(states), 2)))
    return replay


@pytest.mark.parametrize(("limit", "again"), [(0.22, True), (None, False)])
def test_where_outcomes_differ_what_changed_nothing_once_is_tried_again(limit: float | None, again: bool) -> None:
    """One unlucky try says little there; an action that was tried a hundred times is known."""
    replay = slippery(limit)
    tried = [replay.explore(0, unit) for unit in np.linspace(0, 1, 1_000, endpoint=False)]
    assert (tried.count(1) > 900) is again
    assert again or tried.count(1) == 0


def test_a_save_keeps_how_often_outcomes_differ(tmp_path: Path) -> None:
    replay = slippery(0.22)
    replay.save(tmp_path / "saved")
    loaded, units = Replay.load(tmp_path / "saved"), np.linspace(0, 1, 200, endpoint=False)
    for state in range(STATES):
        assert [loaded.explore(state, unit) for unit in units] == [replay.explore(state, unit) for unit in units]


def test_a_time_limit_is_not_an_end() -> None:
    replay = make()
    for action in range(ACTIONS - 1):
        add(replay, Row(0, action, 0.0, 0, False))
    add(replay, Row(0, ACTIONS - 1, 0.0, 1, False), truncated=True)
    assert replay.explore(0, 0.0) == replay.explore(0, 0.99) == ACTIONS - 1


def test_where_nothing_is_left_all_actions_are_alike() -> None:
    replay = make()
    for action in range(ACTIONS):
        add(replay, Row(0, action, 0.0, 0, False))
    units = (np.arange(ACTIONS) + 0.5) / ACTIONS
    assert [replay.explore(0, unit) for unit in units] == list(range(ACTIONS))


def test_actions_are_counted_from_the_start_of_their_space() -> None:
    replay = Replay(
        gym.spaces.Discrete(2), gym.spaces.Discrete(2, start=5), 10, Uniform(), gamma=0.9, values=GraphValues()
    )
    replay.add(0, 5, 0.0, 0, terminated=False, truncated=False)
    assert replay.explore(0, 0.0) == 6
    assert replay.explore(1, 0.0) == 5


def test_several_environments_at_once_are_as_one_by_one() -> None:
    replay = make()
    for action in range(ACTIONS - 1):
        add(replay, Row(0, action, 0.0, action % 2, False))
    states, units = np.arange(4) % 2, np.linspace(0, 1, 4, endpoint=False)
    actions = replay.explore(states, units)
    assert actions.dtype == np.int64
    assert list(actions) == [replay.explore(state, unit) for state, unit in zip(states, units, strict=True)]


def test_several_dict_observations_at_once() -> None:
    space = gym.spaces.Dict({"place": gym.spaces.Discrete(3), "seen": gym.spaces.Box(0, 1, (2,), np.float32)})
    replay = Replay(space, gym.spaces.Discrete(2), 10, values=GraphValues())
    here = {"place": 1, "seen": np.ones(2, np.float32)}
    replay.add(here, 0, 0.0, here, terminated=False, truncated=False)
    both = {"place": np.array([1, 1]), "seen": np.ones((2, 2), np.float32)}
    assert list(replay.explore(both, np.array([0.0, 0.9]))) == [1, 1]
    with pytest.raises(ValueError, match=r"observation must have a leading axis of 3, as unit has, got shape \(2,\)"):
        replay.explore(both, np.zeros(3))


@pytest.mark.parametrize("unit", [1.0, -0.1, float("nan"), "0.5", True, None, np.array(0.5), np.array([0.2, 1.0])])
def test_a_wrong_unit_is_refused(unit: Any) -> None:
    replay = make()
    with pytest.raises(ValueError, match=r"unit must be a number in \[0, 1\), or an array of them with one axis, got"):
        replay.explore(np.zeros(2, np.int64), unit)


def test_a_replay_without_graph_values_is_refused() -> None:
    replay = Replay(gym.spaces.Discrete(2), gym.spaces.Discrete(2), 10, Uniform())
    with pytest.raises(ValueError, match="values=GraphValues"):
        replay.explore(0, 0.5)


def test_a_wrong_observation_is_refused() -> None:
    with pytest.raises(ValueError, match="observation"):
        make().explore(STATES, 0.5)
