"""Distributions that never wait for the GPU.

A CUDA graph cannot hold a wait, nor a copy of a number from Python's memory. Three places in `torch.distributions` have
one: `torch.multinomial` asks the GPU whether its probabilities are valid, `Normal` sends its scale, and the divergence
of categorical distributions assigns through a mask. These do the same without.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch.distributions import Categorical, Distribution, kl, normal

_sample: Any = Categorical.sample


def draw(self: Categorical, sample_shape: Any = ()) -> torch.Tensor:
    """Draw as `Categorical.sample`: the class with the largest p / e, for exponential e, comes with probability p."""
    if sample_shape:
        drawn: torch.Tensor = _sample(self, sample_shape)
        return drawn
    return (self.probs / torch.empty_like(self.probs).exponential_(1.0)).argmax(dim=-1)


def alike(*values: Any) -> tuple[torch.Tensor, ...]:
    """Return numbers and tensors as tensors of one shape; a number is written by the device itself."""
    first = next(value for value in values if isinstance(value, torch.Tensor))
    tensors = (
        value if isinstance(value, torch.Tensor) else torch.full((), value, dtype=first.dtype, device=first.device)
        for value in values
    )
    return torch.broadcast_tensors(*tensors)  # type: ignore[no-any-return, no-untyped-call]


def divergence(p: Categorical, q: Categorical) -> torch.Tensor:
    """Return the Kullback-Leibler divergence of q from p."""
    terms = p.probs * (p.logits - q.logits)
    terms = terms.masked_fill(q.probs == 0, math.inf).masked_fill(p.probs == 0, 0.0)
    return terms.sum(-1)


def install() -> None:
    """Use these in this process, and do not check the arguments of distributions."""
    Categorical.sample = draw  # type: ignore[method-assign]
    normal.broadcast_all = alike  # type: ignore[attr-defined]
    kl._kl_categorical_categorical = divergence
    Distribution.set_default_validate_args(False)
