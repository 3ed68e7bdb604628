"""Kernels for the first convolution, which reads images of bytes by row number; see `triton_layers`."""

from __future__ import annotations

import os

import triton
import triton.language as tl

from backsweep.agent.learner.triton.triton_layers import LARGEST_HALF, patch_starts

INTERPRETED = tl.constexpr(os.environ.get("TRITON_INTERPRET") == "1")  # Triton's interpreter has no inline assembly


@triton.jit
def _bytes(words):
    """Return the bytes of words (M, K) as half-precision numbers (M, 4 K), lowest byte first.

    0x6400 | byte is 1024 + byte in half precision: one permutation of bytes and one subtraction make two numbers, where
    conversions would take several slow instructions each.
    """
    if INTERPRETED:
        byte0 = (words & 255).to(tl.float16)
        byte1 = ((words >> 8) & 255).to(tl.float16)
        byte2 = ((words >> 16) & 255).to(tl.float16)
        byte3 = ((words >> 24) & 255).to(tl.float16)
    else:
        byte0, byte1, byte2, byte3 = tl.inline_asm_elementwise(
            """
            {
                .reg .b32 low, high, base;
                mov.b32 base, 0x64006400;
                prmt.b32 low, $4, base, 0x5150;
                prmt.b32 high, $4, base, 0x5352;
                sub.rn.f16x2 low, low, base;
                sub.rn.f16x2 high, high, base;
                mov.b32 {$0, $1}, low;
                mov.b32 {$2, $3}, high;
            }
            """,
            "=h,=h,=h,=h,r",
            [words],
            dtype=(tl.float16, tl.float16, tl.float16, tl.float16),
            is_pure=True,
            pack=1,
        )
    together = tl.join(tl.join(byte0, byte2), tl.join(byte1, byte3))
    return tl.reshape(together, (words.shape[0], 4 * words.shape[1]))


