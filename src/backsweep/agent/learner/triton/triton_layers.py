"""Kernels for the layers of many runs' networks on a GPU.

A layer is a convolution without patches in memory: row m of its matrix of patches is a place in an image, column k a
number of the patch, and where the number lies is the sum of a term of m and a term of k:

    place of (m, k) = image(m) + (y(m) * pitch + x(m)) * stride + (k // span) * pitch + k % span

with `span` the numbers of one row of a patch and `pitch` those of one row of an image. A linear layer is the same with
one place and one span. Runs are always the last axis of the grid, and no two programs write the same number, so results
do not depend on the order of the programs.

What a kernel is compiled for comes as frozen dataclasses: PATCHES is a `layers.Gather`, SHAPE a `patches.Convolution`,
TILES a `tiles.Tiles`.
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
    run_stride,
    out,
    total,
    PATCHES: tl.constexpr,
    LAST: tl.constexpr,
    TILES: tl.constexpr,
):
    """Apply a layer and a ReLU, in half precision; the LAST layer has no ReLU and single precision.

    With TILES.repeats > 0 a program keeps its weights for that many blocks of rows; else it reads them as it goes.
    """
    BLOCK_M: tl.constexpr = TILES.m
    BLOCK_N: tl.constexpr = TILES.n
    BLOCK_K: tl.constexpr = TILES.k
    run = tl.program_id(2).to(tl.int64)
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    inputs += run * inputs_stride
    weight += run * run_stride
    added = tl.load(bias + run * run_stride + n, mask=n < PATCHES.outputs, other=0.0)
    PIECES: tl.constexpr = (PATCHES.inner + BLOCK_K - 1) // BLOCK_K
    weights = ()
    if TILES.repeats > 0:
        for piece in tl.static_range(PIECES):
            kept = _weights(weight, piece * BLOCK_K + tl.arange(0, BLOCK_K), n, PATCHES, TILES)
            weights = weights + (kept.to(tl.float16),)
    ROUNDS: tl.constexpr = TILES.repeats if TILES.repeats > 0 else 1
    for repeat in range(ROUNDS):
        m = (tl.program_id(0) * ROUNDS + repeat) * BLOCK_M + tl.arange(0, BLOCK_M)
        inside = m < total
        place = m % PATCHES.places
        start = patch_starts(m // PATCHES.places, place, PATCHES)
        sums = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        if TILES.repeats > 0:
            for piece in tl.static_range(PIECES):
                flowing = _patches(inputs, start, inside, piece * BLOCK_K, PATCHES, TILES)
                sums = tl.dot(flowing, weights[piece], sums)
        else:
            for first in range(0, PATCHES.inner, BLOCK_K):
                flowing = _patches(inputs, start, inside, first, PATCHES, TILES)
                found = _weights(weight, first + tl.arange(0, BLOCK_K), n, PATCHES, TILES)
                if LAST:
                    sums = tl.dot(flowing, found, sums, input_precision="ieee")
                else:
                    sums = tl.dot(flowing, found.to(tl.float16), sums)
        result = sums + added[None, :]
        if not LAST:
            result = _activated(result)
        tl.store(
            out + (run * total + m)[:, None] * PATCHES.outputs + n[None, :],
            result.to(out.dtype.element_ty),
            mask=inside[:, None] & (n < PATCHES.outputs)[None, :],
        )


@triton.jit
def _activated(sums):
    """Apply the ReLU, within the range of half precision."""
    return tl.minimum(tl.maximum(sums, 0.0), LARGEST_HALF)


@triton.jit
def forward_piece(
    inputs,
    inputs_stride,
    weight,
    run_stride,
    out,
    total,
    PATCHES: tl.constexpr,
    TILES: tl.constexpr,
    PIECES: tl.constexpr,
):
    """Write what a piece of a linear layer's inner numbers adds to its sums, for `add_pieces`.

    Piece p of run r goes to place r * PIECES + p of `out`.
    """
    BLOCK_M: tl.constexpr = TILES.m
    BLOCK_N: tl.constexpr = TILES.n
    BLOCK_K: tl.constexpr = TILES.k
    ROUNDS: tl.constexpr = (PATCHES.inner + BLOCK_K - 1) // BLOCK_K
    run = tl.program_id(2).to(tl.int64)
    piece = tl.program_id(0) % PIECES
    m = (tl.program_id(0) // PIECES) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    inside = m < total
    inputs += run * inputs_stride
    weight += run * run_stride
    sums = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    stop = tl.minimum((piece + 1) * ROUNDS // PIECES * BLOCK_K, PATCHES.inner)
    for first in range(piece * ROUNDS // PIECES * BLOCK_K, stop, BLOCK_K):
        flowing = _patches(inputs, m * PATCHES.image, inside, first, PATCHES, TILES)
        found = _weights(weight, first + tl.arange(0, BLOCK_K), n, PATCHES, TILES)
        sums = tl.dot(flowing, found.to(tl.float16), sums)
    behind = (run * PIECES + piece) * total
    tl.store(
        out + (behind + m)[:, None] * PATCHES.outputs + n[None, :],
        sums,
        mask=inside[:, None] & (n < PATCHES.outputs)[None, :],
    )


@triton.jit
def add_pieces(
    pieces, bias, run_stride, out, numbers, OUTPUTS: tl.constexpr, PIECES: tl.constexpr, BLOCK: tl.constexpr
):
    """Add up the pieces of a linear layer's sums, always in the same order, and apply bias and ReLU."""
    run = tl.program_id(1).to(tl.int64)
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = place < numbers
    sums = tl.zeros((BLOCK,), tl.float32)
    for piece in tl.static_range(PIECES):
        sums += tl.load(pieces + (run * PIECES + piece) * numbers + place, mask=inside, other=0.0)
    result = _activated(sums + tl.load(bias + run * run_stride + place % OUTPUTS, mask=inside, other=0.0))
    tl.store(out + run * numbers + place, result.to(out.dtype.element_ty), mask=inside)


