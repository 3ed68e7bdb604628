"""Tallies and softmax trees against sums worked out from nothing, while the graph changes under them."""

from __future__ import annotations

import math

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backsweep import Mixture, PseudoTerminals, Replay, Topological
from backsweep.graph import Graph, GraphDraws
from backsweep.graph.draw_kernels import LARGEST, SUM, change_tally, find_in_tally, sum_tally
from backsweep.graph.graph_kernels import COUNT, E_COUNT, SIZE, START, VISITS
from backsweep.graph.weights_kernels import draw_from_tally, draw_from_tree, rebuild_weights
from backsweep.samplers.base import graph_draws
from backsweep.sweep.choice_kernels import draw_by_visits, draw_pseudo_terminals
from drive import drive
from strategies import Plan, examples, plans
from twins.replay import Twin
from twins.store import Step

SPACES = gym.spaces.Discrete(13), gym.spaces.Discrete(2)
TEMPERATURES = (0.01, 1.0, 50.0)
SAMPLER = Mixture([(0.25, Topological(draw="visits", start=PseudoTerminals(kappa))) for kappa in (*TEMPERATURES, 1.0)])


def graph_of(replay: Replay) -> Graph:
    graph = replay._graph
    assert graph is not None
    return graph


def check_tallies(graph: Graph) -> None:
    """Compare every entry of every tally with the counts that it stands for."""
    for vertex in graph.live_vertices().tolist():
        start, count, size = graph.vertices[vertex, [START, COUNT, SIZE]].tolist()
        counts = [*graph.edges[graph.pool[start : start + count], E_COUNT].tolist(), *[0] * (size - count)]
        tally = graph._tallies[start : start + size].tolist()
        assert tally == [sum(counts[i - (i & -i) : i]) for i in range(1, size + 1)]


def check_trees(graph: Graph) -> None:
    """Compare the roots of the trees with plain sums, and all of them with trees that are built from nothing."""
    live = graph.live_vertices()
    averages = (graph.reward_sums[live] / graph.vertices[live, VISITS]).tolist()
    size = len(graph._trees) // len(TEMPERATURES)
    for which, temperature in enumerate(TEMPERATURES):
        largest, total = graph._trees[which * size + 1, [LARGEST, SUM]].tolist()
        assert math.isclose(total, sum(math.exp((value - max(averages)) / temperature) for value in averages))
        assert largest == max(averages)
    kept = graph._trees.copy()
    graph._trees[:] = 0.0
    rebuild_weights(graph.addresses)
    for which in range(len(TEMPERATURES)):
        # What lies beyond the vertices that there ever were is empty in both.
        first, second = (trees[which * size : (which + 1) * size] for trees in (kept, graph._trees))
        assert np.array_equal(first[:, SUM], second[:, SUM])
        assert np.array_equal(first[first[:, SUM] > 0], second[second[:, SUM] > 0])


@pytest.mark.kernels
@settings(max_examples=examples(60))
@given(plans(st.just(SAMPLER), most_states=30))
def test_tallies_and_trees_are_those_of_the_live_rows(plan: Plan) -> None:
    twin = drive(plan, check_every=100)
    if len(twin.store):
        check_tallies(graph_of(twin.replay))
        check_trees(graph_of(twin.replay))