@triton.jit
def _weight_row(number, PATCHES: tl.constexpr):
    """Return which row of the first convolution's weights belongs to a number of a patch.

    Weights are in the order of the pixels of a kernel, row by row. Patches are too, unless images lie in blocks
    (`DeviceObservations.cut_into_blocks`); then a patch is block by block.
    """
    BLOCK: tl.constexpr = PATCHES.block
    if BLOCK == 1:
        return number
    LINE: tl.constexpr = BLOCK * PATCHES.channels
    rest = number % (PATCHES.kernel * LINE)
    y = (number // (PATCHES.kernel * LINE)) * BLOCK + (rest % (BLOCK * LINE)) // LINE
    return y * (PATCHES.kernel * PATCHES.channels) + (rest // (BLOCK * LINE)) * LINE + rest % LINE


@triton.jit
def _word_offsets(k, PATCHES: tl.constexpr):
    """Return where words k of a patch lie, saying how many are neighbours, so that they are read together."""
    offsets = (k // PATCHES.span) * PATCHES.pitch + k % PATCHES.span
    ALIGNED: tl.constexpr = PATCHES.aligned
    NEIGHBOURS: tl.constexpr = PATCHES.neighbours
    return tl.max_contiguous(tl.multiple_of(offsets, ALIGNED), NEIGHBOURS)


@triton.jit
def first_forward(
    words,
    rows,
    rows_stride,
    weight,
    bias,
    run_stride,
    out,
    total,
    scale,
    PATCHES: tl.constexpr,
    TILES: tl.constexpr,
):
    """Convolve images of bytes, found by row number, and apply the ReLU.

    Bytes are read as words of four; sizes and steps are in words. A program keeps its weights for TILES.repeats blocks
    of rows. PATCHES is a `layers.WordGather`.
    """
    BLOCK_M: tl.constexpr = TILES.m
    BLOCK_N: tl.constexpr = TILES.n
    BLOCK_K: tl.constexpr = TILES.k
    run = tl.program_id(2).to(tl.int64)
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    weight += run * run_stride
    PIECES: tl.constexpr = (PATCHES.inner + BLOCK_K - 1) // BLOCK_K
    weights = ()
    for piece in tl.static_range(PIECES):
        number = 4 * piece * BLOCK_K + tl.arange(0, 4 * BLOCK_K)
        kept = tl.load(
            weight + _weight_row(number, PATCHES)[:, None] * PATCHES.outputs + n[None, :],
            mask=(number < 4 * PATCHES.inner)[:, None] & (n < PATCHES.outputs)[None, :],
            other=0.0,
        )
        weights = weights + (kept.to(tl.float16),)
    added = tl.load(bias + run * run_stride + n, mask=n < PATCHES.outputs, other=0.0)
    for repeat in range(TILES.repeats):
        m = (tl.program_id(0) * TILES.repeats + repeat) * BLOCK_M + tl.arange(0, BLOCK_M)
        inside = m < total
        place = m % PATCHES.places
        row = tl.load(rows + run * rows_stride + m // PATCHES.places, mask=inside, other=0)
        start = patch_starts(row, place, PATCHES)
        sums = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for piece in tl.static_range(PIECES):
            k = piece * BLOCK_K + tl.arange(0, BLOCK_K)
            place_of_words = words + start[:, None] + _word_offsets(k, PATCHES)[None, :]
            if PATCHES.inner % BLOCK_K == 0:
                found = tl.load(place_of_words, mask=inside[:, None], other=0)
            else:
                found = tl.load(place_of_words, mask=inside[:, None] & (k < PATCHES.inner)[None, :], other=0)
            sums = tl.dot(_bytes(found), weights[piece], sums)
        result = tl.minimum(tl.maximum(sums * scale + added[None, :], 0.0), LARGEST_HALF)
        tl.store(
            out + (run * total + m)[:, None] * PATCHES.outputs + n[None, :],
            result.to(out.dtype.element_ty),
            mask=inside[:, None] & (n < PATCHES.outputs)[None, :],
        )


@triton.jit
def first_weight_gradient(
    words,
    rows,
    rows_stride,
    gradient,
    undo,
    out,
    bias_offset,
    total,
    scale,
    per_piece,
    PATCHES: tl.constexpr,
    TILES: tl.constexpr,
):
    """Write the gradient of the first convolution's weights and bias, of one piece of the rows of each run.

    Piece p of run r goes to place r * pieces + p of `out`, where the bias follows the weights at `bias_offset`.
    """
    BLOCK_M: tl.constexpr = TILES.m
    BLOCK_N: tl.constexpr = TILES.n
    BLOCK_K: tl.constexpr = TILES.k
    run = tl.program_id(2).to(tl.int64)
    piece = tl.program_id(1)
    k = tl.program_id(0) * BLOCK_K + tl.arange(0, BLOCK_K)
    n = tl.arange(0, BLOCK_N)
    offsets = _word_offsets(k, PATCHES)
    rows += run * rows_stride
    sums = tl.zeros((4 * BLOCK_K, BLOCK_N), tl.float32)
    bias_sums = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    stop = tl.minimum(total, (piece + 1) * per_piece)
    for first in range(piece * per_piece, stop, BLOCK_M):
        m = first + tl.arange(0, BLOCK_M)
        inside = m < stop
        place = m % PATCHES.places
        row = tl.load(rows + m // PATCHES.places, mask=inside, other=0)
        start = patch_starts(row, place, PATCHES)
        mask = inside[:, None] & (k < PATCHES.inner)[None, :]
        found = tl.load(words + start[:, None] + offsets[None, :], mask=mask, other=0)
        flowing = tl.load(
            gradient + (run * total + m)[:, None] * PATCHES.outputs + n[None, :],
            mask=inside[:, None] & (n < PATCHES.outputs)[None, :],
            other=0.0,
        )
        sums = tl.dot(tl.trans(_bytes(found)), flowing, sums)
        bias_sums += flowing.to(tl.float32)
    factor = tl.load(undo + run)
    behind = (run * tl.num_programs(1) + piece) * (bias_offset + PATCHES.outputs)
    number = tl.program_id(0) * (4 * BLOCK_K) + tl.arange(0, 4 * BLOCK_K)
    tl.store(
        out + behind + _weight_row(number, PATCHES)[:, None] * PATCHES.outputs + n[None, :],
        sums * (scale * factor),
        mask=(number < 4 * PATCHES.inner)[:, None] & (n < PATCHES.outputs)[None, :],
    )
    if tl.program_id(0) == 0:
        tl.store(out + behind + bias_offset + n, tl.sum(bias_sums, axis=0) * factor, mask=n < PATCHES.outputs)
