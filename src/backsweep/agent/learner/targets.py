"""Targets of Q-values: pure functions, with worked examples in the tests.

Axes: R runs, B rows of a batch, A actions. `discount` is gamma, and 0 where a
termination stops bootstrapping.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from backsweep.replay import Replay
from backsweep.types import Batch


def discounts(batch: Batch, replay: Replay, bootstrap_at_timeout: bool) -> NDArray[np.float32]:
    """Return the discounts of rows of a replay (B,); unless `bootstrap_at_timeout`, a time limit is an end too."""
    return batch.discount if bootstrap_at_timeout else batch.discount * ~replay.truncated(batch.row, batch.steps)


def double_dqn_targets(
    reward: torch.Tensor, discount: torch.Tensor, next_online: torch.Tensor, next_target: torch.Tensor
) -> torch.Tensor:
    """Return reward + discount * Qt(s', argmax Q(s', .)).

    reward, discount: (R, B); next_online, next_target: (R, B, A); result: (R, B).
    """
    chosen = next_online.argmax(dim=-1, keepdim=True)
    return reward + discount * next_target.gather(-1, chosen).squeeze(-1)


def discor_weights(discount: torch.Tensor, next_error: torch.Tensor, temperature: torch.Tensor) -> torch.Tensor:
    """Return DisCor's weights: softmax over the batch of -discount * Delta(s', a') / temperature, times the batch size.

    discount, next_error: (R, B); temperature: (R,); result: (R, B), each run's weights with a mean of 1.
    """
    return torch.softmax(-discount * next_error / temperature[:, None], dim=1) * discount.shape[1]


def discor_error_targets(td_error: torch.Tensor, discount: torch.Tensor, next_error: torch.Tensor) -> torch.Tensor:
    """Return |Q(s, a) - y| + discount * Delta(s', a'), what the error network is pulled towards; all (R, B)."""
    return td_error.abs() + discount * next_error


def effective_sample_size(weight: torch.Tensor) -> torch.Tensor:
    """Return (sum w)^2 / sum w^2 of each run, (R,): B for equal weights, 1 when one row has it all."""
    return weight.sum(dim=1).square() / weight.square().sum(dim=1)


def imitation_gradient(values: torch.Tensor, tried: torch.Tensor, temperature: float) -> torch.Tensor:
    """Return the gradient of the mean cross-entropy between softmax(tried / temperature) and softmax(values).

    Both are over a row's tried actions, those whose `tried` is not NaN; others have no gradient. All (R, B, A).
    """
    known = ~tried.isnan()
    wanted = torch.softmax(torch.where(known, tried / temperature, -torch.inf), dim=-1)
    found = torch.softmax(torch.where(known, values, -torch.inf), dim=-1)
    return torch.where(known, found - wanted, 0.0) / values.shape[1]


def huber_gradient(td_error: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Return the gradient of mean(weight * huber(td_error)) over the batch, (R, B)."""
    return td_error.clamp(-1.0, 1.0) * weight / td_error.shape[1]


def huber_loss(td_error: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Return mean(weight * huber(td_error)) of each run, (R,); the Huber loss turns linear at 1."""
    size = td_error.abs()
    inner = size.clamp(max=1.0)
    return (weight * (inner * (size - 0.5 * inner))).mean(dim=1)
