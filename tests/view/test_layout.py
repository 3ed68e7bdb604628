"""Trees and places of random graphs."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from backsweep.view.facts import Facts
from backsweep.view.layout import Forest, grow_forest, layers, most_important, place


@st.composite
def graphs(draw: st.DrawFn) -> Facts:
    count = draw(st.integers(1, 25))
    vertex = st.integers(0, count - 1)
    edges = sorted(draw(st.sets(st.tuples(vertex, vertex), max_size=60)))
    source, target = np.array(edges, np.int64).reshape(-1, 2).T

    def some() -> NDArray[np.bool_]:
        return np.isin(np.arange(count), draw(st.lists(vertex, max_size=3)))

    numbers, none = np.arange(count), np.empty(0, np.int64)
    visits = np.array(draw(st.lists(st.integers(1, 9), min_size=count, max_size=count)), np.int64)
    nothing = np.full(count, np.nan)
    return Facts(
        numbers, numbers, visits, numbers, some(), some(), numbers, nothing, source, target, none, none, None, nothing
    )


def check_trees(forest: Forest, facts: Facts) -> None:
    edges = set(zip(facts.source.tolist(), facts.target.tolist(), strict=True))
    roots = forest.parent < 0
    assert (forest.distance[roots] == 0).all()
    assert (forest.distance[~roots] > 0).all()
    for state in np.flatnonzero(~roots).tolist():
        parent = int(forest.parent[state])
        assert forest.distance[parent] == forest.distance[state] - 1
        assert forest.reaches_end[parent] == forest.reaches_end[state]
        step = (state, parent) if forest.reaches_end[state] else (parent, state)
        assert step in edges
    assert forest.size[roots].sum() == len(facts)


@given(graphs())
def test_every_state_hangs_on_one_that_is_nearer(facts: Facts) -> None:
    forest = grow_forest(facts)
    check_trees(forest, facts)
    assert (forest.distance[facts.terminal] == 0).all()
    assert forest.reaches_end[facts.terminal].all()


@given(graphs(), st.integers(1, 25))
def test_thinned_trees_are_trees(facts: Facts, most: int) -> None:
    forest = grow_forest(facts)
    kept = most_important(forest, facts.visits, most)
    assert len(kept) == min(most, len(facts))
    assert np.isin(forest.parent[kept][forest.parent[kept] >= 0], kept).all()
    new = np.full(len(facts) + 1, -1, np.int64)
    new[kept] = np.arange(len(kept))
    thin = forest.pick(kept, new)
    assert thin.size[thin.parent < 0].sum() == len(kept)
    assert (thin.distance == forest.distance[kept]).all()


@given(graphs())
def test_states_further_away_are_further_out_and_none_share_a_place(facts: Facts) -> None:
    forest = grow_forest(facts)
    layout = place(forest)
    assert np.isfinite(layout.position).all()
    for reaches, disc in ((True, layout.ends), (False, layout.others)):
        members = np.flatnonzero(forest.reaches_end == reaches)
        assert (disc is None) == (len(members) == 0)
        if disc is None:
            continue
        away = np.linalg.norm(layout.position[members] - [disc.x, disc.y], axis=1)
        assert (away <= disc.radius + 1e-3).all()
        order = np.argsort(forest.distance[members], kind="stable")
        rings = [away[order][forest.distance[members][order] == depth] for depth in range(forest.distance.max() + 1)]
        outer = -1.0
        for ring in rings:
            if len(ring):
                assert ring.min() > outer
                outer = float(ring.max())
    assert len(np.unique(np.round(layout.position, 4), axis=0)) == len(facts)


def test_layers() -> None:
    assert [layer.tolist() for layer in layers(np.array([1, 0, 1, 2]))] == [[1], [0, 2], [3]]
    assert layers(np.empty(0, np.int64)) == []


def test_a_cycle_whose_way_in_was_overwritten_is_still_placed() -> None:
    three = np.arange(3)
    no = np.zeros(3, np.bool_)
    none = np.empty(0, np.int64)
    nan = np.full(3, np.nan)
    facts = Facts(three, three, three, three, no, no, three, nan, three, np.array([1, 2, 0]), none, none, None, nan)
    forest = grow_forest(facts)
    assert sorted(forest.distance.tolist()) == [0, 1, 2]
