"""The arithmetic of an update, in parts that a faster implementation can replace.

`Arithmetic` is the plain version in torch, the same on every device; `cpu_arithmetic` and `triton` have kernels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch

from backsweep.agent.learner.branches import Branch
from backsweep.agent.learner.networks import Network, Parameters, Tape
from backsweep.agent.learner.optimisers import Corrections, Optimiser
from backsweep.agent.learner.packed_arrays import PackedArrays, copy
from backsweep.agent.learner.targets import (
    discor_error_targets,
    discor_weights,
    double_dqn_targets,
    effective_sample_size,
    huber_gradient,
    huber_loss,
)

STATISTICS = ("loss", "absolute_td_error", "batch_q", "batch_target", "effective_sample_size")
"""Statistics averaged over updates between two training records. `batch_q` is the mean Q of the method's batches."""
IN_UNITS = ("absolute_td_error", "batch_q", "batch_target")
"""The statistics in the rewards' units. The loss is that of the scaled rewards."""


@dataclass(frozen=True)
class PreparedRows:
    """The data of one update, on the device. R runs, B rows of a batch."""

    prepared: torch.Tensor
    """The networks' inputs: the batch's observations, followed by successors."""
    successors: int
    """How many successors follow: as many as there are rows, none, or fewer, if `place` says whose they are."""
    action: torch.Tensor
    """(R, B), as are all that follow."""
    reward: torch.Tensor
    discount: torch.Tensor
    weight: torch.Tensor
    known: torch.Tensor | None
    """Targets computed before the update, NaN for rows that need the one-step target; without successors there are no
    NaNs."""
    tried: torch.Tensor | None = None
    """(R, B, A): the graph's values of tried actions, NaN for others; only for rules that imitate them."""
    place: torch.Tensor | None = None
    """Which of the successors is each row's, any of them for rows whose target is known; None if they are in order."""


@dataclass(frozen=True)
class Errors:
    """Values, targets and TD errors, (R, B)."""

    chosen: torch.Tensor
    target: torch.Tensor
    td_error: torch.Tensor
    next_action: torch.Tensor | None
    """(R, B, 1): the online network's best action of each successor, where there are successors."""


@dataclass(frozen=True)
class Looked:
    """The outputs of DisCor's error networks for a batch, before they learn from it."""

    values: torch.Tensor
    """(R, B, A) of the observations, by the online network."""
    tape: Tape
    following: torch.Tensor
    """(R, B, A) of the successors."""
    temperature: torch.Tensor
    """(R,)."""
    prediction_sum: torch.Tensor
    """(R,): to which the mean prediction is to be added."""
    chosen_next: bool
    """Whether the error of a successor is that of the action that the Q-network would take there, or the largest."""


@dataclass(frozen=True)
class Trained:
    """Networks that learn: their parameters (R, size), room for the gradient, both by name too, and the optimiser."""

    parameters: torch.Tensor
    views: Parameters
    gradient: torch.Tensor
    gradient_views: Parameters
    optimiser: Optimiser


class Evaluates(Protocol):
    """The interface of a network in an update."""

    def forward(self, parameters: Parameters, prepared: torch.Tensor) -> torch.Tensor:
        """Return the values (R, B, A) of prepared observations."""

    def forward_with_tape(self, parameters: Parameters, prepared: torch.Tensor) -> tuple[torch.Tensor, Tape]:
        """Return the values (R, B, A) and what `backward` needs."""

    def backward(self, parameters: Parameters, tape: Tape, gradient: torch.Tensor, out: Parameters) -> None:
        """Write the gradient of every parameter into `out`, given the gradient (R, B, A) of the values."""


class Arithmetic:
    """The plain version, in torch."""

    network: Evaluates
    error_network: Evaluates

    def __init__(self, network: Network, error_network: Network | None) -> None:
        self.network = network
        self.error_network = network if error_network is None else error_network
        in_order = torch.device("cpu")
        self.target_branch, self.error_branch = Branch(in_order), Branch(in_order)

    @property
    def learning_network(self) -> Evaluates:
        """The network in an update, which may take other inputs than that of acts and values."""
        return self.network

    def move(self, source: torch.Tensor, out: torch.Tensor) -> None:
        """Copy between the device and the host's page-locked memory, in the order of the current stream."""
        copy(source, out)

    def act(self, parameters: Parameters, prepared: torch.Tensor, best: PackedArrays) -> None:
        """Write the best actions for one row of each run to `best` of the host's arrays."""
        values = self.network.forward(parameters, prepared)
        torch.argmax(values[:, 0], dim=-1, out=best.device["best"])
        best.fetch()

    def errors(
        self, values: torch.Tensor, next_target: torch.Tensor | None, rows: PreparedRows, shares: torch.Tensor
    ) -> Errors:
        """Return the TD errors of values (R, B + S, A), the observations' followed by the successors'.

        `next_target` (R, S, A) are the successors' by the target network, None if there are none. `shares` (R,) are the
        runs' shares of given targets; the rest of a target is the one-step one.
        """
        size = rows.action.shape[1]
        chosen = values[:, :size].gather(-1, rows.action.unsqueeze(-1)).squeeze(-1)
        if next_target is None:
            assert rows.known is not None
            return Errors(chosen, rows.known, chosen - rows.known, None)
        next_online = values[:, size:]
        if rows.place is not None:
            place = rows.place.unsqueeze(-1)
            next_online, next_target = (of.take_along_dim(place, dim=1) for of in (next_online, next_target))
        target = double_dqn_targets(rows.reward, rows.discount, next_online, next_target)
        if rows.known is not None:
            share = shares[:, None]
            target = torch.where(rows.known.isnan(), target, share * rows.known + (1.0 - share) * target)
        return Errors(chosen, target, chosen - target, next_online.argmax(dim=-1, keepdim=True))

    def gradient(
        self, found: Errors, weight: torch.Tensor, action: torch.Tensor, actions: int, sums: torch.Tensor
    ) -> torch.Tensor:
        """Return the gradient (R, B, A) of the weighted Huber loss, and add this update's `STATISTICS` to `sums`."""
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

    def weigh(self, looked: Looked, rows: PreparedRows, found: Errors) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the rows' weights times DisCor's (R, B), and the gradient (R, B, A) of the error networks' loss."""
        action = rows.action.unsqueeze(-1)
        predicted = looked.values.gather(-1, action).squeeze(-1)
        if looked.chosen_next:
            assert found.next_action is not None
            next_error = looked.following.gather(-1, found.next_action).squeeze(-1)
        else:
            next_error = looked.following.amax(dim=-1)
        weight = rows.weight * discor_weights(rows.discount, next_error, looked.temperature)
        difference = predicted - discor_error_targets(found.td_error, rows.discount, next_error)
        slope = 2.0 / rows.action.shape[1] * difference
        looked.prediction_sum.add_(predicted.mean(dim=1))
        return weight, torch.zeros_like(looked.values).scatter_(-1, action, slope.unsqueeze(-1))

    def descend(
        self, network: Evaluates, trained: Trained, tape: Tape, gradient: torch.Tensor, corrections: Corrections
    ) -> None:
        """Take the optimiser's step, given the gradient (R, B, A) of the values.

        What is left in `trained.gradient` is undefined.
        """
        network.backward(trained.views, tape, gradient, trained.gradient_views)
        trained.optimiser.apply(trained.parameters, trained.gradient, corrections)
