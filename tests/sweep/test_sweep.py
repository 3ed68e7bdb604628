"""The sweep against Algorithm 1 of the paper, line by line, while the graph changes under it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backsweep import PseudoTerminals, Topological
from backsweep.sweep.sweep_kernels import HUB, QUEUE_COUNT
from drive import drive
from strategies import Plan, examples, long_stream, plans, topological
from twins.replay import BadEncoder, Twin
from twins.samplers import ReferenceTopological
from twins.store import Step


@pytest.mark.kernels
@settings(max_examples=examples(150))
@given(plans(topological()))
def test_rows_are_those_of_algorithm_1(plan: Plan) -> None:
    twin = drive(plan, check_every=20)
    same_counts(twin)


@pytest.mark.kernels
@settings(max_examples=examples(60))
@given(plans(topological(), most_states=40), st.integers(1, 20))
def test_rows_are_those_of_algorithm_1_where_keys_collide(plan: Plan, keys: int) -> None:
    twin = drive(plan, encoder=BadEncoder(keys), check_every=20)
    same_counts(twin)


@pytest.mark.kernels
@settings(max_examples=examples(150))
@given(plans(topological(), most_states=40, length=90), st.integers(1, 4), st.integers(0, 4))
def test_rows_are_those_of_algorithm_1_with_bounds_that_are_met_often(
    plan: Plan, edges_at_once: int, long_queue: int
) -> None:
    twin = drive(plan, check_every=30, bounds=(edges_at_once, long_queue))
    same_counts(twin)


def same_counts(twin: Twin) -> None:
    assert isinstance(twin.reference, ReferenceTopological)
    stats = twin.replay.stats()
    assert stats["sweep_restarts"] == twin.reference.sweep.restarts
    assert stats["sweep_expansions"] == twin.reference.sweep.expansions


@pytest.mark.parametrize("predecessors", [None, 1, 3])
@pytest.mark.parametrize("trees", ["shared", "separate"])
def test_long_sweeps_over_a_graph_that_changes_slowly(predecessors: int | None, trees: str) -> None:
    sampler = Topological(roots=4, predecessors=predecessors, trees=trees)  # type: ignore[arg-type]
    twin = Twin(sampler=sampler, capacity=200, num_envs=2)
    for steps in long_stream(3, 1000, 2, states=100, terminals=6):
        twin.add(steps)
        twin.sample(4)
    same_counts(twin)


@pytest.mark.kernels
@pytest.mark.parametrize("trees", ["shared", "separate"])
def test_the_queue_stays_where_it_was_before(trees: str) -> None:
    """However many sweeps there are, only as much of its memory is touched as the longest queue needs."""
    states = 5
    twin = Twin(sampler=Topological(roots=1, trees=trees), capacity=400)  # type: ignore[arg-type]
    for state in range(states):
        twin.add([Step(state, 0, 0.0, state + 1, state == states - 1, False)])
    for _ in range(100):
        twin.sample(7)
    same_counts(twin)
    queue = twin.replay._sampler.sweep._queue  # type: ignore[attr-defined]
    assert len(queue) >= 400
    assert np.flatnonzero(queue.any(axis=1)).max() < 2 * states


@pytest.mark.kernels
def test_each_vertex_is_expanded_once_in_a_sweep() -> None:
    """On a complete graph a whole sweep over all predecessors gives every transition once."""
    states = 6
    twin = Twin(sampler=Topological(predecessors=None, roots=1), capacity=states * states + 1)
    for source in range(states):
        for target in range(states):
            twin.add([Step(source, 0, 0.0, target, False, True)])
    twin.add([Step(0, 0, 0.0, 99, True, False)])
    for _ in range(3):
        batch = twin.sample(states * states + 1)
        assert batch is not None
        assert sorted(batch.row.tolist()) == list(range(states * states + 1))
        assert batch.row[0] == states * states


@pytest.mark.kernels
def test_the_rows_do_not_depend_on_how_they_are_cut_into_batches() -> None:
    def rows(sizes: list[int], **options: object) -> list[int]:
        twin = Twin(sampler=Topological(**options), capacity=60, seed=9)  # type: ignore[arg-type]
        for steps in long_stream(3, 60, 1, states=20):
            twin.add(steps)
        return [row for size in sizes for row in twin.replay.sample(size).row.tolist()]

    for options in ({}, {"trees": "separate"}, {"stitch": False}, {"draw": "visits", "predecessors": 2}):
        assert rows([60] * 4, **options) == rows([1] * 240, **options) == rows([7] * 34 + [2], **options)


@pytest.mark.kernels
def test_a_queue_full_of_vertices_that_left_the_graph_is_cleared() -> None:
    """Six vertices wait, kept alive, while those that they lead to come and go in numbers.

    Each round one of the six is expanded and puts ten vertices behind the others; before the next round these ten have
    left the graph. The queue has room for all vertices that can be alive, but not for so many that are gone.
    """
    waiting, new = 6, 10
    twin = Twin(sampler=Topological(predecessors=None, roots=1), capacity=2 * waiting + new)
    state = 20

    def keep_alive() -> None:
        for place in range(waiting):
            twin.add([Step(1 + place, 0, 0.0, 0, True, False)])

    keep_alive()
    twin.sample(waiting)
    longest = 0
    for place in range(waiting):
        keep_alive()
        for _ in range(new):
            twin.add([Step(state, 0, 0.0, 1 + place, False, True)])
            state += 1
        twin.sample(new)
        sampler = twin.replay._sampler
        longest = max(longest, int(sampler.sweep._counters[QUEUE_COUNT]))  # type: ignore[attr-defined]
        assert longest <= 2 * twin.replay.capacity
    assert longest > 35  # it was nearly full, and a fifth round would not have fitted
    twin.sample(20)
    same_counts(twin)


@pytest.mark.kernels
def test_a_vertex_that_comes_back_is_another_one() -> None:
    """It left the graph while it waited, and was made anew in the same place: what waits is the old one."""
    twin = Twin(sampler=Topological(roots=1, predecessors=None), capacity=3)
    twin.add([Step(1, 0, 0.0, 0, True, False)])
    twin.add([Step(2, 0, 0.0, 0, True, False)])
    twin.sample(1)  # 0 is expanded; 1 and 2 wait
    for _ in range(4):
        twin.add([Step(7, 0, 0.0, 8, False, True)])  # everything leaves
    twin.add([Step(5, 0, 0.0, 1, False, True)])  # 1 is back, in the place of another
    twin.add([Step(6, 0, 0.0, 2, False, True)])
    twin.add([Step(1, 0, 0.0, 0, True, False)])
    for _ in range(6):
        twin.sample(2)
        same_counts(twin)


@pytest.mark.kernels
def test_without_stitching_a_branch_stays_in_its_episode() -> None:
    twin = Twin(sampler=Topological(roots=1, predecessors=None, stitch=False), capacity=20)
    for start in (10, 20, 30):  # three episodes that meet in 5 and end in 0
        twin.add([Step(start, 0, 0.0, start + 1, False, False)])
        twin.add([Step(start + 1, 0, 0.0, 5, False, False)])
        twin.add([Step(5, 0, 0.0, 0, True, False)])
    for _ in range(30):
        batch = twin.sample(3)
        assert batch is not None
        # The root's one edge gives one of three rows; from there on there is one way back.
        assert batch.row.tolist() in [[2, 1, 0], [5, 4, 3], [8, 7, 6]]


@pytest.mark.kernels
def test_truncation_makes_no_root() -> None:
    twin = Twin(sampler=Topological(fallback="error"), capacity=10)
    twin.add([Step(1, 0, 0.0, 2, False, True)])
    with pytest.raises(RuntimeError, match="no vertex to start a sweep from"):
        twin.replay.sample(1)
    assert twin.replay.graph.terminal_vertices.tolist() == []
    twin.add([Step(2, 0, 0.0, 3, True, True)])
    assert twin.replay.sample(2).row.tolist() == [1, 0]


@pytest.mark.kernels
def test_pseudo_terminals_need_no_terminal() -> None:
    twin = Twin(sampler=Topological(start=PseudoTerminals(), fallback="error"), capacity=10)
    twin.add([Step(1, 0, 0.0, 2, False, False)])
    twin.add([Step(2, 0, 5.0, 3, False, False)])
    assert twin.replay.sample(4).row.tolist() == [1, 0, 1, 0]


def hub_of(edges: int, stitch: bool = True) -> Twin:
    """State 0 with many predecessors; state 1 leads to the last of those, and nothing leads to the others."""
    twin = Twin(sampler=Topological(roots=1, predecessors=None, stitch=stitch), capacity=edges + 1)
    for state in range(edges):
        twin.add([Step(2 + state, 0, 0.0, 0, True, False)])
    twin.add([Step(1, 0, 0.0, 1 + edges, False, True)])
    return twin


@pytest.mark.kernels
@pytest.mark.parametrize("trees", ["shared", "separate"])
def test_a_root_without_predecessors_is_followed_by_another(trees: str) -> None:
    """Of ten vertices with equal rewards every second one starts an episode: half of all sweeps have no rows."""
    sampler = Topological(roots=1, start=PseudoTerminals(), trees=trees, fallback="error")  # type: ignore[arg-type]
    twin = Twin(sampler=sampler, capacity=20)
    for state in range(5):
        twin.add([Step(state, 0, 0.0, 10 + state, False, True)])
    for count in (1, 1, 1, 1, 1, 1, 9, 20):
        twin.sample(count)
    same_counts(twin)
    assert twin.replay.stats()["sweep_restarts"] > 40


@pytest.mark.kernels
def test_a_sweep_gives_up_where_no_root_has_predecessors() -> None:
    """Each step costs: the best vertex is always the episode's start."""
    sampler = Topological(roots=2, start=PseudoTerminals(kappa=0.001), fallback="error")
    twin = Twin(sampler=sampler, capacity=20)
    for state in range(5):
        twin.add([Step(state, 0, -1.0, state + 1, False, state == 4)])
    with pytest.raises(RuntimeError, match="or none that was drawn has predecessors"):
        twin.replay.sample(1)
    assert twin.replay.stats()["sweep_restarts"] == 64


