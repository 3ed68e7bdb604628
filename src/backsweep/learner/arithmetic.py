"""The arithmetic of an update, in pieces that a faster implementation can take the place of.

`Arithmetic` is the plain version in torch, the same on every device; `fused` does the same with kernels of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch

from backsweep.learner.networks import Network, Parameters, Tape
from backsweep.learner.optimisers import Corrections, Optimiser
from backsweep.learner.targets import double_dqn_targets, effective_sample_size, huber_gradient, huber_loss

STATISTICS = ("loss", "absolute_td_error", "batch_q", "batch_target", "effective_sample_size")
"""What is averaged over updates between two training records. `batch_q` is the mean Q of the method's own batches."""


@dataclass(frozen=True)
class PreparedRows:
    """What one update learns from, on the device. L lanes, B rows of a batch."""

    prepared: torch.Tensor
    """What the networks take: observations, and behind them their successors if there are two halves."""
    halves: int
    action: torch.Tensor
    """(L, B), as are all that follow."""
    reward: torch.Tensor
    discount: torch.Tensor
    weight: torch.Tensor
    known: torch.Tensor | None
    """Targets that were worked out beforehand, NaN where the one-step target is wanted; without a second half there
    are no NaNs."""


@dataclass(frozen=True)
class Errors:
    """How far the values are from their targets, (L, B)."""

    chosen: torch.Tensor
    target: torch.Tensor
    td_error: torch.Tensor
    next_action: torch.Tensor | None
    """(L, B, 1): the online network's best action of each successor, where there are successors."""


class Evaluates(Protocol):
    """What an update asks of a network."""

    def forward(self, parameters: Parameters, prepared: torch.Tensor) -> torch.Tensor:
        """Return the values (L, B, A) of prepared observations."""
        ...

    def forward_with_tape(self, parameters: Parameters, prepared: torch.Tensor) -> tuple[torch.Tensor, Tape]:
        """Return the values (L, B, A) and what `backward` needs."""
        ...

    def backward(self, parameters: Parameters, tape: Tape, gradient: torch.Tensor, out: Parameters) -> None:
        """Write the gradient of every parameter into `out`, given the gradient (L, B, A) of the values."""
        ...


class Arithmetic:
    """The plain version, in torch."""

    network: Evaluates
    error_network: Evaluates

    def __init__(self, network: Network, error_network: Network | None) -> None:
        self.network = network
        self.error_network = network if error_network is None else error_network

    def errors(self, values: torch.Tensor, next_target: torch.Tensor | None, rows: PreparedRows) -> Errors:
        """Return the TD errors of values (L, B or 2 B, A), the successors' behind the observations'."""
        size = rows.action.shape[1]
        chosen = values[:, :size].gather(-1, rows.action.unsqueeze(-1)).squeeze(-1)
        if next_target is None:
            assert rows.known is not None
            return Errors(chosen, rows.known, chosen - rows.known, None)
        next_online = values[:, size:]
        target = double_dqn_targets(rows.reward, rows.discount, next_online, next_target)
        if rows.known is not None:
            target = torch.where(rows.known.isnan(), target, rows.known)
        return Errors(chosen, target, chosen - target, next_online.argmax(dim=-1, keepdim=True))

    def gradient(
        self, found: Errors, weight: torch.Tensor, action: torch.Tensor, actions: int, sums: torch.Tensor
    ) -> torch.Tensor:
        """Return the gradient (L, B, A) of the weighted Huber loss, and add this update's `STATISTICS` to `sums`."""
        gradient = weight.new_zeros(*weight.shape, actions)
        gradient.scatter_(-1, action, huber_gradient(found.td_error, weight).unsqueeze(-1))
        numbers = (
            huber_loss(found.td_error, weight),
            found.td_error.abs().mean(dim=1),
            found.chosen.mean(dim=1),
            found.target.mean(dim=1),
            effective_sample_size(weight),
        )
        sums += torch.stack(numbers, dim=1)
        return gradient

    def step(
        self, optimiser: Optimiser, parameters: torch.Tensor, gradient: torch.Tensor, corrections: Corrections
    ) -> None:
        """Let the optimiser change `parameters` along `gradient`."""
        optimiser.apply(parameters, gradient, corrections)
