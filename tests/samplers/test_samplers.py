"""Every sampler against its plain-Python twin: same rows, weights and sources for the same seed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backsweep import Uniform
from drive import drive
from strategies import Plan, episodic_backward, mixtures, plans, prioritized


@pytest.mark.kernels
@given(plans(st.just(Uniform())))
def test_uniform(plan: Plan) -> None:
    drive(plan, check_every=10)


@pytest.mark.kernels
@given(plans(prioritized()))
def test_prioritized(plan: Plan) -> None:
    drive(plan, check_every=10)


@pytest.mark.kernels
@given(plans(episodic_backward()))
def test_episodic_backward(plan: Plan) -> None:
    drive(plan, check_every=10)


@pytest.mark.kernels
@given(plans(mixtures()))
def test_mixture(plan: Plan) -> None:
    drive(plan, check_every=10)
