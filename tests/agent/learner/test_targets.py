"""Targets against numbers worked out by hand."""

from __future__ import annotations

import math

import pytest
import torch

from backsweep.agent.learner.targets import (
    discor_error_targets,
    discor_weights,
    double_dqn_targets,
    effective_sample_size,
    huber_gradient,
    huber_loss,
    imitation_gradient,
)


def _t(*rows: object) -> torch.Tensor:
    return torch.tensor(rows, dtype=torch.float64)


def test_double_dqn_takes_the_online_networks_action_at_the_target_networks_value() -> None:
    next_online = _t([[1.0, 3.0], [9.0, 2.0]])
    next_target = _t([[10.0, 4.0], [5.0, 6.0]])
    # Row 0: online prefers action 1, worth 4 to the target: 1 + 0.9 * 4. Row 1 is terminal: discount 0.
    result = double_dqn_targets(_t([1.0, -2.0]), _t([0.9, 0.0]), next_online, next_target)
    assert result.tolist() == [[pytest.approx(4.6), -2.0]]


def test_discor_weights_by_hand() -> None:
    # Exponents -0.5 * (2, 4, 0) / 2: row 2 terminates, so nothing uncertain comes after it.
    weight = discor_weights(_t([0.5, 0.5, 0.0]), _t([2.0, 4.0, 9.0]), torch.tensor([2.0], dtype=torch.float64))
    parts = [math.exp(-0.5), math.exp(-1.0), 1.0]
    assert weight[0].tolist() == pytest.approx([3 * part / sum(parts) for part in parts])


def test_discor_runs_have_their_own_temperature() -> None:
    both = discor_weights(_t([1.0, 1.0], [1.0, 1.0]), _t([0.0, 1.0], [0.0, 1.0]), torch.tensor([1.0, 10.0]).double())
    assert both[1, 0] < both[0, 0]
    assert both.mean(dim=1).tolist() == pytest.approx([1.0, 1.0])


def test_discor_weights_survive_huge_errors() -> None:
    weight = discor_weights(_t([1.0, 1.0]), _t([1e30, 2e30]), torch.tensor([10.0], dtype=torch.float64))
    assert weight.tolist() == [[2.0, 0.0]]
    assert effective_sample_size(weight).tolist() == [1.0]


def test_discor_error_targets_by_hand() -> None:
    result = discor_error_targets(_t([-2.0, 0.5]), _t([0.9, 0.0]), _t([10.0, 10.0]))
    assert result.tolist() == [[11.0, 0.5]]


def test_effective_sample_size() -> None:
    assert effective_sample_size(_t([1.0, 1.0, 1.0, 1.0], [3.0, 1.0, 0.0, 0.0])).tolist() == pytest.approx([4.0, 1.6])


def test_imitation_is_the_cross_entropy_over_tried_actions() -> None:
    values = _t([[1.0, 2.0, 3.0], [0.5, -1.0, 2.0], [4.0, 5.0, 6.0]]).requires_grad_()
    tried = _t([[0.2, 0.1, math.nan], [math.nan, 3.0, math.nan], [math.nan, math.nan, math.nan]])
    wanted = torch.softmax(tried[0, 0, :2] / 0.1, dim=0)
    loss = -(wanted * torch.log_softmax(values[0, 0, :2], dim=0)).sum() / 3  # the mean over three rows
    loss.backward()  # a row with one tried action or none prefers nothing
    assert values.grad is not None
    found = imitation_gradient(values.detach(), tried, 0.1)
    torch.testing.assert_close(found, values.grad)
    assert found[0, 1:].abs().sum() == 0


def test_huber_is_torchs_and_weighted() -> None:
    td = torch.linspace(-3, 3, 13, dtype=torch.float64)[None].requires_grad_()
    weight = torch.linspace(0, 2, 13, dtype=torch.float64)[None]
    expected = (weight * torch.nn.functional.huber_loss(td, torch.zeros_like(td), reduction="none")).mean()
    (gradient,) = torch.autograd.grad(expected, td)
    assert huber_loss(td.detach(), weight).item() == pytest.approx(expected.item())
    torch.testing.assert_close(huber_gradient(td.detach(), weight), gradient)
