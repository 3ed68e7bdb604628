"""Kernels for an optimiser's step."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def adam_step(value, slope, mean, square, divisor, rate, ADAM: tl.constexpr):
    """Return parameters and both moments after one step of Adam along `slope`, with `Optimiser.count`'s corrections."""
    mean = mean + (slope - mean) * ADAM.fresh1
    square = tl.maximum(square * ADAM.beta2 + slope * slope * ADAM.fresh2, ADAM.smallest)
    denominator = tl.sqrt(square) / divisor + ADAM.eps
    return value + rate * (mean / denominator), mean, square


@triton.jit
def adam(parameters, gradient, mean, square, corrections, numbers, run_stride, ADAM: tl.constexpr, BLOCK: tl.constexpr):
    """Take one step of Adam for the first numbers of each run, every number read and written once."""
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = place < numbers
    behind = tl.program_id(1).to(tl.int64) * run_stride
    parameters += behind
    mean += behind
    square += behind
    slope = tl.load(gradient + behind + place, mask=inside, other=0.0)
    old = tl.load(mean + place, mask=inside, other=0.0)
    old_square = tl.load(square + place, mask=inside, other=0.0)
    value = tl.load(parameters + place, mask=inside, other=0.0)
    value, first, second = adam_step(
        value, slope, old, old_square, tl.load(corrections), tl.load(corrections + 1), ADAM
    )
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