@triton.jit
def patch_starts(image, place, PATCHES: tl.constexpr):
    """Return where the patches at places of images begin."""
    down = image * PATCHES.image + (place // PATCHES.across) * PATCHES.step_y
    return down + (place % PATCHES.across) * PATCHES.step_x


@triton.jit
def _weights(weight, k, n, PATCHES: tl.constexpr, TILES: tl.constexpr):
    """Return weights (K, N) of a layer."""
    if PATCHES.inner % TILES.k == 0:
        return tl.load(
            weight + k[:, None] * PATCHES.outputs + n[None, :], mask=(n < PATCHES.outputs)[None, :], other=0.0
        )
    mask = (k < PATCHES.inner)[:, None] & (n < PATCHES.outputs)[None, :]
    return tl.load(weight + k[:, None] * PATCHES.outputs + n[None, :], mask=mask, other=0.0)


@triton.jit
def patch_offsets(first, k, PATCHES: tl.constexpr, TILES: tl.constexpr):
    """Return where numbers k = first..first + K of a patch lie, from its start; `first` is a multiple of K."""
    if PATCHES.span % TILES.k == 0:  # all in one span: neighbours, which the compiler does not see by itself
        NEIGHBOURS: tl.constexpr = TILES.k
        ALIGNED: tl.constexpr = min(PATCHES.power_in_pitch, TILES.k)
        offsets = (first // PATCHES.span) * PATCHES.pitch + first % PATCHES.span + tl.arange(0, NEIGHBOURS)
        return tl.max_contiguous(tl.multiple_of(offsets, ALIGNED), NEIGHBOURS)
    return (k // PATCHES.span) * PATCHES.pitch + k % PATCHES.span


@triton.jit
def _patches(inputs, start, inside, first, PATCHES: tl.constexpr, TILES: tl.constexpr):
    """Return numbers first..first + K of the patches that begin at `start` (M,), (M, K)."""
    k = first + tl.arange(0, TILES.k)
    offsets = patch_offsets(first, k, PATCHES, TILES)
    if PATCHES.inner % TILES.k == 0:
        return tl.load(inputs + start[:, None] + offsets[None, :], mask=inside[:, None], other=0.0)
    mask = inside[:, None] & (k < PATCHES.inner)[None, :]
    return tl.load(inputs + start[:, None] + offsets[None, :], mask=mask, other=0.0)


@triton.jit
def input_gradient(
    gradient,
    weight,
    run_stride,
    inputs,
    inputs_stride,
    out,
    images,
    SHAPE: tl.constexpr,
    LAST: tl.constexpr,
    TILES: tl.constexpr,
):
    """Write the gradient of what went into a layer, and 0 where a ReLU was off before it.

    Pixels with the same remainders of y and x by the stride are touched by the same few numbers of the kernel, so a
    program does pixels of one pair of remainders only. TILES.k counts channels, TILES.n the layer's outputs. With
    TILES.repeats > 0 a program keeps its weights for that many blocks of pixels; else it reads them as it goes.
    """
    BLOCK_M: tl.constexpr = TILES.m
    BLOCK_N: tl.constexpr = TILES.n
    BLOCK_K: tl.constexpr = TILES.k
    run = tl.program_id(2).to(tl.int64)
    blocks = tl.cdiv(SHAPE.channels, BLOCK_K)
    c = (tl.program_id(1) % blocks) * BLOCK_K + tl.arange(0, BLOCK_K)
    remainder = tl.program_id(1) // blocks
    rest_y = remainder // SHAPE.stride
    rest_x = remainder % SHAPE.stride
    TALL: tl.constexpr = (SHAPE.height + SHAPE.stride - 1) // SHAPE.stride
    WIDE: tl.constexpr = (SHAPE.width + SHAPE.stride - 1) // SHAPE.stride
    TAPS: tl.constexpr = (SHAPE.kernel + SHAPE.stride - 1) // SHAPE.stride
    PIECES: tl.constexpr = (SHAPE.outputs + BLOCK_N - 1) // BLOCK_N
    weight += run * run_stride
    weights = ()
    if TILES.repeats > 0:
        for index in tl.static_range(TAPS * TAPS * PIECES):
            kept_y = rest_y + (index // PIECES // TAPS) * SHAPE.stride
            kept_x = rest_x + (index // PIECES % TAPS) * SHAPE.stride
            kept_n = (index % PIECES) * BLOCK_N + tl.arange(0, BLOCK_N)
            kept = _weights_of_pixel(weight, kept_y, kept_x, c, kept_n, SHAPE)
            weights = weights + (tl.trans(kept.to(tl.float16)),)
    ROUNDS: tl.constexpr = TILES.repeats if TILES.repeats > 0 else 1
    for repeat in range(ROUNDS):
        m = (tl.program_id(0) * ROUNDS + repeat) * BLOCK_M + tl.arange(0, BLOCK_M)
        image = m // (TALL * WIDE)
        tall = (m % (TALL * WIDE)) // WIDE
        wide = m % WIDE
        y = tall * SHAPE.stride + rest_y
        x = wide * SHAPE.stride + rest_x
        inside = (image < images) & (y < SHAPE.height) & (x < SHAPE.width)
        sums = tl.zeros((BLOCK_M, BLOCK_K), tl.float32)
        for tap in tl.static_range(TAPS * TAPS):
            kernel_y = rest_y + (tap // TAPS) * SHAPE.stride
            kernel_x = rest_x + (tap % TAPS) * SHAPE.stride
            out_y = tall - tap // TAPS
            out_x = wide - tap % TAPS
            hit = inside & (out_y >= 0) & (out_y < SHAPE.out_height) & (out_x >= 0) & (out_x < SHAPE.out_width)
            hit = hit & (kernel_y < SHAPE.kernel) & (kernel_x < SHAPE.kernel)
            source = (run * images + image) * (SHAPE.out_height * SHAPE.out_width) + out_y * SHAPE.out_width + out_x
            if TILES.repeats > 0:
                for piece in tl.static_range(PIECES):
                    n = piece * BLOCK_N + tl.arange(0, BLOCK_N)
                    mask = hit[:, None] & (n < SHAPE.outputs)[None, :]
                    flowing = tl.load(gradient + source[:, None] * SHAPE.outputs + n[None, :], mask=mask, other=0.0)
                    sums = tl.dot(flowing, weights[tap * PIECES + piece], sums)
            else:
                for first in range(0, SHAPE.outputs, BLOCK_N):
                    n = first + tl.arange(0, BLOCK_N)
                    mask = hit[:, None] & (n < SHAPE.outputs)[None, :]
                    flowing = tl.load(gradient + source[:, None] * SHAPE.outputs + n[None, :], mask=mask, other=0.0)
                    found = _weights_of_pixel(weight, kernel_y, kernel_x, c, n, SHAPE)
                    if LAST:
                        sums = tl.dot(flowing, tl.trans(found), sums, input_precision="ieee")
                    else:
                        sums = tl.dot(flowing, tl.trans(found.to(tl.float16)), sums)
        place = image * (SHAPE.height * SHAPE.width * SHAPE.channels) + (y * SHAPE.width + x) * SHAPE.channels
        mask = inside[:, None] & (c < SHAPE.channels)[None, :]
        active = tl.load(inputs + run * inputs_stride + place[:, None] + c[None, :], mask=mask, other=0.0)
        result = tl.where(active > 0, sums, 0.0)
        result = tl.minimum(tl.maximum(result, -LARGEST_HALF), LARGEST_HALF)
        behind = run * images * (SHAPE.height * SHAPE.width * SHAPE.channels)
        tl.store(out + behind + place[:, None] + c[None, :], result.to(out.dtype.element_ty), mask=mask)


@triton.jit
def _weights_of_pixel(weight, kernel_y, kernel_x, c, n, SHAPE: tl.constexpr):
    """Return the weights (channels, outputs) of one pixel of the kernel, 0 beyond it."""
    taken = (c < SHAPE.channels) & (kernel_y < SHAPE.kernel) & (kernel_x < SHAPE.kernel)
    return tl.load(
        weight + ((kernel_y * SHAPE.kernel + kernel_x) * SHAPE.channels + c)[:, None] * SHAPE.outputs + n[None, :],
        mask=taken[:, None] & (n < SHAPE.outputs)[None, :],
        other=0.0,
    )
