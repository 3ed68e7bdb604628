"""Backups of a limited depth, and asking the network about some states at a time."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backsweep import GraphValues, Replay
from strategies import examples
from twins.planning import PlainModel, Row

STATES, ACTIONS, DISCOUNT = 7, 3, 0.9
BOUNDS = (-3.0, 3.0)

rows_of_experience = st.lists(
    st.builds(
        Row,
        st.integers(0, STATES - 1),
        st.integers(0, ACTIONS - 1),
        st.sampled_from([-1.0, 0.0, 2.0]),
        st.integers(0, STATES - 1),
        st.sampled_from([False, False, True]),
    ),
    min_size=1,
    max_size=40,
)


def filled(rows: list[Row], **options: Any) -> Replay:
    space, actions = gym.spaces.Discrete(STATES), gym.spaces.Discrete(ACTIONS)
    values = GraphValues(gap=1.0, cautious=False, tolerance=1e-9, **options)
    replay = Replay(space, actions, 100, gamma=DISCOUNT, values=values)
    for row in rows:
        replay.add(row.state, row.action, row.reward, row.successor, row.terminated, not row.terminated)
    return replay


def looked_ahead(model: PlainModel, network: Any, depth: int) -> list[dict[int, float]]:
    """Return the values after 0, 1, ... `depth` backups from the network's own."""
    clipped = np.clip(network, *BOUNDS)
    found = [{state: float(clipped[state].max()) for state in model.states}]
    for _ in range(depth):
        values: dict[int, float] = {}
        for state in model.states:
            tried = model.tried(state)
            best = [model.q_value(state, action, found[-1], DISCOUNT) for action in tried]
            best += [float(clipped[state, action]) for action in range(ACTIONS) if action not in tried]
            values[state] = max(best)
        found.append(values)
    return found


@pytest.mark.kernels
@given(rows_of_experience, st.integers(1, 4), st.integers(0, 1_000))
@settings(max_examples=examples(40))
def test_a_limited_depth_is_so_many_backups_from_the_network(rows: list[Row], depth: int, seed: int) -> None:
    network = np.random.default_rng(seed).normal(size=(STATES, ACTIONS)) * 3
    replay = filled(rows, depth=depth)
    replay.renew_values(lambda states: network[states], bounds=BOUNDS)
    model = PlainModel(rows, ACTIONS)
    values = looked_ahead(model, network, depth)
    expected = [model.q_value(row.state, row.action, values[depth - 1], DISCOUNT) for row in rows]
    assert replay.read(np.arange(len(rows))).target == pytest.approx(expected, abs=1e-5)


@given(rows_of_experience, st.integers(0, 1_000))
@settings(max_examples=examples(30))
def test_states_are_asked_about_in_turn_and_new_ones_at_once(rows: list[Row], seed: int) -> None:
    random = np.random.default_rng(seed)
    replay = filled(rows, refresh=0.25)
    model = PlainModel(rows, ACTIONS)
    need = sorted(state for state in model.states if len(model.tried(state)) < ACTIONS)
    networks = [random.normal(size=(STATES, ACTIONS)) for _ in range(2)]
    asked: list[list[int]] = []

    def renew(network: Any) -> None:
        asked.append([])
        replay.renew_values(lambda states: (asked[-1].extend(states.tolist()), network[states])[1], bounds=BOUNDS)

    renew(networks[0])
    assert sorted(asked[0]) == need
    for _ in range(4):
        renew(networks[1])
    assert sorted(state for some in asked[1:] for state in some) == need  # each of them once in four renewals
    values = model.solve(networks[1], BOUNDS, DISCOUNT)
    graph = replay.graph
    found = dict(zip(graph.vertices.tolist(), graph.values().tolist(), strict=True))
    for state, value in values.items():
        assert found[graph.vertex(state)] == pytest.approx(value, abs=1e-6)


def test_another_tried_action_asks_the_network_again() -> None:
    replay = filled([Row(0, 0, 0.0, 1, True)], refresh=0.01)
    network = np.array([[0.0, 2.0, 1.0]] * STATES)
    for _ in range(2):
        replay.renew_values(lambda states: network[states], bounds=BOUNDS)
    assert replay.graph.values()[0] == 2.0
    replay.add(0, 1, -1.0, 1, True, False)  # what looked best is tried, and is not
    replay.renew_values(lambda states: network[states], bounds=BOUNDS)
    assert replay.graph.values()[0] == 1.0


@pytest.mark.parametrize("options", [{"refresh": 0.0}, {"refresh": 1.5}, {"depth": 0}, {"depth": 2.5}])
def test_bad_settings_are_refused(options: Any) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(options))} must be"):
        GraphValues(**options)
