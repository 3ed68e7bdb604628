"""Adam's kernel against its twin, and what it does with moments that have decayed."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from backsweep.agent.learner.optimisers import SMALLEST_MEAN, SMALLEST_SQUARE, Optimiser, OptimiserSettings
from backsweep.agent.learner.optimisers_kernels import adam
from twins import adam as twin

NUMBERS = st.floats(-10, 10, width=32)


@pytest.mark.kernels
@given(
    st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS, st.floats(0, 10, width=32)), min_size=1, max_size=20),
    st.integers(1, 3000),
    st.sampled_from([np.float32, np.float64]),
)
def test_the_kernel_is_its_twin(rows: list[tuple[float, ...]], step: int, dtype: type[np.floating]) -> None:
    arrays = [np.array(column, dtype) for column in zip(*rows, strict=True)]
    lists = [column.tolist() for column in arrays]
    corrections = ((1 - 0.999**step) ** 0.5, -1e-3 / (1 - 0.9**step))
    constants = np.array([1 - 0.9, 0.999, 1 - 0.999, 1e-8, *corrections, 1e-6, 1e-12], dtype)
    for _ in range(3):
        adam(*arrays, constants)
        twin.adam(*lists, *constants.tolist())
    rtol, atol = (1e-12, 1e-14) if dtype is np.float64 else (1e-4, 1e-5)
    for ours, expected in zip(arrays, lists, strict=True):
        np.testing.assert_allclose(ours, expected, rtol=rtol, atol=atol)


def test_moments_that_have_decayed_do_not_become_denormal() -> None:
    parameters = torch.ones(2, 3)
    optimiser = Optimiser(OptimiserSettings(), parameters)
    optimiser.apply(parameters, torch.tensor([[1.0, 1.0, 1.0], [0.5, 0.5, 0.5]]), optimiser.count())
    before = parameters.clone()
    for _ in range(1000):
        optimiser.apply(parameters, torch.zeros(2, 3), optimiser.count())
    assert optimiser.mean.tolist() == [[0.0] * 3] * 2
    assert float(optimiser.square.min()) >= SMALLEST_SQUARE
    assert float(before.max() - parameters.min()) < 0.01  # what was learned is still there
    optimiser.mean.fill_(10 * SMALLEST_MEAN)
    optimiser.apply(parameters, torch.zeros(2, 3), optimiser.count())
    assert optimiser.mean.tolist() == [[pytest.approx(9 * SMALLEST_MEAN, rel=1e-5)] * 3] * 2


def test_a_gradient_that_is_not_a_number_is_not_hidden() -> None:
    parameters = torch.ones(1, 2)
    optimiser = Optimiser(OptimiserSettings(), parameters)
    optimiser.apply(parameters, torch.tensor([[torch.nan, 1.0]]), optimiser.count())
    assert parameters.isnan().tolist() == [[True, False]]
