"""The paper's claims C20, C21 and C22 as properties."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backsweep import EpisodicBackward, Mixture, Prioritized, Topological, Uniform
from backsweep.samplers import Sampler
from strategies import examples
from twins.replay import Twin
from twins.store import Step

FAR = -1e9

Graph = list[tuple[int, int, float, bool]]
"""Transitions: state, successor, reward, terminated."""


@st.composite
def graphs_with_costs(draw: st.DrawFn) -> Graph:
    """A random graph, cycles and dead ends included, whose every step costs 1; some transitions terminate.

    The reward of reaching a goal is one and the same, as in the paper's argument: then the best way is the shortest.
    """
    states = draw(st.integers(2, 10))
    pairs = draw(st.lists(st.tuples(st.integers(1, states), st.integers(1, states)), min_size=1, max_size=25))
    goals = draw(st.lists(st.integers(1, states), min_size=1, max_size=4))
    goal_reward = draw(st.sampled_from([-1.0, 0.0, 10.0]))
    inner = [(source, target, -1.0, False) for source, target in pairs]
    return inner + [(source, -goal, goal_reward, True) for goal, source in enumerate(goals, start=1)]


def optimal_values(graph: Graph) -> dict[int, float]:
    """Iterate over all transitions until nothing changes."""
    values = {state: FAR for source, target, _, _ in graph for state in (source, target)}
    for _ in range(len(values) + 1):
        for source, target, reward, terminated in graph:
            values[source] = max(values[source], reward + (0.0 if terminated else values[target]))
    return values


def one_pass(graph: Graph, order: list[int]) -> dict[int, float]:
    """Back up each transition once, in the given order."""
    values = {state: FAR for source, target, _, _ in graph for state in (source, target)}
    for row in order:
        source, target, reward, terminated = graph[row]
        values[source] = max(values[source], reward + (0.0 if terminated else values[target]))
    return values


def one_sweep(graph: Graph) -> list[int]:
    """Return the rows of one whole sweep from all terminals over all predecessors."""
    terminals = {target for _, target, _, terminated in graph if terminated}
    twin = Twin(sampler=Topological(roots=len(terminals), predecessors=None, fallback="error"), capacity=len(graph))
    for source, target, reward, terminated in graph:
        # Goals have negative numbers; observations do not.
        twin.add([Step(source, 0, reward, target if target > 0 else 50 - target, terminated, not terminated)])
    rows = []
    while True:
        row = int(twin.replay.sample(1).row[0])
        if twin.replay.stats()["sweep_restarts"] > 1:
            return rows
        rows.append(row)


@settings(max_examples=examples(150))
@given(graphs_with_costs())
def test_c20_one_pass_in_the_sweeps_order_gives_the_optimal_values(graph: Graph) -> None:
    unique = {(source, target): step for step in graph for source, target in [step[:2]]}
    graph = list(unique.values())  # one transition per edge, so that a sweep sees all of them
    order = one_sweep(graph)
    best = optimal_values(graph)
    reaches_a_goal = {state for state, value in best.items() if value > FAR / 2}
    assert len(order) == len(set(order))
    assert set(order) == {row for row, (_, target, _, end) in enumerate(graph) if end or target in reaches_a_goal}
    found = one_pass(graph, order)
    assert {state: found[state] for state in reaches_a_goal} == {state: best[state] for state in reaches_a_goal}


def test_c20_some_other_order_does_not() -> None:
    """A chain backed up from its beginning: one pass reaches the last state only."""
    graph: Graph = [(1, 2, -1.0, False), (2, 3, -1.0, False), (3, -1, 0.0, True)]
    assert one_pass(graph, one_sweep(graph)) == optimal_values(graph)
    assert one_pass(graph, [0, 1, 2]) != optimal_values(graph)


def detour(interim: float) -> Graph:
    """From 1 to the goal directly, or by way of 4 and 5, with `interim` on the first step; 3 is one step before 1."""
    return [
        (1, -1, 0.0, True),
        (5, -1, 0.0, True),
        (3, 1, -1.0, False),
        (4, 5, -1.0, False),
        (1, 4, interim, False),
    ]


def test_c20_a_positive_interim_reward_breaks_it() -> None:
    """The best way is no longer the shortest: 3 is backed up from 1 before the detour has made 1 worth more."""
    for interim in (-1.0, 0.0):
        assert one_pass(detour(interim), one_sweep(detour(interim))) == optimal_values(detour(interim))
    graph = detour(5.0)
    best, found = optimal_values(graph), one_pass(graph, one_sweep(graph))
    assert best[3] == 3.0
    assert found[3] == -1.0


@pytest.mark.parametrize("other", [Uniform(), Prioritized()])
def test_c21_a_mixture_draws_every_live_transition_in_finite_time(other: Sampler) -> None:
    sampler = Mixture([(0.9, Topological()), (0.1, other)])
    twin = Twin(sampler=sampler, capacity=200)
    for t in range(200):
        # A goal that ten rows lead to, and a part of the world from which nothing leads there.
        goal = t % 20 == 0
        twin.add([Step(t % 10 if goal else 20 + t % 30, 0, 0.0, 90 if goal else 20 + (t + 1) % 30, goal, not goal)])
    topological = Twin(sampler=Topological(), capacity=200)
    for row in twin.store.rows.values():
        topological.add([row.step])
    alone = set(np.concatenate([topological.replay.sample(50).row for _ in range(500)]).tolist())
    assert len(alone) == 10  # the sweep never leaves what leads to the goal
    drawn: set[int] = set()
    for _ in range(2000):
        batch = twin.replay.sample(50)
        twin.replay.update_priorities(batch.row, np.where(batch.terminated, 100.0, 0.0))  # the worst case for the rest
        drawn |= set(batch.row.tolist())
        if len(drawn) == 200:
            break
    assert drawn == set(range(200))


@settings(max_examples=examples(80))
@given(
    st.lists(st.integers(1, 9), min_size=1, max_size=8),
    st.integers(1, 7),
    st.integers(0, 5),
)
def test_c22_where_states_never_repeat_a_sweep_is_an_episode_backwards(
    lengths: list[int], batch: int, seed: int
) -> None:
    capacity = max(sum(lengths) - 3, 1)  # the first episodes have lost rows to the ring
    sweeping = Twin(sampler=Topological(roots=1), capacity=capacity, seed=seed)
    backwards = Twin(sampler=EpisodicBackward(), capacity=capacity, seed=seed)
    state = 0
    for length in lengths:
        for t in range(length):
            for twin in (sweeping, backwards):
                twin.add([Step(state, 0, 0.0, state + 1, t == length - 1, False)])
            state += 1
        state += 1
    for twin in (sweeping, backwards):
        rows = np.concatenate([twin.replay.sample(min(batch, capacity)).row for _ in range(30)]).tolist()
        while rows:
            whole = twin.replay.episode(rows[0]).tolist()[::-1]
            assert whole[0] == rows[0]
            head, rows = rows[: len(whole)], rows[len(whole) :]
            assert head == whole[: len(head)]


def test_c22_the_order_is_the_same_row_by_row() -> None:
    """With a single episode there is nothing to draw, so both give the very same rows."""
    twins = [Twin(sampler=sampler, capacity=50) for sampler in (Topological(roots=1), EpisodicBackward())]
    for t, twin in itertools.product(range(40), twins):
        twin.add([Step(t, 0, 0.0, t + 1, t == 39, False)])
    for _ in range(20):
        assert twins[0].replay.sample(7).row.tolist() == twins[1].replay.sample(7).row.tolist()
