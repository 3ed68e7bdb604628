"""Targets against numbers worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from backsweep.agent.learner.targets import (
    backward_targets,
    discor_error_targets,
    discor_weights,
    double_dqn_targets,
    effective_sample_size,
    huber_gradient,
    huber_loss,
)


def _t(*rows: object) -> torch.Tensor:
    return torch.tensor(rows, dtype=torch.float64)


def test_double_dqn_takes_the_online_networks_action_at_the_target_networks_value() -> None:
    next_online = _t([[1.0, 3.0], [9.0, 2.0]])
    next_target = _t([[10.0, 4.0], [5.0, 6.0]])
    # Row 0: online prefers action 1, worth 4 to the target: 1 + 0.9 * 4. Row 1 is terminal: discount 0.
    result = double_dqn_targets(_t([1.0, -2.0]), _t([0.9, 0.0]), next_online, next_target)
    assert result.tolist() == [[pytest.approx(4.6), -2.0]]


class TestBackwardTargets:
    """Three steps, actions 0, 1, 0; rewards 0, 0, 1; gamma 0.9; the last step terminates.

    Next-state values under the target network: step 0 [2, 1], step 1 [3, 5], step 2 is terminal.
    """

    action = np.array([0, 1, 0])
    reward = np.array([0.0, 0.0, 1.0])
    discount = np.array([0.9, 0.9, 0.0])
    next_target = np.array([[2.0, 1.0], [3.0, 5.0], [7.0, 7.0]])
    next_online = np.array([[0.0, 1.0], [1.0, 0.0], [0.0, 0.0]])

    def test_half_diffusion_by_hand(self) -> None:
        # y2 = 1. table[1][0] = 0.5 * 1 + 0.5 * 3 = 2. y1 = 0.9 * max(2, 5) = 4.5. table[0][1] = 0.5 * 4.5 + 0.5 = 2.75.
        # y0 = 0.9 * max(2, 2.75) = 2.475.
        targets = backward_targets(self.action, self.reward, self.discount, self.next_target, None, 0.5)
        assert targets.tolist() == pytest.approx([2.475, 4.5, 1.0])

    def test_double_selection_by_hand(self) -> None:
        # The online network prefers action 1 after step 0 and action 0 after step 1.
        # y2 = 1. table[1][0] = 2. y1 = 0.9 * table[1][0] = 1.8. table[0][1] = 0.5 * 1.8 + 0.5 * 1 = 1.4. y0 = 1.26.
        targets = backward_targets(self.action, self.reward, self.discount, self.next_target, self.next_online, 0.5)
        assert targets.tolist() == pytest.approx([1.26, 1.8, 1.0])

    def test_no_diffusion_is_the_one_step_target(self) -> None:
        plain = backward_targets(self.action, self.reward, self.discount, self.next_target, self.next_online, 0.0)
        expected = double_dqn_targets(
            torch.tensor(self.reward)[None],
            torch.tensor(self.discount)[None],
            torch.tensor(self.next_online)[None],
            torch.tensor(self.next_target)[None],
        )
        assert plain.tolist() == pytest.approx(expected[0].tolist())

    def test_full_diffusion_carries_the_return_back(self) -> None:
        # All other values are far below, so the best action is always the one taken.
        low = np.full((3, 2), -100.0)
        targets = backward_targets(self.action, self.reward, self.discount, low, None, 1.0)
        assert targets.tolist() == pytest.approx([0.81, 0.9, 1.0])

    def test_a_timeout_bootstraps(self) -> None:
        # Discount 0.9 at the last step: y2 = 1 + 0.9 * 7.
        targets = backward_targets(self.action, self.reward, np.full(3, 0.9), self.next_target, None, 0.5)
        assert targets[2] == pytest.approx(7.3)

    def test_the_target_networks_values_are_left_as_they_are(self) -> None:
        before = self.next_target.copy()
        backward_targets(self.action, self.reward, self.discount, self.next_target, None, 0.5)
        assert np.array_equal(self.next_target, before)

    def test_diffusion_out_of_range(self) -> None:
        with pytest.raises(ValueError, match="diffusion"):
            backward_targets(self.action, self.reward, self.discount, self.next_target, None, 1.5)


def test_discor_weights_by_hand() -> None:
    # Exponents -0.5 * (2, 4, 0) / 2: row 2 terminates, so nothing uncertain comes after it.
    weight = discor_weights(_t([0.5, 0.5, 0.0]), _t([2.0, 4.0, 9.0]), torch.tensor([2.0], dtype=torch.float64))
    parts = [math.exp(-0.5), math.exp(-1.0), 1.0]
    assert weight[0].tolist() == pytest.approx([3 * part / sum(parts) for part in parts])


def test_discor_lanes_have_their_own_temperature() -> None:
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


def test_huber_is_torchs_and_weighted() -> None:
    td = torch.linspace(-3, 3, 13, dtype=torch.float64)[None].requires_grad_()
    weight = torch.linspace(0, 2, 13, dtype=torch.float64)[None]
    expected = (weight * torch.nn.functional.huber_loss(td, torch.zeros_like(td), reduction="none")).mean()
    (gradient,) = torch.autograd.grad(expected, td)
    assert huber_loss(td.detach(), weight).item() == pytest.approx(expected.item())
    torch.testing.assert_close(huber_gradient(td.detach(), weight), gradient)
