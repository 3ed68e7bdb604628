"""Mixture: whole shares of each batch, and exact ones in the long run."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from backsweep import Mixture, Prioritized, Replay, Topological, Uniform
from backsweep.samplers.base import Experience, LiveSampler
from backsweep.samplers.mixture import LiveMixture
from backsweep.types import Picks
from strategies import examples
from twins.replay import Twin
from twins.store import Step


def live(shares: list[float], capacity: int = 100) -> LiveMixture:
    twin = Twin(sampler=Mixture([(share, Uniform()) for share in shares]), capacity=capacity)
    twin.add([Step(0, 0, 0.0, 1, False, False)])
    sampler = twin.replay._sampler
    assert isinstance(sampler, LiveMixture)
    return sampler


@settings(max_examples=examples(300))
@given(
    st.lists(st.integers(0, 10), min_size=1, max_size=8).filter(any),
    st.lists(st.integers(1, 9), min_size=1, max_size=60),
)
@example([1, 6, 6, 1, 6], [4, 4, 2])  # rounded down, the last batch's shares add up to 3
def test_shares_are_whole_add_up_and_are_fair(cuts: list[int], batches: list[int]) -> None:
    sampler = live([cut / sum(cuts) for cut in cuts])
    given_so_far = np.zeros(len(cuts), np.int64)
    for number, batch in enumerate(batches):
        counts = sampler.split(batch)
        assert sum(counts) == batch
        assert min(counts) >= 0
        assert all(count == 0 for count, cut in zip(counts, cuts, strict=True) if cut == 0)
        given_so_far += np.array(counts)
        due = [Fraction(cut, sum(cuts)) * sum(batches[: number + 1]) for cut in cuts]
        assert all(abs(amount - int(got)) < 2 for amount, got in zip(due, given_so_far, strict=True))


def test_a_batch_that_divides_evenly_is_divided_evenly() -> None:
    sampler = live([0.5, 0.3, 0.2])
    for _ in range(50):
        assert sampler.split(10) == [5, 3, 2]


def test_a_remainder_goes_round() -> None:
    sampler = live([1 / 3, 1 / 3, 1 / 3])
    counts = np.array([sampler.split(64) for _ in range(3 * 50)])
    assert counts.sum(axis=0).tolist() == [3200, 3200, 3200]
    assert set(counts.reshape(-1).tolist()) == {21, 22}


def test_rows_come_from_the_part_that_source_names() -> None:
    twin = Twin(sampler=Mixture([(0.25, Topological()), (0.75, Prioritized())]), capacity=50)
    for t in range(50):
        twin.add([Step(t % 9, 0, 0.0, (t + 1) % 9, t % 9 == 7, False)])
    batch = twin.sample(8)
    assert batch is not None
    assert batch.source.tolist() == [0] * 2 + [1] * 6
    assert (batch.weight[:2] == 1).all()


def test_priorities_reach_the_parts_that_use_them_whoever_picked_the_row() -> None:
    mixture = Mixture([(0.5, Uniform()), (0.25, Prioritized(alpha=1.0)), (0.25, Prioritized(alpha=0.0))])
    twin = Twin(sampler=mixture, capacity=10)
    for t in range(10):
        twin.add([Step(t, 0, 0.0, t + 1, False, False)])
    batch = twin.sample(8)
    assert batch is not None
    twin.update(batch.row.tolist(), [float(row) for row in batch.row])
    sampler = twin.replay._sampler
    assert isinstance(sampler, LiveMixture)
    assert sampler.uses_priorities
    rows = np.unique(batch.row)
    np.testing.assert_allclose(sampler.parts[1].priorities(rows), rows + 0.01)  # type: ignore[attr-defined]
    np.testing.assert_array_equal(sampler.parts[2].priorities(rows), 1.0)  # type: ignore[attr-defined]


def test_parts_are_asked_for_their_share_only() -> None:
    asked = []

    twin = Twin(sampler=Mixture([(0.9, Uniform()), (0.1, Uniform()), (0.0, Uniform())]), capacity=10)
    twin.add([Step(0, 0, 0.0, 1, False, False)])
    sampler = twin.replay._sampler
    assert isinstance(sampler, LiveMixture)
    for part in sampler.parts:
        pick = part.pick_into
        part.pick_into = (  # type: ignore[method-assign]
            lambda row, weight, pick=pick: asked.append(len(row)) or pick(row, weight)  # type: ignore[misc]
        )
    twin.replay.sample(10)
    assert asked == [9, 1]


class Weighing(LiveSampler):
    """A sampler that knows `pick` alone."""

    def pick(self, count: int) -> Picks:
        return Picks(np.full(count, self.experience.oldest), np.full(count, 0.25, np.float32))


@dataclass(frozen=True)
class Weighs:
    needs_graph = False

    def build(self, experience: Experience, generator: np.random.Generator) -> Weighing:
        return Weighing(experience, generator)


def test_a_sampler_that_knows_pick_alone_can_be_a_part() -> None:
    sampler = Mixture([(0.5, Uniform()), (0.5, Weighs())])
    replay = Replay(gym.spaces.Discrete(5), gym.spaces.Discrete(2), capacity=10, sampler=sampler)
    for t in range(3):
        replay.add(t, 0, 0.0, t + 1, False, False)
    for _ in range(3):  # the first batch sets up what the others go by
        batch = replay.sample(4)
        assert batch.weight.tolist() == [1.0, 1.0, 0.25, 0.25]
        assert batch.row[2:].tolist() == [0, 0]
        assert batch.source.tolist() == [0, 0, 1, 1]


@given(st.lists(st.sampled_from([2, 4, 8, 10]), max_size=12))
def test_batches_that_divide_evenly_leave_the_books_alone(sizes: list[int]) -> None:
    picking, keeping_books = live([0.25, 0.75]), live([0.25, 0.75])
    for size in sizes:
        assert np.bincount(picking.pick(size).source, minlength=2).tolist() == keeping_books.split(size)
        assert picking.owed == keeping_books.owed


@pytest.mark.parametrize(
    ("parts", "error", "words"),
    [
        ([], ValueError, "parts must not be empty"),
        ([(0.5, Uniform())], ValueError, "shares must add up to 1"),
        ([(float("nan"), Uniform()), (1.0, Uniform())], ValueError, "share must be 0 or more"),
        ([(-0.5, Uniform()), (1.5, Uniform())], ValueError, "share must be 0 or more"),
        ([(1.0, Uniform)], TypeError, "pairs"),
        ([(1.0, "uniform")], TypeError, "pairs"),
    ],
)
def test_what_a_mixture_refuses(parts: list[tuple[float, object]], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        Mixture(parts)  # type: ignore[arg-type]
