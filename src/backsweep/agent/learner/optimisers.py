"""Adam, RMSProp and plain gradient descent over flat parameters (runs, size).

All three work element by element, so runs are independent. They match torch's own to the last bits (tested), but work
in place on one tensor instead of a list of parameters. On a CPU Adam is one kernel instead of seven operations.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import torch

from backsweep.agent.learner import optimisers_kernels

# Squares of tiny gradients become denormal, which is slow. Their root is negligible compared with eps.
SMALLEST_SQUARE = 1e-36
# On a CPU a mean gradient below this counts as zero, for the same reason; with eps 1e-8 and a learning rate of 1e-3 it
# would move a parameter by 1e-25.
SMALLEST_MEAN = 1e-30

Corrections: TypeAlias = tuple[float, float] | torch.Tensor
"""What `Optimiser.count` returned, or a tensor (2,) of it."""


@dataclass(frozen=True, kw_only=True)
class OptimiserSettings:
    """Which optimiser, and its constants."""

    kind: Literal["adam", "rmsprop", "sgd"] = "adam"
    learning_rate: float = 3e-4
    adam_beta1: float = 0.9
    adam_beta2: float = 0.999
    adam_eps: float = 1e-8
    rmsprop_alpha: float = 0.95
    rmsprop_eps: float = 1e-2
    clip_norm: float | None = None
    """Largest Euclidean norm of a run's gradient; None does not clip."""

    def __post_init__(self) -> None:
        if self.kind not in ("adam", "rmsprop", "sgd"):
            raise ValueError(f"optimiser must be 'adam', 'rmsprop' or 'sgd', got {self.kind!r}")
        if not self.learning_rate > 0:
            raise ValueError(f"learning_rate must be positive, got {self.learning_rate!r}")
        if self.clip_norm is not None and not self.clip_norm > 0:
            raise ValueError(f"clip_norm must be positive or None, got {self.clip_norm!r}")


class Optimiser:
    """The moments of one flat parameter tensor, and the step that uses them."""

    def __init__(self, settings: OptimiserSettings, parameters: torch.Tensor) -> None:
        self.settings = settings
        self.steps = 0
        self.mean = torch.zeros_like(parameters) if settings.kind == "adam" else parameters.new_zeros(0)
        self.square = torch.zeros_like(parameters) if settings.kind != "sgd" else parameters.new_zeros(0)
        self._scratch: torch.Tensor | None = None

    def count(self) -> tuple[float, float]:
        """Count a step; return the two numbers of Adam that change from step to step.

        They are the divisor of the root of the mean square, and the factor of the quotient.
        """
        settings = self.settings
        self.steps += 1
        correction1 = 1.0 - settings.adam_beta1**self.steps
        correction2 = 1.0 - settings.adam_beta2**self.steps
        return correction2**0.5, -settings.learning_rate / correction1

    def apply(self, parameters: torch.Tensor, gradient: torch.Tensor, corrections: Corrections) -> None:
        """Take the step that `count` counted. `corrections` may be a tensor, so that a recorded program can read it."""
        settings = self.settings
        self.clip(gradient)
        if settings.kind == "sgd":
            parameters.add_(gradient, alpha=-settings.learning_rate)
        elif settings.kind == "rmsprop":
            self.square.mul_(settings.rmsprop_alpha).addcmul_(gradient, gradient, value=1.0 - settings.rmsprop_alpha)
            denominator = self._root().add_(settings.rmsprop_eps)
            parameters.addcdiv_(gradient, denominator, value=-settings.learning_rate)
        elif parameters.device.type == "cpu" and not isinstance(corrections, torch.Tensor):
            self._adam_kernel(parameters, gradient, corrections)
        else:
            self.mean.lerp_(gradient, 1.0 - settings.adam_beta1)
            self.square.mul_(settings.adam_beta2).addcmul_(gradient, gradient, value=1.0 - settings.adam_beta2)
            self.square.clamp_(min=SMALLEST_SQUARE)
            denominator = self._root().div_(corrections[0]).add_(settings.adam_eps)
            if isinstance(corrections, torch.Tensor):
                parameters.addcmul_(torch.div(self.mean, denominator, out=denominator), corrections[1])
            else:
                parameters.addcdiv_(self.mean, denominator, value=corrections[1])

    def _adam_kernel(self, parameters: torch.Tensor, gradient: torch.Tensor, corrections: tuple[float, float]) -> None:
        settings = self.settings
        # Runs are rows next to each other, so views of the same memory are enough.
        values, slopes, mean, square = (
            tensor.view(-1).numpy() for tensor in (parameters, gradient, self.mean, self.square)
        )
        betas = 1.0 - settings.adam_beta1, settings.adam_beta2, 1.0 - settings.adam_beta2
        smallest = SMALLEST_MEAN, SMALLEST_SQUARE
        constants = np.array([*betas, settings.adam_eps, *corrections, *smallest], values.dtype)
        optimisers_kernels.adam(values, slopes, mean, square, constants)

    def clip(self, gradient: torch.Tensor) -> None:
        """Clip each run's gradient in place, if the settings say so."""
        if self.settings.clip_norm is not None:
            norm = gradient.norm(dim=1, keepdim=True)
            gradient.mul_((self.settings.clip_norm / (norm + 1e-6)).clamp_(max=1.0))

    def _root(self) -> torch.Tensor:
        if self._scratch is None or self._scratch.shape != self.square.shape:
            self._scratch = torch.empty_like(self.square)
        return torch.sqrt(self.square, out=self._scratch)

    def of_runs(self, runs: slice) -> Optimiser:
        """Return the optimiser of some runs, with the same memory."""
        view = copy.copy(self)
        view.mean = self.mean[runs] if self.mean.numel() else self.mean
        view.square = self.square[runs] if self.square.numel() else self.square
        view._scratch = None
        return view

    def keep(self, runs: torch.Tensor) -> None:
        """Keep some runs only."""
        self.mean = self.mean[runs].clone() if self.mean.numel() else self.mean
        self.square = self.square[runs].clone() if self.square.numel() else self.square
