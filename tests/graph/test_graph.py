"""The graph is exactly the live rows, after every add and every eviction."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backsweep import ExactBytes, Quantized, RandomProjection, Topological, Uniform
from backsweep.graph import graph_kernels
from drive import drive
from strategies import Plan, examples, long_stream, plans, topological
from twins.graph import graph_of
from twins.replay import BadEncoder, Twin
from twins.store import Step
from worlds import WORLDS


@pytest.mark.kernels
@settings(max_examples=examples(150))
@given(plans(topological()))
def test_the_graph_is_that_of_both_twins_after_every_call(plan: Plan) -> None:
    drive(plan)


@pytest.mark.kernels
@settings(max_examples=examples(100))
@given(plans(topological()), st.integers(1, 5))
def test_collisions_are_counted_and_observations_never_mixed_up(plan: Plan, keys: int) -> None:
    drive(plan, encoder=BadEncoder(keys))


@pytest.mark.parametrize("encoder", [RandomProjection(), RandomProjection(dim=1), ExactBytes(), Quantized(0.01)])
def test_every_encoder_gives_the_same_graph_where_it_tells_all_states_apart(encoder: object) -> None:
    for world in ("uint8", "float32", "dict", "4 frames", "multi binary"):
        twin = Twin(sampler=Topological(), capacity=12, num_envs=2, world=WORLDS[world], encoder=encoder)  # type: ignore[arg-type]
        for steps in long_stream(3, 40, 2, states=9):
            twin.add(steps)
            twin.check_graph()


@pytest.mark.kernels
@pytest.mark.parametrize(("capacity", "num_envs", "states"), [(1, 1, 3), (7, 1, 4), (20, 3, 40), (5, 5, 6)])
def test_many_times_around_the_ring(capacity: int, num_envs: int, states: int) -> None:
    go_around(capacity, num_envs, states, 1200)


@pytest.mark.parametrize(("capacity", "num_envs", "states"), [(64, 1, 60), (50, 7, 128)])
def test_hundreds_of_times_around_the_ring(capacity: int, num_envs: int, states: int) -> None:
    go_around(capacity, num_envs, states, 9000)


def go_around(capacity: int, num_envs: int, states: int, rows: int) -> None:
    """Go on so long that the pool is packed several times and tables are full of holes and wrapped runs."""
    twin = Twin(sampler=Topological(), capacity=capacity, num_envs=num_envs)
    packed, used = 0, 0
    for number, steps in enumerate(long_stream(4, rows // num_envs, num_envs, states, terminals=3)):
        twin.add(steps)
        now = int(twin.replay._graph.counters[graph_kernels.POOL_USED])  # type: ignore[union-attr]
        packed += now < used
        used = now
        if number % 17 == 0:
            twin.check_graph()
    twin.check_graph()
    assert packed >= 3 or capacity == 1


def test_one_vertex_with_many_predecessors_and_one_edge_with_many_rows() -> None:
    """Blocks that grow, wrap around and shrink."""
    twin = Twin(sampler=Topological(), capacity=100)
    rng = np.random.default_rng(1)
    for phase in range(6):
        for t in range(150):
            if phase % 2:
                twin.add([Step(1, 0, 0.0, 0, True, False)])  # the same edge again and again
            else:
                twin.add([Step(int(rng.integers(1, 100)), 0, 0.0, 0, True, False)])  # a star
            if t % 15 == 0:
                twin.check_graph()


@settings(max_examples=examples(60))
@given(plans(st.just(Uniform())), st.integers(0, 40))
def test_a_graph_that_is_asked_for_late_is_the_same_and_stays_so(plan: Plan, moment: int) -> None:
    twin = Twin(sampler=plan.sampler, capacity=plan.capacity, num_envs=plan.num_envs, encoder=BadEncoder(3))
    for number, (kind, argument) in enumerate(plan.run()):
        if kind == "add":
            twin.add(argument)
        if number >= moment:
            check_against_live_rows(twin)


def check_against_live_rows(twin: Twin) -> None:
    """Compare with the graph made from nothing: a late graph has the same contents in another order."""
    plain = graph_of(twin.store.rows.values(), twin._key)
    view = twin.replay.graph
    key_of = {vertex: key for key, vertex in twin.hidden_vertices().items()}
    for state in twin.observed():
        vertex = view.vertex(state)
        if vertex is not None:
            key_of[vertex] = twin._key(state)
    assert set(view.vertices.tolist()) == set(key_of)
    assert set(key_of.values()) == plain.vertices
    assert {key_of[vertex] for vertex in view.terminal_vertices.tolist()} == plain.terminals
    assert view.num_edges == len(plain.edges)
    for vertex, key in key_of.items():
        assert view.visits(vertex) == plain.visits[key]
        assert view.average_accumulated_reward(vertex) == pytest.approx(plain.average_accumulated_reward[key])
        sources = view.predecessors(vertex).tolist()
        assert {(key_of[source], key) for source in sources} == {pair for pair in plain.edges if pair[1] == key}
        for source in sources:
            assert set(view.transitions(source, vertex).tolist()) == plain.edges[key_of[source], key]


def test_networkx_has_the_same_vertices_edges_and_attributes() -> None:
    twin = Twin(sampler=Topological(), capacity=30, num_envs=2)
    for steps in long_stream(5, 60, 2, states=8):
        twin.add(steps)
    view = twin.replay.graph
    found = view.to_networkx()
    assert set(found.nodes) == set(view.vertices.tolist())
    assert found.number_of_edges() == view.num_edges
    for vertex, attributes in found.nodes(data=True):
        assert attributes["visits"] == view.visits(vertex)
        assert attributes["terminal"] == (vertex in view.terminal_vertices)
        assert attributes["average_accumulated_reward"] == view.average_accumulated_reward(vertex)
    for source, target, attributes in found.edges(data=True):
        assert attributes["rows"] == view.transitions(source, target).tolist()


def test_what_the_view_refuses() -> None:
    twin = Twin(sampler=Topological(), capacity=4)
    view = twin.replay.graph
    assert (view.num_vertices, view.num_edges, len(view.terminal_vertices)) == (0, 0, 0)
    assert view.vertex(3) is None
    twin.add([Step(3, 0, 0.0, 5, True, False)])
    three, five = view.vertex(3), view.vertex(5)
    assert three is not None
    assert five is not None
    assert view.predecessors(five).tolist() == [three]
    assert view.transitions(five, three).tolist() == []
    for wrong in (-1, 2, 99):
        with pytest.raises(ValueError, match=f"vertex {wrong} is not in the graph"):
            view.predecessors(wrong)
    with pytest.raises(TypeError, match="vertex must be an int, got str"):
        view.visits("3")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="observation must lie within its space"):
        view.vertex(-7)
    assert repr(view) == "GraphView(num_vertices=2, num_edges=1, terminal_vertices=1)"
