"""Adam's step where a layer's gradient is computed, so that the gradient is never written to memory."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from backsweep.agent.learner.networks import Parameters
from backsweep.agent.learner.optimisers import SMALLEST_SQUARE, OptimiserSettings
from backsweep.agent.learner.triton.layers import Gather
from backsweep.agent.learner.triton.tiles import Tiles


@dataclass(frozen=True)
class AdamConstants:
    """What stays the same from step to step; `fresh` is 1 - beta. Kernels are compiled for them."""

    fresh1: float
    beta2: float
    fresh2: float
    eps: float
    smallest: float


@dataclass(frozen=True)
class LayerStep:
    """What the kernel of a layer's step is compiled for."""

    patches: Gather
    last: bool
    tiles: Tiles
    bias: int
    """How far behind the weights the bias lies, in numbers."""
    adam: AdamConstants


@dataclass(frozen=True)
class AdamStep:
    """One step: Adam's constants, its moments by the parameters' names, and the corrections of this step."""

    constants: AdamConstants
    mean: Parameters
    square: Parameters
    corrections: torch.Tensor


def adam_constants(settings: OptimiserSettings) -> AdamConstants:
    """Return the constants of some settings."""
    return AdamConstants(
        1.0 - settings.adam_beta1,
        settings.adam_beta2,
        1.0 - settings.adam_beta2,
        settings.adam_eps,
        SMALLEST_SQUARE,
    )


def steps_with_gradients(settings: OptimiserSettings) -> bool:
    """Return whether linear layers take their step where their gradient is computed.

    Clipping needs the whole gradient before any step. RMSProp and SGD are not worth a kernel of their own.
    """
    return settings.kind == "adam" and settings.clip_norm is None
