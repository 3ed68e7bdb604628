"""Kernels for an optimiser's step."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def adam(
    parameters,
    gradient,
    mean,
    square,
    corrections,
    numbers,
    fresh1,
    beta2,
    fresh2,
    eps,
    smallest,
    BLOCK: tl.constexpr,
):
    """Take one step of Adam, every number read and written once. `fresh` is 1 - beta."""
    place = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = place < numbers
    slope = tl.load(gradient + place, mask=inside, other=0.0)
    old = tl.load(mean + place, mask=inside, other=0.0)
    first = old + (slope - old) * fresh1
    second = tl.load(square + place, mask=inside, other=0.0) * beta2 + slope * slope * fresh2
    second = tl.maximum(second, smallest)
    denominator = tl.sqrt(second) / tl.load(corrections) + eps
    value = tl.load(parameters + place, mask=inside, other=0.0) + tl.load(corrections + 1) * (first / denominator)
    tl.store(mean + place, first, mask=inside)
    tl.store(square + place, second, mask=inside)
    tl.store(parameters + place, value, mask=inside)


@triton.jit
def rmsprop(parameters, gradient, square, numbers, alpha, fresh, eps, rate, BLOCK: tl.constexpr):
    """Take one step of RMSProp, every number read and written once."""
    place = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = place < numbers
    slope = tl.load(gradient + place, mask=inside, other=0.0)
    second = tl.load(square + place, mask=inside, other=0.0) * alpha + slope * slope * fresh
    value = tl.load(parameters + place, mask=inside, other=0.0) - rate * (slope / (tl.sqrt(second) + eps))
    tl.store(square + place, second, mask=inside)
    tl.store(parameters + place, value, mask=inside)
