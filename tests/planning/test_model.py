"""The model in its arrays is the plain one, after every call that brings it up to date."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backsweep import GraphValues, Replay
from backsweep.graph.graph_kernels import find_edge
from backsweep.planning import model_kernels as columns
from backsweep.planning.planner import Planner
from strategies import examples
from twins.planning import Outcome, Row, outcomes, stretch_bounds

STATES, ACTIONS, FIRST_ACTION = 30, 70, -2
"""More actions than have a bit each, counted from a number below 0."""


def planner_of(replay: Replay) -> Planner:
    planner = replay.machinery.planner
    assert planner is not None
    return planner


def linked(first: int, following: int, previous: int, entries: Any) -> list[int]:
    """Return the entries of a list, having checked that it leads back as it leads on."""
    found, before, link = [], 0, first
    while link:
        assert entries[link - 1, previous] == before
        found.append(int(link) - 1)
        before, link = link, entries[link - 1, following]
    return found


def stored_outcomes(replay: Replay) -> dict[tuple[int, int], Outcome]:
    """Return what the model's arrays hold by state and action, and check that they agree with each other."""
    model, states = planner_of(replay).model, {}
    for state in range(STATES):
        vertex = replay.graph.vertex(state)
        if vertex is not None:
            states[vertex] = state
    found, arcs_into = {}, 0
    for vertex in range(len(model.vertices)):
        about = model.vertices[vertex]
        pairs = linked(about[columns.FIRST_PAIR], columns.NEXT_PAIR, columns.PREVIOUS_PAIR, model.pairs)
        into = linked(about[columns.FIRST_INTO], columns.NEXT_INTO, columns.PREVIOUS_INTO, model.arcs)
        actions = [int(model.pairs[pair, columns.ACTION]) for pair in pairs]
        assert about[columns.TRIED] == len(actions)
        assert model.tried[vertex] == sum(1 << action for action in actions if action < columns.MASKED_ACTIONS)
        assert all(model.arcs[arc, columns.SUCCESSOR] == vertex for arc in into)
        arcs_into += len(into)
        for pair, action in zip(pairs, actions, strict=True):
            of_pair = model.pairs[pair]
            assert of_pair[columns.VERTEX] == vertex
            arcs = linked(of_pair[columns.FIRST_ARC], columns.NEXT_OF_PAIR, columns.PREVIOUS_OF_PAIR, model.arcs)
            for arc in arcs:
                assert model.arcs[arc, columns.PAIR] == pair
                assert find_edge(pair, int(model.arcs[arc, columns.SUCCESSOR]), model.arcs, model.arc_table) == arc
            successors = {
                states[int(model.arcs[arc, columns.SUCCESSOR])]: int(model.arcs[arc, columns.ROWS]) for arc in arcs
            }
            reward = float(model.pair_numbers[pair, columns.REWARDS])
            found[states[vertex], action] = Outcome(int(of_pair[columns.COUNT]), reward, successors)
    counters = model.counters
    assert counters[columns.PAIRS_LIVE] == len(found)
    assert counters[columns.ARCS_LIVE] == arcs_into == np.count_nonzero(model.arc_table)
    return found


rows = st.builds(
    Row,
    st.integers(0, STATES - 1),
    st.sampled_from([0, 1, 63, 64, ACTIONS - 1]),
    st.sampled_from([-1.0, 0.0, 2.0]),
    st.integers(0, STATES - 1),
    st.sampled_from([False, False, True]),
)


@pytest.mark.kernels
@given(st.lists(st.lists(st.tuples(rows, st.booleans()), max_size=20), min_size=1, max_size=8), st.integers(1, 12))
@settings(max_examples=examples(60))
def test_the_model_is_that_of_the_twin_after_every_call(rounds: list[list[tuple[Row, bool]]], capacity: int) -> None:
    """So few rows are live that vertices are released and their places taken by others within a round."""
    replay = Replay(
        gym.spaces.Discrete(STATES),
        gym.spaces.Discrete(ACTIONS, start=FIRST_ACTION),
        capacity,
        values=GraphValues(),
    )
    live: list[Row] = []
    for some in rounds:
        for row, truncated in some:
            replay.add(
                row.state,
                row.action + FIRST_ACTION,
                row.reward,
                row.successor,
                row.terminated,
                truncated and not row.terminated,
            )
            live = [*live, row][-capacity:]
        planner_of(replay).begin_renewal()
        assert stored_outcomes(replay) == outcomes(live)


@pytest.mark.kernels
@given(st.lists(st.tuples(st.integers(-3, 3), st.sampled_from(["on", "on", "end", "cut"])), min_size=1, max_size=40))
@settings(max_examples=examples(60))
def test_learned_bounds_are_those_of_the_twin(steps: list[tuple[int, str]]) -> None:
    replay = Replay(gym.spaces.Discrete(50), gym.spaces.Discrete(1), 100, values=GraphValues(), gamma=0.5)
    episodes: list[list[float]] = [[]]
    for place, (reward, way) in enumerate(steps):
        replay.add(place, 0, reward, place + 1, way == "end", way == "cut")
        episodes[-1].append(float(reward))
        if way != "on":
            episodes.append([])
    replay.renew_values(lambda states: np.zeros((len(states), 1)))
    stats = replay.stats()
    assert (stats["lowest_value"], stats["highest_value"]) == stretch_bounds(episodes, 0.5)
