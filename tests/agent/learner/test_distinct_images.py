"""Each distinct image of a batch is evaluated once, and what is learned does not change."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from backsweep.agent.learner.arithmetic import Arithmetic
from backsweep.agent.learner.distinct_images import DistinctArithmetic, wanted_rows
from backsweep.agent.learner.distinct_images_kernels import distinct_rows
from backsweep.agent.learner.double_dqn import Learner, LearnerSettings
from backsweep.agent.learner.networks import Network
from backsweep.agent.learner.rules import TargetRule
from backsweep.types import Batch
from twins import distinct_images as twin

SIZE, SEEDS = 12, (3, 4)
# 11 x 9 x 3 bytes do not divide into words of eight.
NETWORK = Network("image", (11, 9, 3), 4, ((8, 4, 2), (8, 3, 1)), (16,), 1 / 255)
RULES = {
    "one-step": TargetRule(),
    "graph": TargetRule(kind="graph"),
    "half graph": TargetRule(kind="graph", share=0.5),
    "advantage": TargetRule(kind="advantage"),
    "discor": TargetRule(kind="discor"),
    "discor released": TargetRule(kind="discor", error_target=False),
}


@pytest.mark.kernels
@given(st.data())
def test_the_kernel_is_its_twin(data: st.DataObject) -> None:
    half, after = data.draw(st.integers(1, 12)), data.draw(st.integers(0, 12))
    numbers = data.draw(st.lists(st.integers(0, 7), min_size=half + after, max_size=half + after))
    wanted = np.array([True] * half + data.draw(st.lists(st.booleans(), min_size=after, max_size=after)))
    # A weight of zero makes rows with the same last word collide.
    weights = np.array([0, 5 if data.draw(st.booleans()) else 0], np.uint64)
    rows = np.array([[number // 2, number % 2] for number in numbers], np.uint64)
    order, place = np.full(len(rows), -7), np.full(len(rows), -7)
    count = distinct_rows(rows, weights, wanted, half, order, place)
    expected = twin.distinct_rows(numbers, wanted.tolist(), half)
    assert (order[:count].tolist(), place.tolist()) == expected


def _batch(generator: np.random.Generator, pictures: np.ndarray) -> Batch:
    terminated = generator.random(SIZE) < 0.2
    return Batch(
        observation=pictures[generator.integers(0, len(pictures), SIZE)],
        action=generator.integers(0, NETWORK.actions, SIZE),
        reward=generator.normal(size=SIZE).astype(np.float32),
        next_observation=pictures[generator.integers(0, len(pictures), SIZE)],
        terminated=terminated,
        discount=np.where(terminated, 0, 0.99).astype(np.float32),
        weight=generator.random(SIZE).astype(np.float32),
        row=np.arange(SIZE),
        source=np.zeros(SIZE, np.int64),
        steps=np.ones(SIZE, np.int64),
    )


@pytest.mark.parametrize("pictures", [1, 6, 500])
@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_what_is_learned_does_not_change(rule: TargetRule, pictures: int) -> None:
    ours = Learner(NETWORK, rule, LearnerSettings(dtype="float64"), SEEDS)
    plain = Learner(NETWORK, rule, LearnerSettings(dtype="float64"), SEEDS)
    assert isinstance(ours.arithmetic, DistinctArithmetic)
    plain.arithmetic = Arithmetic(NETWORK, None if plain.errors is None else plain.errors.network)
    generator = np.random.default_rng(pictures)
    stored = generator.integers(0, 256, (pictures, *NETWORK.input_shape), np.uint8)
    for update in range(6):
        batches = [_batch(generator, stored) for _ in SEEDS]
        known = None
        if rule.gives_targets:
            known = generator.normal(size=(len(SEEDS), SIZE))
            known[generator.random(known.shape) < (0.0, 0.3, 1.0)[update % 3]] = np.nan
        errors, expected = ours.update(batches, known).td_error, plain.update(batches, known).td_error
        np.testing.assert_allclose(errors, expected, rtol=1e-8, atol=1e-10)
        if update == 3:
            ours.copy_target()
            plain.copy_target()
    torch.testing.assert_close(ours.online, plain.online, rtol=1e-7, atol=1e-9)
    for mine, its in zip(ours.take_statistics(), plain.take_statistics(), strict=True):
        assert mine == pytest.approx(its, rel=1e-8)


def test_only_what_a_target_depends_on_is_evaluated() -> None:
    learner = Learner(NETWORK, TargetRule(kind="graph"), LearnerSettings(), (0,))
    assert isinstance(learner.arithmetic, DistinctArithmetic)
    generator = np.random.default_rng(0)
    pictures = generator.integers(0, 256, (2 * SIZE, *NETWORK.input_shape), np.uint8)
    batch = _batch(generator, pictures)
    batch.observation, batch.next_observation = pictures[:SIZE], pictures[SIZE:]
    batch.discount[:] = 0.99
    known = np.full((1, SIZE), np.nan)
    counts = []
    for missing, ended in ((SIZE, 0), (3, 0), (3, 2)):
        known[0, missing:] = 1.0
        batch.discount[:ended] = 0.0
        learner.update([batch], known)
        counts += learner.arithmetic.images.counts
    assert counts == [2 * SIZE, SIZE + 3, SIZE + 1]
    batch.observation = batch.next_observation = pictures[[0, 1] * (SIZE // 2)]
    learner.update([batch])
    assert learner.arithmetic.images.counts == [2]


def test_successors_count_where_a_given_target_is_only_a_share() -> None:
    discount, known = np.array([[0.9, 0.9, 0.0]] * 2), np.array([[1.0, np.nan, np.nan]] * 2)
    wanted = wanted_rows(discount, known, np.array([1.0, 0.5]), 2)
    assert wanted[:, :3].all()
    assert wanted[:, 3:].tolist() == [[False, True, False], [True, True, False]]
    assert wanted_rows(discount, known, np.ones(2), 1).shape == (2, 3)
