"""Kernels for the layers of many lanes' networks on a GPU.

A layer is a convolution without patches in memory: row m of its matrix of patches is a place in a picture, column k a
number of the patch, and where the number lies is the sum of a term of m and a term of k:

    place of (m, k) = image(m) + (y(m) * pitch + x(m)) * stride + (k // run) * pitch + k % run

with `run` the numbers of one row of a patch and `pitch` those of one row of a picture. A linear layer is the same with
one place and one run. Everywhere lanes are the last axis of the grid, and no two programs write the same number, so
results do not depend on the order in which programs run.
"""

from __future__ import annotations

import triton
import triton.language as tl

LARGEST_HALF = tl.constexpr(65504.0)


@triton.jit
def forward(
    inputs,
    inputs_stride,
    weight,
    bias,
    lane_stride,
    out,
    total,
    IMAGE: tl.constexpr,
    PITCH: tl.constexpr,
    STEP_Y: tl.constexpr,
    STEP_X: tl.constexpr,
    RUN: tl.constexpr,
    INNER: tl.constexpr,
    ACROSS: tl.constexpr,
    PLACES: tl.constexpr,
    OUTPUTS: tl.constexpr,
    RELU: tl.constexpr,
    EXACT: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    REPEATS: tl.constexpr,
):
    """Apply a layer: products of half-precision numbers, or with EXACT of single-precision ones.

    With REPEATS a program keeps its weights and goes over so many blocks of rows; else it reads them as it goes.
    """
    lane = tl.program_id(2).to(tl.int64)
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    inputs += lane * inputs_stride
    weight += lane * lane_stride
    added = tl.load(bias + lane * lane_stride + n, mask=n < OUTPUTS, other=0.0)
    weights = ()
    if REPEATS > 0:
        for first in tl.static_range(0, INNER, BLOCK_K):
            kept = _weights(weight, first + tl.arange(0, BLOCK_K), n, INNER, OUTPUTS, BLOCK_K)
            weights = weights + (kept.to(tl.float16),)
    ROUNDS: tl.constexpr = REPEATS if REPEATS > 0 else 1
    for repeat in range(ROUNDS):
        m = (tl.program_id(0) * ROUNDS + repeat) * BLOCK_M + tl.arange(0, BLOCK_M)
        inside = m < total
        place = m % PLACES
        start = (m // PLACES) * IMAGE + (place // ACROSS) * STEP_Y + (place % ACROSS) * STEP_X
        sums = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        if REPEATS > 0:
            for part in tl.static_range(0, (INNER + BLOCK_K - 1) // BLOCK_K):
                flowing = _patches(inputs, start, inside, part * BLOCK_K, RUN, PITCH, INNER, BLOCK_K)
                sums = tl.dot(flowing, weights[part], sums)
        else:
            for first in range(0, INNER, BLOCK_K):
                flowing = _patches(inputs, start, inside, first, RUN, PITCH, INNER, BLOCK_K)
                found = _weights(weight, first + tl.arange(0, BLOCK_K), n, INNER, OUTPUTS, BLOCK_K)
                if EXACT:
                    sums = tl.dot(flowing, found, sums, input_precision="ieee")
                else:
                    sums = tl.dot(flowing, found.to(tl.float16), sums)
        result = sums + added[None, :]
        if RELU:
            result = tl.minimum(tl.maximum(result, 0.0), LARGEST_HALF)
        tl.store(
            out + (lane * total + m)[:, None] * OUTPUTS + n[None, :],
            result.to(out.dtype.element_ty),
            mask=inside[:, None] & (n < OUTPUTS)[None, :],
        )


@triton.jit
def _weights(weight, k, n, INNER: tl.constexpr, OUTPUTS: tl.constexpr, BLOCK_K: tl.constexpr):
    """Return weights (K, N) of a layer."""
    if INNER % BLOCK_K == 0:
        return tl.load(weight + k[:, None] * OUTPUTS + n[None, :], mask=(n < OUTPUTS)[None, :], other=0.0)
    mask = (k < INNER)[:, None] & (n < OUTPUTS)[None, :]
    return tl.load(weight + k[:, None] * OUTPUTS + n[None, :], mask=mask, other=0.0)


@triton.jit
def _patches(
    inputs, start, inside, first, RUN: tl.constexpr, PITCH: tl.constexpr, INNER: tl.constexpr, BLOCK_K: tl.constexpr
):
    """Return numbers first..first + K of the patches that begin at `start` (M,), (M, K)."""
    k = first + tl.arange(0, BLOCK_K)
    if RUN % BLOCK_K == 0:  # a block lies in one run, which says that its numbers are neighbours
        offsets = (first // RUN) * PITCH + first % RUN + tl.arange(0, BLOCK_K)
    else:
        offsets = (k // RUN) * PITCH + k % RUN
    if INNER % BLOCK_K == 0:
        return tl.load(inputs + start[:, None] + offsets[None, :], mask=inside[:, None], other=0.0)
    return tl.load(inputs + start[:, None] + offsets[None, :], mask=inside[:, None] & (k < INNER)[None, :], other=0.0)


@triton.jit
def weight_gradient(
    inputs,
    inputs_stride,
    gradient,
    undo,
    weight_out,
    bias_out,
    lane_stride,
    total,
    IMAGE: tl.constexpr,
    PITCH: tl.constexpr,
    STEP_Y: tl.constexpr,
    STEP_X: tl.constexpr,
    RUN: tl.constexpr,
    INNER: tl.constexpr,
    ACROSS: tl.constexpr,
    PLACES: tl.constexpr,
    OUTPUTS: tl.constexpr,
    EXACT: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """Write the gradient of a layer's weights and bias, times `undo` of the lane."""
    lane = tl.program_id(2).to(tl.int64)
    first_k = tl.program_id(0) * BLOCK_K
    k = first_k + tl.arange(0, BLOCK_K)
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    if RUN % BLOCK_K == 0:
        offsets = (first_k // RUN) * PITCH + first_k % RUN + tl.arange(0, BLOCK_K)
    else:
        offsets = (k // RUN) * PITCH + k % RUN
    inputs += lane * inputs_stride
    sums = tl.zeros((BLOCK_K, BLOCK_N), tl.float32)
    bias_sums = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for first in range(0, total, BLOCK_M):
        m = first + tl.arange(0, BLOCK_M)
        inside = m < total
        place = m % PLACES
        start = (m // PLACES) * IMAGE + (place // ACROSS) * STEP_Y + (place % ACROSS) * STEP_X
        found = tl.load(
            inputs + offsets[:, None] + start[None, :], mask=(k < INNER)[:, None] & inside[None, :], other=0.0
        )
        flowing = tl.load(
            gradient + (lane * total + m)[:, None] * OUTPUTS + n[None, :],
            mask=inside[:, None] & (n < OUTPUTS)[None, :],
            other=0.0,
        )
        if EXACT:
            sums = tl.dot(found, flowing, sums, input_precision="ieee")
        else:
            sums = tl.dot(found, flowing, sums)
        bias_sums += flowing.to(tl.float32)
    factor = tl.load(undo + lane)
    tl.store(
        weight_out + lane * lane_stride + k[:, None] * OUTPUTS + n[None, :],
        sums * factor,
        mask=(k < INNER)[:, None] & (n < OUTPUTS)[None, :],
    )
    if tl.program_id(0) == 0:
        tl.store(bias_out + lane * lane_stride + n, tl.sum(bias_sums, axis=0) * factor, mask=n < OUTPUTS)


@triton.jit
def input_gradient(
    gradient,
    weight,
    lane_stride,
    inputs,
    inputs_stride,
    out,
    images,
    HEIGHT: tl.constexpr,
    WIDTH: tl.constexpr,
    CHANNELS: tl.constexpr,
    KERNEL: tl.constexpr,
    STRIDE: tl.constexpr,
    DOWN: tl.constexpr,
    ACROSS: tl.constexpr,
    OUTPUTS: tl.constexpr,
    EXACT: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    REPEATS: tl.constexpr,
):
    """Write the gradient of what went into a layer, and 0 where a ReLU was off before it.

    Pixels with the same remainders of y and x by the stride are touched by the same few numbers of the kernel, so a
    program does pixels of one pair of remainders only. BLOCK_K counts channels, BLOCK_N the layer's outputs. With
    REPEATS a program keeps its weights and goes over so many blocks of pixels; else it reads them as it goes.
    """
    lane = tl.program_id(2).to(tl.int64)
    blocks = tl.cdiv(CHANNELS, BLOCK_K)
    c = (tl.program_id(1) % blocks) * BLOCK_K + tl.arange(0, BLOCK_K)
    remainder = tl.program_id(1) // blocks
    rest_y = remainder // STRIDE
    rest_x = remainder % STRIDE
    TALL: tl.constexpr = (HEIGHT + STRIDE - 1) // STRIDE
    WIDE: tl.constexpr = (WIDTH + STRIDE - 1) // STRIDE
    TAPS: tl.constexpr = (KERNEL + STRIDE - 1) // STRIDE
    PARTS: tl.constexpr = (OUTPUTS + BLOCK_N - 1) // BLOCK_N
    weight += lane * lane_stride
    weights = ()
    if REPEATS > 0:
        for index in tl.static_range(TAPS * TAPS * PARTS):
            kept_y = rest_y + (index // PARTS // TAPS) * STRIDE
            kept_x = rest_x + (index // PARTS % TAPS) * STRIDE
            kept_n = (index % PARTS) * BLOCK_N + tl.arange(0, BLOCK_N)
            kept = _weights_of_pixel(weight, kept_y, kept_x, c, kept_n, KERNEL, CHANNELS, OUTPUTS)
            weights = weights + (tl.trans(kept.to(tl.float16)),)
    ROUNDS: tl.constexpr = REPEATS if REPEATS > 0 else 1
    for repeat in range(ROUNDS):
        m = (tl.program_id(0) * ROUNDS + repeat) * BLOCK_M + tl.arange(0, BLOCK_M)
        image = m // (TALL * WIDE)
        tall = (m % (TALL * WIDE)) // WIDE
        wide = m % WIDE
        y = tall * STRIDE + rest_y
        x = wide * STRIDE + rest_x
        inside = (image < images) & (y < HEIGHT) & (x < WIDTH)
        sums = tl.zeros((BLOCK_M, BLOCK_K), tl.float32)
        for tap in tl.static_range(TAPS * TAPS):
            kernel_y = rest_y + (tap // TAPS) * STRIDE
            kernel_x = rest_x + (tap % TAPS) * STRIDE
            out_y = tall - tap // TAPS
            out_x = wide - tap % TAPS
            hit = inside & (out_y >= 0) & (out_y < DOWN) & (out_x >= 0) & (out_x < ACROSS)
            hit = hit & (kernel_y < KERNEL) & (kernel_x < KERNEL)
            source = (lane * images + image) * (DOWN * ACROSS) + out_y * ACROSS + out_x
            if REPEATS > 0:
                for part in tl.static_range(PARTS):
                    n = part * BLOCK_N + tl.arange(0, BLOCK_N)
                    mask = hit[:, None] & (n < OUTPUTS)[None, :]
                    flowing = tl.load(gradient + source[:, None] * OUTPUTS + n[None, :], mask=mask, other=0.0)
                    sums = tl.dot(flowing, weights[tap * PARTS + part], sums)
            else:
                for first in range(0, OUTPUTS, BLOCK_N):
                    n = first + tl.arange(0, BLOCK_N)
                    mask = hit[:, None] & (n < OUTPUTS)[None, :]
                    flowing = tl.load(gradient + source[:, None] * OUTPUTS + n[None, :], mask=mask, other=0.0)
                    found = _weights_of_pixel(weight, kernel_y, kernel_x, c, n, KERNEL, CHANNELS, OUTPUTS)
                    if EXACT:
                        sums = tl.dot(flowing, tl.trans(found), sums, input_precision="ieee")
                    else:
                        sums = tl.dot(flowing, tl.trans(found.to(tl.float16)), sums)
        place = image * (HEIGHT * WIDTH * CHANNELS) + (y * WIDTH + x) * CHANNELS
        mask = inside[:, None] & (c < CHANNELS)[None, :]
        active = tl.load(inputs + lane * inputs_stride + place[:, None] + c[None, :], mask=mask, other=0.0)
        result = tl.where(active > 0, sums, 0.0)
        result = tl.minimum(tl.maximum(result, -LARGEST_HALF), LARGEST_HALF)
        behind = lane * images * (HEIGHT * WIDTH * CHANNELS)
        tl.store(out + behind + place[:, None] + c[None, :], result.to(out.dtype.element_ty), mask=mask)


@triton.jit
def _weights_of_pixel(
    weight, kernel_y, kernel_x, c, n, KERNEL: tl.constexpr, CHANNELS: tl.constexpr, OUTPUTS: tl.constexpr
):
    """Return the weights (channels, outputs) of one pixel of the kernel, 0 beyond it."""
    taken = (c < CHANNELS) & (kernel_y < KERNEL) & (kernel_x < KERNEL)
    return tl.load(
        weight + ((kernel_y * KERNEL + kernel_x) * CHANNELS + c)[:, None] * OUTPUTS + n[None, :],
        mask=taken[:, None] & (n < OUTPUTS)[None, :],
        other=0.0,
    )
