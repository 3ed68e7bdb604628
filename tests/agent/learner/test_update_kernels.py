"""The CPU's kernels for TD errors and the loss, against their twins and against torch."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from backsweep.agent.learner.arithmetic import STATISTICS, Arithmetic, Errors, PreparedRows
from backsweep.agent.learner.cpu_arithmetic import CpuArithmetic
from backsweep.agent.learner.double_dqn import Learner, LearnerSettings
from backsweep.agent.learner.networks import Network
from backsweep.agent.learner.rules import TargetRule
from backsweep.agent.learner.successors_kernels import gather_needed
from backsweep.agent.learner.update_kernels import huber_and_statistics, td_errors
from twins import update as twin

SHAPES = st.tuples(st.integers(1, 3), st.integers(1, 5), st.integers(1, 4))


@pytest.mark.kernels
@given(SHAPES, st.integers(0, 2**32 - 1), st.booleans(), st.sampled_from([np.float32, np.float64]))
def test_errors_are_those_of_the_twin(
    shape: tuple[int, int, int], seed: int, gives: bool, dtype: type[np.floating]
) -> None:
    (runs, size, actions), rng = shape, np.random.default_rng(seed)
    values, next_target = (rng.normal(size=(runs, n * size, actions)).astype(dtype) for n in (2, 1))
    action = rng.integers(actions, size=(runs, size))
    reward, discount = (rng.normal(size=(runs, size)).astype(dtype) for _ in range(2))
    known = np.where(rng.random((runs, size)) < 0.5, np.nan, rng.normal(size=(runs, size))).astype(dtype)
    shares = rng.random(runs).astype(dtype)
    out, best = np.empty((3, runs, size), dtype), np.empty((runs, size), np.int64)
    td_errors(values, next_target, action, reward, discount, known if gives else known[:, :0].copy(), shares, out, best)
    for run in range(runs):
        numbers = (array[run].tolist() for array in (values, next_target, action, reward, discount))
        given_targets = known[run].tolist() if gives else None
        chosen, targets, expected = twin.td_errors(*numbers, given_targets, float(shares[run]))
        np.testing.assert_array_equal(best[run], expected)
        np.testing.assert_allclose(out[0, run], chosen)
        np.testing.assert_allclose(out[1, run], targets, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(out[2], out[0] - out[1])


@pytest.mark.kernels
@given(SHAPES, st.integers(0, 2**32 - 1), st.sampled_from([np.float32, np.float64]))
def test_loss_and_gradient_are_those_of_the_twin(
    shape: tuple[int, int, int], seed: int, dtype: type[np.floating]
) -> None:
    (runs, size, actions), rng = shape, np.random.default_rng(seed)
    error, chosen, target = (2 * rng.normal(size=(runs, size)).astype(dtype) for _ in range(3))
    weight, action = rng.uniform(0.1, 1, (runs, size)).astype(dtype), rng.integers(actions, size=(runs, size))
    gradient, sums = np.full((runs, size, actions), 7, dtype), np.ones((runs, len(STATISTICS)))
    huber_and_statistics(error, weight, chosen, target, action, gradient, sums)
    for run in range(runs):
        numbers = (array[run].tolist() for array in (error, weight, chosen, target, action))
        expected, statistics = twin.huber_and_statistics(*numbers, actions)
        np.testing.assert_allclose(gradient[run], expected, rtol=1e-5, atol=1e-7)
        np.testing.assert_allclose(sums[run] - 1, statistics, rtol=1e-5, atol=1e-5)


@pytest.mark.kernels
def test_a_value_that_is_no_number_makes_an_error_that_is_none() -> None:
    values, out = np.zeros((1, 2, 3)), np.empty((3, 1, 1))
    values[0, 1, 1] = np.nan
    best, none = np.empty((1, 1), np.int64), np.empty((1, 0))
    following = np.array([[[0.0, np.nan, 0.0]]])
    td_errors(values, following, np.zeros((1, 1), np.int64), *np.ones((2, 1, 1)), none, np.ones(1), out, best)
    assert best[0, 0] == 1
    assert np.isnan(out[2, 0, 0])


@pytest.mark.kernels
@given(SHAPES, st.integers(0, 2**32 - 1), st.floats(0, 1), st.sampled_from([np.float32, np.float64]))
def test_needed_successors_are_those_of_the_twin(
    shape: tuple[int, int, int], seed: int, missing: float, dtype: type[np.floating]
) -> None:
    (runs, size, places), rng = shape, np.random.default_rng(seed)
    rows = rng.permutation(runs * 2 * size).reshape(runs, 2, size)
    discount = np.where(rng.random((runs, size)) < 0.3, 0, 0.9).astype(dtype)
    targets = np.where(rng.random((runs, size)) < missing, np.nan, 1.0).astype(dtype)
    shares = np.where(rng.random(runs) < 0.2, 0.5, 1.0)
    images, place = np.full((runs, size + places), -1), np.full((runs, size), -1)
    needed = [
        twin.needed_successors(*(array[run].tolist() for array in (discount, targets)), shares[run])
        for run in range(runs)
    ]
    fits = gather_needed(rows, discount, targets, shares, images, place)
    assert fits == all(len(of_run) <= places for of_run in needed)
    if fits:
        np.testing.assert_array_equal(images[:, :size], rows[:, 0])
        assert np.isin(images, rows).all()
        assert ((place >= 0) & (place < places)).all()
        for run, of_run in enumerate(needed):
            np.testing.assert_array_equal(images[run, size + place[run, of_run]], rows[run, 1, of_run])


def test_an_update_with_few_successors_is_the_whole_one() -> None:
    network, rule, rng = Network("vector", (4,), 3, (), (16,)), TargetRule(kind="graph"), np.random.default_rng(0)
    learners = [Learner(network, rule, LearnerSettings(dtype="float64"), (5, 6)) for _ in range(2)]
    shape, places = (2, 8), 4
    seen = torch.from_numpy(rng.normal(size=(32, 4)))
    rows, action = rng.permutation(32).reshape(2, 2, 8), torch.from_numpy(rng.integers(3, size=shape))
    reward, weight, targets = (torch.from_numpy(rng.random(shape)) for _ in range(3))
    discount = torch.full(shape, 0.9, dtype=torch.float64)
    targets[0, 1], targets[1, 3:7], discount[1, 2] = torch.nan, torch.nan, 0.0
    images, place = np.empty((2, 8 + places), np.int64), np.empty(shape, np.int64)
    assert gather_needed(rows, discount.numpy(), targets.numpy(), np.ones(2), images, place)
    numbers = action, reward, discount, weight, targets, None
    whole = PreparedRows(seen[torch.from_numpy(rows).flatten(1)], 8, *numbers)
    short = PreparedRows(seen[torch.from_numpy(images)], places, *numbers, torch.from_numpy(place))
    for learner in learners:
        learner.target.copy_(torch.from_numpy(np.random.default_rng(1).normal(size=learner.target.shape)))
    errors = [
        learner.learn(learner.arithmetic, batch, learner.count())
        for learner, batch in zip(learners, (whole, short), strict=True)
    ]
    torch.testing.assert_close(errors[1], errors[0])
    torch.testing.assert_close(learners[1].online, learners[0].online)


def test_the_cpu_computes_what_torch_does_on_other_devices() -> None:
    generator = torch.Generator().manual_seed(0)
    runs, size, actions = 2, 16, 3
    values, next_target = (torch.randn(runs, n * size, actions, generator=generator) for n in (2, 1))
    action = torch.randint(actions, (runs, size), generator=generator)
    reward, discount, weight, known = (torch.rand(runs, size, generator=generator) for _ in range(4))
    known[0, :8] = torch.nan
    rows, shares = PreparedRows(values, size, action, reward, discount, weight, known), torch.tensor([0.2, 1.0])

    def computed(kind: type[Arithmetic]) -> tuple[Errors, torch.Tensor, torch.Tensor]:
        arithmetic = kind(Network("vector", (4,), actions), None)
        sums = torch.zeros(runs, len(STATISTICS), dtype=torch.float64)
        found = arithmetic.errors(values, next_target, rows, shares)
        return found, arithmetic.gradient(found, weight, action.unsqueeze(-1), actions, sums), sums

    ours, expected = computed(CpuArithmetic), computed(Arithmetic)
    for name in ("chosen", "target", "td_error", "next_action"):
        torch.testing.assert_close(getattr(ours[0], name), getattr(expected[0], name))
    torch.testing.assert_close(ours[1:], expected[1:], rtol=1e-5, atol=1e-6)