@pytest.mark.kernels
def test_a_vertex_with_many_predecessors_is_expanded_as_batches_need_it() -> None:
    """Whatever their number, one call follows no more edges than its rows and one part ask for."""
    twin = hub_of(100)
    twin.bound_sweep(16, 8192)
    sweep = twin.replay._sampler.sweep  # type: ignore[attr-defined]
    rows: list[int] = []
    for batch in range(20):
        given = twin.sample(5)
        assert given is not None
        rows += given.row.tolist()
        assert sweep.statistics()["sweep_frontier"] <= 5 * (batch + 1) + 16
    assert rows == list(range(100))  # each once, in the order of the list
    assert twin.replay.sample(1).row.tolist() == [100]


@pytest.mark.kernels
@pytest.mark.parametrize("stitch", [True, False])
def test_a_long_row_of_vertices_that_nothing_leads_to_is_not_kept(stitch: bool) -> None:
    twin = hub_of(100, stitch)
    twin.bound_sweep(16, 20)
    assert twin.sample(100) is not None
    # The last one, to which state 1 leads, waits behind the first twenty; without stitching its episode begins there.
    assert twin.replay.stats()["sweep_frontier"] == (21 if stitch else 20)
    twin.sample(2)
    same_counts(twin)


@pytest.mark.kernels
def test_edges_that_come_and_go_while_a_vertex_is_expanded() -> None:
    twin = hub_of(30)
    twin.bound_sweep(4, 20)
    for state in range(60):
        twin.sample(2)
        twin.add([Step(40 + state % 45, 0, 0.0, 0, True, False)])
    same_counts(twin)


@pytest.mark.kernels
def test_a_vertex_that_leaves_while_it_is_expanded() -> None:
    twin = hub_of(30)
    twin.bound_sweep(4, 20)
    twin.sample(5)
    assert twin.replay._sampler.sweep._counters[HUB] > 0  # type: ignore[attr-defined]
    for _ in range(40):
        twin.add([Step(120, 0, 0.0, 121, True, False)])
    twin.sample(5)
    same_counts(twin)


def test_a_save_from_before_vertices_were_expanded_in_parts_goes_on() -> None:
    twin = hub_of(10)
    twin.sample(3)
    sweep = twin.replay._sampler.sweep  # type: ignore[attr-defined]
    arrays = sweep.arrays()
    sweep.load({**arrays, "counters": arrays["counters"][:HUB]})
    twin.sample(8)
    same_counts(twin)
