"""The kernels that check what was loaded refuse what the plain checks refuse, one changed number at a time."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from backsweep import Replay
from backsweep.graph.graph_check import graph_fits
from backsweep.planning.planner_check_kernels import model_fits
from backsweep.snapshot.contents import ContentsError
from backsweep.snapshot.contents_kernels import all_finite, free_list_fits, take_block, taken_bits
from backsweep.store import store_check, store_check_kernels
from backsweep.store.ring_kernels import RING
from backsweep.store.staging import LARGEST_REWARD
from crafting import SPACES, _number, change_two, filled_replay
from strategies import examples
from twins.contents import need_list
from twins.graph_check import explain_graph
from twins.planner_check import explain_planner
from twins.store_check import explain_store

KINDS = sorted(SPACES)
CHANGES = examples(400)


def refused(check: Callable[[], Any]) -> bool:
    try:
        check()
    except (ContentsError, IndexError):  # a plain check may stumble over a number that leads nowhere
        return True
    return False


def parts_of(replay: Replay) -> dict[str, tuple[Any, Callable[[], bool], Callable[[], Any]]]:
    """Return each part with its two checks, the kernels' and the plain one."""
    store, graph, planner = replay._store, replay._graph, replay._planner
    assert graph is not None
    assert planner is not None

    def store_fits() -> bool:
        if not store_check_kernels.values_fit(store.values, LARGEST_REWARD):
            return False
        uses, seen = np.zeros(store.observations_high, np.int32), np.zeros(store.observations_high, np.bool_)
        if not store_check_kernels.rows_fit(store.table[RING], store.observations_high, uses, seen):
            return False
        return store_check.records_fit(store, uses)

    def planner_fits() -> bool:
        model = planner.model
        sizes = graph.vertices_high, planner.num_actions, store.observations_high
        return bool(all_finite(model.row_numbers) and model_fits(model, *sizes))

    return {
        "store": (store, store_fits, lambda: explain_store(store)),
        "graph": (
            graph,
            lambda: bool(all_finite(graph.returns) and graph_fits(graph, store)),
            lambda: explain_graph(graph, store),
        ),
        "planner": (
            planner,
            planner_fits,
            lambda: explain_planner(planner, store, graph),
        ),
    }


@pytest.mark.kernels
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("part", ["store", "graph", "planner"])
def test_kernels_refuse_what_plain_checks_refuse(kind: str, part: str) -> None:
    replay = filled_replay(kind)
    owner, fits, explain = parts_of(replay)[part]
    assert fits()
    assert not refused(explain)
    draw = random.Random(f"{kind} {part}")
    arrays = {name: array for name, array in owner.arrays().items() if array.size and "counters" not in name}
    found = 0
    for _ in range(CHANGES):
        name = draw.choice(sorted(arrays))
        flat: NDArray[Any] = arrays[name].reshape(-1)
        assert np.shares_memory(flat, arrays[name])
        place = draw.randrange(flat.size)
        before = flat[place]
        flat[place] = _number(draw, before)
        with np.errstate(all="ignore"):
            plain, fast = refused(explain), not fits()
        assert fast or not plain, (name, place, before, flat[place])
        found += fast
        flat[place] = before
    assert fits()
    assert found > CHANGES // 10


@pytest.mark.kernels
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("part", ["store", "graph", "planner"])
def test_two_changes_that_leave_every_sum_as_it_was(kind: str, part: str) -> None:
    """Counters that only add up are not enough: one place may hold too much and another too little."""
    replay = filled_replay(kind)
    owner, fits, explain = parts_of(replay)[part]
    draw = random.Random(f"{kind} {part} twice")
    arrays = {
        name: array
        for name, array in owner.arrays().items()
        if len(array) > 1 and array.dtype.kind in "iu" and "counters" not in name
    }
    found = 0
    for _ in range(CHANGES):
        name = draw.choice(sorted(arrays))
        table, before = arrays[name].reshape(len(arrays[name]), -1), arrays[name].copy()
        assert np.shares_memory(table, arrays[name])
        change_two(draw, table)
        with np.errstate(all="ignore"):
            plain, fast = refused(explain), not fits()
        assert fast or not plain, (name, *np.argwhere(arrays[name] != before))
        found += fast
        arrays[name][...] = before
    assert fits()
    assert found > CHANGES // 10


@pytest.mark.kernels
@settings(max_examples=examples(100))
@given(st.lists(st.integers(-1, 7), min_size=1, max_size=6), st.lists(st.booleans(), min_size=6, max_size=6), st.data())
def test_free_lists(links: list[int], free: list[bool], data: st.DataObject) -> None:
    head = data.draw(st.integers(-1, len(links) + 1))
    members = np.array(free[: len(links)])
    state = np.where(members, 0, 1).astype(np.uint8)
    plain = not refused(lambda: need_list(head, np.array(links), members, "the list"))
    assert free_list_fits(head, np.array(links), state) == plain


@pytest.mark.kernels
@settings(max_examples=examples(100))
@given(st.lists(st.floats(), max_size=12), st.integers(1, 3))
def test_finite_numbers(numbers: list[float], columns: int) -> None:
    table = np.array(numbers[: len(numbers) // columns * columns], np.float64).reshape(-1, columns)
    assert all_finite(table) == np.isfinite(table).all()


SIZES = st.sampled_from([-1, 0, 1, 1, 2, 2, 3, 4, 8, 16, 32, 63, 64, 65, 128, 256])


@pytest.mark.kernels
@settings(max_examples=examples(300))
@given(st.lists(st.tuples(st.integers(-1, 260), SIZES), max_size=6), st.sampled_from([0, 1, 63, 64, 65, 256]))
def test_blocks(blocks: list[tuple[int, int]], used: int) -> None:
    powers = [2**power for power in range(9)]
    inside = all(size in powers and 0 <= start <= used - size for start, size in blocks)
    places = [place for start, size in blocks for place in range(start, start + size)]
    taken = taken_bits(used)
    assert all(take_block(taken, used, start, size) for start, size in blocks) == (
        inside and len(set(places)) == len(places)
    )
