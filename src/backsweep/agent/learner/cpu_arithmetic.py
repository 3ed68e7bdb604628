"""The arithmetic of an update on a CPU: networks in torch, the numbers between them in kernels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from numpy.typing import NDArray

from backsweep.agent.learner import update_kernels
from backsweep.agent.learner.arithmetic import Arithmetic, Errors, PreparedRows


class CpuArithmetic(Arithmetic):
    """The plain version, but for TD errors and the loss: two kernels instead of two dozen operations."""

    def errors(
        self, values: torch.Tensor, next_target: torch.Tensor | None, rows: PreparedRows, shares: torch.Tensor
    ) -> Errors:
        """Return the TD errors of values (R, B or 2 B, A), the observations' followed by the successors'."""
        if next_target is None or rows.place is not None:
            return super().errors(values, next_target, rows, shares)
        found, next_action = values.new_empty(3, *rows.action.shape), torch.empty_like(rows.action)
        known = values.new_empty(len(values), 0) if rows.known is None else rows.known
        given = (values, next_target, rows.action, rows.reward, rows.discount, known, shares, found, next_action)
        update_kernels.td_errors(*_arrays(given))
        return Errors(found[0], found[1], found[2], next_action.unsqueeze(-1))

    def gradient(
        self, found: Errors, weight: torch.Tensor, action: torch.Tensor, actions: int, sums: torch.Tensor
    ) -> torch.Tensor:
        """Return the gradient (R, B, A) of the weighted Huber loss, and add this update's `STATISTICS` to `sums`."""
        gradient = weight.new_empty(*weight.shape, actions)
        given = (found.td_error, weight, found.chosen, found.target, action[..., 0], gradient, sums)
        update_kernels.huber_and_statistics(*_arrays(given))
        return gradient


def _arrays(tensors: Sequence[torch.Tensor]) -> Iterator[NDArray[Any]]:
    """Return tensors as arrays: what is written to is contiguous already, and so is not copied."""
    return (tensor.contiguous().numpy() for tensor in tensors)
