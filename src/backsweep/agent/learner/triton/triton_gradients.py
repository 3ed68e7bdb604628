"""Kernels for the gradients of layers' weights and for the step along them; see `triton_layers`.

STEP, which a step is compiled for, is an `adam.LayerStep`.
"""

from __future__ import annotations

import triton
import triton.language as tl

from backsweep.agent.learner.triton.triton_layers import patch_offsets, patch_starts
from backsweep.agent.learner.triton.triton_optimisers import adam_step


@triton.jit
def weight_gradient(
    inputs,
    inputs_stride,
    gradient,
    undo,
    weight_out,
    bias_out,
    run_stride,
    total,
    PATCHES: tl.constexpr,
    LAST: tl.constexpr,
    TILES: tl.constexpr,
):
    """Write the gradient of a layer's weights and bias, times `undo` of the run."""
    BLOCK_N: tl.constexpr = TILES.n
    BLOCK_K: tl.constexpr = TILES.k
    run = tl.program_id(2).to(tl.int64)
    first_k = tl.program_id(0) * BLOCK_K
    k = first_k + tl.arange(0, BLOCK_K)
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    inputs += run * inputs_stride
    gradient += run * total * PATCHES.outputs
    sums, bias_sums = _products(inputs, gradient, first_k, n, total, PATCHES, LAST, TILES)
    factor = tl.load(undo + run)
    tl.store(
        weight_out + run * run_stride + k[:, None] * PATCHES.outputs + n[None, :],
        sums * factor,
        mask=(k < PATCHES.inner)[:, None] & (n < PATCHES.outputs)[None, :],
    )
    if tl.program_id(0) == 0:
        tl.store(bias_out + run * run_stride + n, tl.sum(bias_sums, axis=0) * factor, mask=n < PATCHES.outputs)


@triton.jit
def _products(inputs, gradient, first_k, n, total, PATCHES: tl.constexpr, LAST: tl.constexpr, TILES: tl.constexpr):
    """Return a tile (K, N) of the gradient of one run's weights, and rows (M, N) whose sum is that of its bias."""
    BLOCK_M: tl.constexpr = TILES.m
    BLOCK_N: tl.constexpr = TILES.n
    BLOCK_K: tl.constexpr = TILES.k
    k = first_k + tl.arange(0, BLOCK_K)
    offsets = patch_offsets(first_k, k, PATCHES, TILES)
    sums = tl.zeros((BLOCK_K, BLOCK_N), tl.float32)
    bias_sums = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for first in range(0, total, BLOCK_M):
        m = first + tl.arange(0, BLOCK_M)
        inside = m < total
        place = m % PATCHES.places
        start = patch_starts(m // PATCHES.places, place, PATCHES)
        found = tl.load(
            inputs + offsets[:, None] + start[None, :], mask=(k < PATCHES.inner)[:, None] & inside[None, :], other=0.0
        )
        flowing = _flowing(gradient, m, n, total, PATCHES)
        if LAST:
            sums = tl.dot(found, flowing, sums, input_precision="ieee")
        else:
            sums = tl.dot(found, flowing, sums)
        bias_sums += flowing.to(tl.float32)
    return sums, bias_sums


@triton.jit
def _flowing(gradient, m, n, total, PATCHES: tl.constexpr):
    """Return the gradient (M, N) of one run's outputs."""
    mask = (m < total)[:, None] & (n < PATCHES.outputs)[None, :]
    return tl.load(gradient + m[:, None] * PATCHES.outputs + n[None, :], mask=mask, other=0.0)


@triton.jit
def weight_step(
    inputs,
    inputs_stride,
    gradient,
    undo,
    weight,
    mean,
    square,
    corrections,
    run_stride,
    total,
    STEP: tl.constexpr,
):
    """Take Adam's step for a linear layer's weights and bias, whose gradient exists in registers only.

    Nothing may read the weights any more: not the forward pass, and not the way back through the layer. Moments lie as
    the parameters do, and `weight`, `mean` and `square` are those of the layer's weights.
    """
    PATCHES: tl.constexpr = STEP.patches
    TILES: tl.constexpr = STEP.tiles
    LAST: tl.constexpr = STEP.last
    ADAM: tl.constexpr = STEP.adam
    BLOCK_M: tl.constexpr = TILES.m
    BLOCK_N: tl.constexpr = TILES.n
    BLOCK_K: tl.constexpr = TILES.k
    run = tl.program_id(2).to(tl.int64)
    first_k = tl.program_id(1) * BLOCK_K
    first_n = tl.program_id(0) * BLOCK_N  # neighbours in memory run at the same time
    n = first_n + tl.arange(0, BLOCK_N)
    inputs += run * inputs_stride
    gradient += run * total * PATCHES.outputs
    weight += run * run_stride
    mean += run * run_stride
    square += run * run_stride
    number = tl.arange(0, BLOCK_K * BLOCK_N)
    row = first_k + number // BLOCK_N
    column = first_n + number % BLOCK_N
    place = row * PATCHES.outputs + column
    inside = (row < PATCHES.inner) & (column < PATCHES.outputs)
    # Asked for before the products, which are done when the memory answers.
    value = tl.load(weight + place, mask=inside, other=0.0)
    old = tl.load(mean + place, mask=inside, other=0.0)
    old_square = tl.load(square + place, mask=inside, other=0.0)
    factor = tl.load(undo + run)
    divisor = tl.load(corrections)
    rate = tl.load(corrections + 1)
    sums, _ = _products(inputs, gradient, first_k, n, total, PATCHES, LAST, TILES)
    # A sum over one number, so that the compiler brings the products to where weights and moments lie. It would do the
    # opposite, and wait for them before the products.
    slope = tl.sum(tl.reshape(sums, (BLOCK_K * BLOCK_N,))[:, None], axis=1) * factor
    value, first, second = adam_step(value, slope, old, old_square, divisor, rate, ADAM)
    tl.store(weight + place, value, mask=inside)
    tl.store(mean + place, first, mask=inside)
    tl.store(square + place, second, mask=inside)
    if first_k == 0:
        # Summed apart: kept along with everything above, the sums would take too many registers.
        bias_sums = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for first_m in range(0, total, BLOCK_M):
            m = first_m + tl.arange(0, BLOCK_M)
            bias_sums += _flowing(gradient, m, n, total, PATCHES).to(tl.float32)
        slope_of_bias = tl.sum(bias_sums, axis=0) * factor
        place_of_bias = STEP.bias + n
        taken = n < PATCHES.outputs
        value_of_bias = tl.load(weight + place_of_bias, mask=taken, other=0.0)
        old_of_bias = tl.load(mean + place_of_bias, mask=taken, other=0.0)
        square_of_bias = tl.load(square + place_of_bias, mask=taken, other=0.0)
        value_of_bias, old_of_bias, square_of_bias = adam_step(
            value_of_bias, slope_of_bias, old_of_bias, square_of_bias, divisor, rate, ADAM
        )
        tl.store(weight + place_of_bias, value_of_bias, mask=taken)
        tl.store(mean + place_of_bias, old_of_bias, mask=taken)
        tl.store(square + place_of_bias, square_of_bias, mask=taken)