@pytest.mark.kernels
@settings(max_examples=examples(40))
@given(plans(st.just(SAMPLER), most_states=30), st.integers(0, 2**63), st.integers(1, 4))
def test_draws_are_those_that_look_at_everything(plan: Plan, seed: int, wanted: int) -> None:
    """The same random numbers give the same edges and the same vertices."""
    twin = drive(plan, check_every=100)
    graph = graph_of(twin.replay)
    for vertex in graph.live_vertices().tolist():
        start, count = graph.vertices[vertex, [START, COUNT]].tolist()
        if count > wanted:
            fast, slow = np.zeros(wanted, np.int64), np.zeros(wanted, np.int64)
            draw_from_tally(np.array([seed], np.uint64), vertex, graph.bundle, wanted, fast)
            draw_by_visits(np.array([seed], np.uint64), start, count, graph.edges, graph.pool, wanted, slow)
            assert fast.tolist() == slow.tolist()
    check_tallies(graph)
    for which, temperature in enumerate(TEMPERATURES):
        fast, slow = np.zeros(20, np.int64), np.zeros(20, np.int64)
        found = draw_from_tree(np.array([seed], np.uint64), which, graph.bundle, fast)
        assert found == draw_pseudo_terminals(np.array([seed], np.uint64), temperature, graph.bundle, slow)
        assert fast.tolist() == slow.tolist()


@pytest.mark.kernels
@given(st.integers(0, 6), st.data())
def test_a_tally_finds_the_place_that_adding_up_finds(levels: int, data: st.DataObject) -> None:
    counts = data.draw(st.lists(st.integers(0, 3), min_size=2**levels, max_size=2**levels).filter(any))
    tally = np.array(counts, np.int32)
    sum_tally(tally)
    place, change = data.draw(st.integers(0, len(counts) - 1)), data.draw(st.integers(0, 5))
    counts[place] += change
    change_tally(tally, place, change)
    by_ticket = [place for place, count in enumerate(counts) for _ in range(count)]
    assert [find_in_tally(tally, ticket) for ticket in range(len(by_ticket))] == by_ticket


@pytest.mark.kernels
def test_scores_far_apart_leave_the_largest() -> None:
    """Beyond what exp can hold, and with a temperature that divides them further."""
    twin = Twin(sampler=Topological(start=PseudoTerminals(1e-3)), capacity=8)
    for state, reward in enumerate((-1e9, 1e9, 3.0, 1e9)):
        twin.add([Step(9, 0, reward, state, False, True)])
    graph, roots = graph_of(twin.replay), np.zeros(200, np.int64)
    assert draw_from_tree(np.array([5], np.uint64), 0, graph.bundle, roots) == 200
    view = twin.replay.graph
    assert set(roots.tolist()) == {view.vertex(1), view.vertex(3)}


def test_an_empty_graph_has_no_roots() -> None:
    replay = Twin(sampler=SAMPLER, capacity=5).replay
    roots = np.zeros(3, np.int64)
    assert draw_from_tree(np.array([5], np.uint64), 0, graph_of(replay).bundle, roots) == 0


def test_only_what_is_asked_for_is_kept() -> None:
    assert graph_draws(Topological()) == GraphDraws()
    assert graph_draws(SAMPLER) == GraphDraws(True, TEMPERATURES)
    graph = graph_of(Twin(sampler=Topological(), capacity=5).replay)
    assert (len(graph._tallies), len(graph._trees)) == (0, 0)


def test_a_sampler_of_ones_own_need_not_ask() -> None:
    """Then the sweep looks at everything, and gives the same."""

    class Own:
        needs_graph = True
        inner = Topological(draw="visits", predecessors=2, start=PseudoTerminals(1.0))

        def build(self, experience, generator):  # type: ignore[no-untyped-def]
            return self.inner.build(experience, generator)

    rows = []
    for sampler in (Own(), Own.inner):
        replay = Replay(*SPACES, 50, sampler)
        for step in range(120):
            replay.add(step * 7 % 13, 0, step % 3, step * 5 % 13, step % 10 == 9, False)
            rows.append(replay.sample(8).row.tolist())
    assert rows[: len(rows) // 2] == rows[len(rows) // 2 :]


def test_what_is_asked_for_must_be_draws() -> None:
    class Wrong:
        needs_graph = True
        graph_draws = "visits"

        def build(self, experience, generator):  # type: ignore[no-untyped-def]
            raise NotImplementedError

    with pytest.raises(TypeError, match="graph_draws must be GraphDraws"):
        Replay(*SPACES, 50, Wrong())
