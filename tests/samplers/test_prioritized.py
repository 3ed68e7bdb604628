"""Priorities: trees of every size, updates of every kind, and numbers at the edge."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backsweep import Prioritized, Replay
from backsweep.samplers import sum_tree_kernels
from backsweep.samplers.sum_tree import SumTree
from strategies import examples
from twins.replay import Twin
from twins.store import Step

SLOTS = [1, 2, 7, 8, 9, 63, 64, 65, 100, 512, 513, 4097]


def fill(tree: SumTree, leaves: np.ndarray) -> None:
    for slot, value in enumerate(leaves.tolist()):
        sum_tree_kernels.set_range(slot, slot + 1, len(leaves), value, tree.addresses)


@pytest.mark.kernels
@pytest.mark.parametrize("slots", SLOTS)
def test_a_tree_is_a_function_of_its_leaves(slots: int) -> None:
    """One leaf after another, all at once, or in groups: the same sums to the last bit."""
    leaves = np.random.default_rng(slots).gamma(0.3, size=slots)
    one_by_one, at_once, in_groups = (SumTree(slots, with_minima=True) for _ in range(3))
    fill(one_by_one, leaves)
    at_once.build(leaves)
    fill(in_groups, np.ones(slots))
    for start in range(0, slots, 37):
        rows = np.arange(start, min(start + 37, slots))
        sum_tree_kernels.update_priorities(rows, leaves[rows], slots, 1.0, 0.0, math.inf, 1.0, in_groups.addresses)
    for tree in (at_once, in_groups):
        np.testing.assert_array_equal(tree.sums, one_by_one.sums)
        np.testing.assert_array_equal(tree.minima, one_by_one.minima)
    assert one_by_one.total == pytest.approx(math.fsum(leaves), rel=1e-12)
    assert one_by_one.minima[0] == leaves.min()
    np.testing.assert_array_equal(one_by_one.leaves(slice(slots)), leaves)


@pytest.mark.parametrize("slots", SLOTS)
def test_a_ticket_finds_the_leaf_of_a_linear_scan(slots: int) -> None:
    rng = np.random.default_rng(slots)
    tree = SumTree(slots, with_minima=False)
    leaves = rng.integers(0, 4, slots).astype(float)  # whole numbers: every sum is exact, whatever its order
    leaves[rng.integers(slots)] += 1
    fill(tree, leaves)
    row, weight = np.empty(2000, np.int64), np.empty(2000, np.float32)
    sum_tree_kernels.draw_prioritized(np.uint64(5), 0, slots, 0.0, True, tree.addresses, row, weight)
    ends = np.cumsum(leaves)
    low = np.arange(2000) / 2000 * tree.total
    high = low + tree.total / 2000
    assert (ends[row] > low).all()  # the leaf's share meets the ticket's stratum
    assert (ends[row] - leaves[row] < high).all()
    assert (leaves[row] > 0).all()


@pytest.mark.parametrize("options", [{}, {"stratified": True, "normalise": "batch"}])
def test_large_rings_are_those_of_the_twin(options: dict[str, object]) -> None:
    twin = Twin(sampler=Prioritized(**options), capacity=600)  # type: ignore[arg-type]
    rng = np.random.default_rng(0)
    for t in range(1500):
        twin.add([Step(t % 100, 0, 0.0, (t + 1) % 100, False, False)])
        if t % 25 == 0:
            batch = twin.sample(40 if t % 50 else 300)
            if batch is not None:
                twin.update(batch.row.tolist(), (rng.normal(size=len(batch)) * 10 ** rng.uniform(-3, 3)).tolist())


@settings(max_examples=examples(200))
@given(
    st.lists(st.floats(0, 1e300), min_size=1, max_size=20),
    st.sampled_from([0.0, 0.6, 1.0, 3.0]),
    st.sampled_from([1e-300, 1e-9, 0.01]),
)
def test_any_errors_leave_a_sampler_that_works(errors: list[float], alpha: float, epsilon: float) -> None:
    if epsilon**alpha == 0.0:
        with pytest.raises(ValueError, match="epsilon"):
            Prioritized(alpha=alpha, epsilon=epsilon)
        return
    twin = Twin(sampler=Prioritized(alpha=alpha, epsilon=epsilon, beta=1.0), capacity=20)
    for t in range(20):
        twin.add([Step(t, 0, 0.0, t + 1, False, False)])
    twin.update(range(len(errors)), errors)
    for _ in range(5):
        batch = twin.sample(10)
        assert batch is not None
        assert np.isfinite(batch.weight).all()
        assert ((batch.row >= 0) & (batch.row < 20)).all()
    assert all(map(math.isfinite, twin.replay.stats().values()))


def test_huge_errors_can_be_saved(tmp_path: Path) -> None:
    twin = Twin(sampler=Prioritized(alpha=3.0), capacity=20)
    for t in range(20):
        twin.add([Step(t, 0, 0.0, t + 1, False, False)])
    twin.update([3, 4], [1e300, -1e300])
    twin.replay.save(tmp_path)
    assert Replay.load(tmp_path).sample(5).row.tolist() == twin.replay.sample(5).row.tolist()


def test_an_update_of_many_rows_and_of_few_is_the_same() -> None:
    """Many at once refresh whole levels of the tree; a few refresh their own branches."""
    twins = [Twin(sampler=Prioritized(), capacity=700) for _ in range(2)]
    rng = np.random.default_rng(0)
    for twin in twins:
        for t in range(700):
            twin.add([Step(t % 100, 0, 0.0, (t + 1) % 100, False, False)])
    errors = rng.normal(size=700).tolist()
    twins[0].update(range(700), errors)
    for row in range(700):
        twins[1].update([row], [errors[row]])
    assert twins[0].replay.sample(500).row.tolist() == twins[1].replay.sample(500).row.tolist()


def test_the_sign_of_an_error_does_not_matter_and_priorities_are_taken_as_they_are() -> None:
    twins = [Twin(sampler=Prioritized(), capacity=5) for _ in range(3)]
    for twin in twins:
        for t in range(5):
            twin.add([Step(t, 0, 0.0, t + 1, False, False)])
    twins[0].replay.update_priorities([0, 1, 2], [3.0, 0.5, 1.0])
    twins[1].replay.update_priorities([0, 1, 2], [-3.0, 0.5, -1.0])
    twins[2].replay.update_priorities([0, 1, 2], priority=[3, 0.5, 1])
    rows = [twin.replay.sample(5).row.tolist() for twin in twins]
    assert rows[0] == rows[1] == rows[2]
