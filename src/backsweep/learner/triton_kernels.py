"""Kernels for networks of many lanes on a GPU; `fused` launches them and says what they are for.

A layer is a convolution without patches in memory: row m of its matrix of patches is a place in a picture, column k a
number of the patch, and where the number lies is the sum of a term of m and a term of k:

    place of (m, k) = image(m) + (y(m) * pitch + x(m)) * stride + (k // run) * pitch + k % run

with `run` the numbers of one row of a patch and `pitch` those of one row of a picture. A linear layer is the same with
one place and one run. Everywhere lanes are the last axis of the grid, and no two programs write the same number, so
results do not depend on the order in which programs run.
"""

from __future__ import annotations

import os

import triton
import triton.language as tl

LARGEST_HALF = tl.constexpr(65504.0)
INTERPRETED = tl.constexpr(os.environ.get("TRITON_INTERPRET") == "1")  # Triton's interpreter knows no instructions


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
def _weight_row(number, BLOCK: tl.constexpr, KERNEL: tl.constexpr, CHANNELS: tl.constexpr):
    """Return which row of the first convolution's weights belongs to a number of a patch.

    Weights are in the order of the pixels of a kernel, row by row. Patches are too, unless pictures lie in blocks
    (`ObservationBank.cut_into_blocks`); then a patch is block by block.
    """
    if BLOCK == 1:
        return number
    LINE: tl.constexpr = BLOCK * CHANNELS
    rest = number % (KERNEL * LINE)
    y = (number // (KERNEL * LINE)) * BLOCK + (rest % (BLOCK * LINE)) // LINE
    return y * (KERNEL * CHANNELS) + (rest // (BLOCK * LINE)) * LINE + rest % LINE


@triton.jit
def _word_offsets(k, RUN: tl.constexpr, PITCH: tl.constexpr, NEIGHBOURS: tl.constexpr, ALIGNED: tl.constexpr):
    """Return where words k of a patch lie, saying how many are neighbours, so that they are read together."""
    offsets = (k // RUN) * PITCH + k % RUN
    return tl.max_contiguous(tl.multiple_of(offsets, ALIGNED), NEIGHBOURS)


@triton.jit
def first_forward(
    words,
    rows,
    rows_stride,
    weight,
    bias,
    lane_stride,
    out,
    total,
    scale,
    IMAGE: tl.constexpr,
    PITCH: tl.constexpr,
    STEP_Y: tl.constexpr,
    STEP_X: tl.constexpr,
    RUN: tl.constexpr,
    INNER: tl.constexpr,
    ACROSS: tl.constexpr,
    PLACES: tl.constexpr,
    OUTPUTS: tl.constexpr,
    NEIGHBOURS: tl.constexpr,
    ALIGNED: tl.constexpr,
    BLOCK: tl.constexpr,
    KERNEL: tl.constexpr,
    CHANNELS: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    REPEATS: tl.constexpr,
):
    """Convolve pictures of bytes that lie in a bank, found by row number, and apply the ReLU.

    Bytes are read as words of four; sizes and steps are in words. A program keeps its weights and goes over REPEATS
    blocks of rows.
    """
    lane = tl.program_id(2).to(tl.int64)
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    weight += lane * lane_stride
    weights = ()
    for first in tl.static_range(0, INNER, BLOCK_K):
        number = 4 * first + tl.arange(0, 4 * BLOCK_K)
        kept = tl.load(
            weight + _weight_row(number, BLOCK, KERNEL, CHANNELS)[:, None] * OUTPUTS + n[None, :],
            mask=(number < 4 * INNER)[:, None] & (n < OUTPUTS)[None, :],
            other=0.0,
        )
        weights = weights + (kept.to(tl.float16),)
    added = tl.load(bias + lane * lane_stride + n, mask=n < OUTPUTS, other=0.0)
    for repeat in range(REPEATS):
        m = (tl.program_id(0) * REPEATS + repeat) * BLOCK_M + tl.arange(0, BLOCK_M)
        inside = m < total
        place = m % PLACES
        row = tl.load(rows + lane * rows_stride + m // PLACES, mask=inside, other=0)
        start = row * IMAGE + (place // ACROSS) * STEP_Y + (place % ACROSS) * STEP_X
        sums = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for part in tl.static_range(0, (INNER + BLOCK_K - 1) // BLOCK_K):
            k = part * BLOCK_K + tl.arange(0, BLOCK_K)
            place_of_words = words + start[:, None] + _word_offsets(k, RUN, PITCH, NEIGHBOURS, ALIGNED)[None, :]
            if INNER % BLOCK_K == 0:
                found = tl.load(place_of_words, mask=inside[:, None], other=0)
            else:
                found = tl.load(place_of_words, mask=inside[:, None] & (k < INNER)[None, :], other=0)
            sums = tl.dot(_bytes(found), weights[part], sums)
        result = tl.minimum(tl.maximum(sums * scale + added[None, :], 0.0), LARGEST_HALF)
        tl.store(
            out + (lane * total + m)[:, None] * OUTPUTS + n[None, :],
            result.to(out.dtype.element_ty),
            mask=inside[:, None] & (n < OUTPUTS)[None, :],
        )


@triton.jit
def first_weight_gradient(
    words,
    rows,
    rows_stride,
    gradient,
    undo,
    weight_out,
    bias_out,
    out_stride,
    total,
    scale,
    per_part,
    IMAGE: tl.constexpr,
    PITCH: tl.constexpr,
    STEP_Y: tl.constexpr,
    STEP_X: tl.constexpr,
    RUN: tl.constexpr,
    INNER: tl.constexpr,
    ACROSS: tl.constexpr,
    PLACES: tl.constexpr,
    OUTPUTS: tl.constexpr,
    NEIGHBOURS: tl.constexpr,
    ALIGNED: tl.constexpr,
    BLOCK: tl.constexpr,
    KERNEL: tl.constexpr,
    CHANNELS: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """Write the gradient of the first convolution's weights and bias, of one part of the rows of each lane.

    Part p of lane l is written behind the others, at (l * parts + p) * out_stride.
    """
    lane = tl.program_id(2).to(tl.int64)
    part = tl.program_id(1)
    k = tl.program_id(0) * BLOCK_K + tl.arange(0, BLOCK_K)
    n = tl.arange(0, BLOCK_N)
    offsets = _word_offsets(k, RUN, PITCH, NEIGHBOURS, ALIGNED)
    rows += lane * rows_stride
    sums = tl.zeros((4 * BLOCK_K, BLOCK_N), tl.float32)
    bias_sums = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    stop = tl.minimum(total, (part + 1) * per_part)
    for first in range(part * per_part, stop, BLOCK_M):
        m = first + tl.arange(0, BLOCK_M)
        inside = m < stop
        place = m % PLACES
        row = tl.load(rows + m // PLACES, mask=inside, other=0)
        start = row * IMAGE + (place // ACROSS) * STEP_Y + (place % ACROSS) * STEP_X
        found = tl.load(words + start[:, None] + offsets[None, :], mask=inside[:, None] & (k < INNER)[None, :], other=0)
        flowing = tl.load(
            gradient + (lane * total + m)[:, None] * OUTPUTS + n[None, :],
            mask=inside[:, None] & (n < OUTPUTS)[None, :],
            other=0.0,
        )
        sums = tl.dot(tl.trans(_bytes(found)), flowing, sums)
        bias_sums += flowing.to(tl.float32)
    factor = tl.load(undo + lane)
    behind = (lane * tl.num_programs(1) + part) * out_stride
    number = tl.program_id(0) * (4 * BLOCK_K) + tl.arange(0, 4 * BLOCK_K)
    tl.store(
        weight_out + behind + _weight_row(number, BLOCK, KERNEL, CHANNELS)[:, None] * OUTPUTS + n[None, :],
        sums * (scale * factor),
        mask=(number < 4 * INNER)[:, None] & (n < OUTPUTS)[None, :],
    )
    if tl.program_id(0) == 0:
        tl.store(bias_out + behind + n, tl.sum(bias_sums, axis=0) * factor, mask=n < OUTPUTS)


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


@triton.jit
def scale_gradient(gradient, out, undo, numbers, BLOCK: tl.constexpr):
    """Multiply each lane's gradient with the power of two that brings its largest number to 1..2; `undo` divides."""
    lane = tl.program_id(0).to(tl.int64)
    place = tl.arange(0, BLOCK)
    found = tl.load(gradient + lane * numbers + place, mask=place < numbers, other=0.0)
    largest = tl.max(tl.abs(found), axis=0)
    exponent = largest.to(tl.int32, bitcast=True) >> 23
    exponent = tl.where((exponent > 0) & (exponent < 254), exponent, 127)
    scale = ((254 - exponent) << 23).to(tl.float32, bitcast=True)
    tl.store(out + lane * numbers + place, found * scale, mask=place < numbers)
    tl.store(undo + lane, (exponent << 23).to(tl.float32, bitcast=True))


@triton.jit
def move(source, out, numbers, BLOCK: tl.constexpr):
    """Copy numbers, from or to the host's page-locked memory too."""
    place = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + place, tl.load(source + place, mask=place < numbers, other=0), mask=place < numbers)


@triton.jit
def best_actions(
    inputs,
    weight,
    bias,
    lane_stride,
    out,
    INNER: tl.constexpr,
    ACTIONS: tl.constexpr,
    BLOCK_I: tl.constexpr,
    BLOCK_A: tl.constexpr,
):
    """Apply the last layer to one row of each lane and write the action of the largest value, the first of equals."""
    lane = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, BLOCK_I)
    a = tl.arange(0, BLOCK_A)
    flowing = tl.load(inputs + lane * INNER + i, mask=i < INNER, other=0.0)
    weights = tl.load(
        weight + lane * lane_stride + i[:, None] * ACTIONS + a[None, :],
        mask=(i < INNER)[:, None] & (a < ACTIONS)[None, :],
        other=0.0,
    )
    values = tl.sum(flowing[:, None] * weights, axis=0)
    values += tl.load(bias + lane * lane_stride + a, mask=a < ACTIONS, other=0.0)
    # A lane whose values are no numbers any more still has to take some action of the task.
    values = tl.where((a < ACTIONS) & (values == values), values, float("-inf"))
    tl.store(out + lane, tl.argmax(values, axis=0).to(tl.int64))


@triton.jit
def td_errors(
    values,
    next_target,
    action,
    reward,
    discount,
    known,
    chosen_out,
    target_out,
    error_out,
    next_action_out,
    size,
    ACTIONS: tl.constexpr,
    KNOWN: tl.constexpr,
    BLOCK: tl.constexpr,
    BLOCK_A: tl.constexpr,
):
    """Write each row's value, Double DQN target (or the known one), TD error and best next action; a lane a program."""
    lane = tl.program_id(0).to(tl.int64)
    b = tl.arange(0, BLOCK)
    a = tl.arange(0, BLOCK_A)
    inside = b < size
    row = lane * size + b
    values += lane * 2 * size * ACTIONS
    following = tl.load(
        values + (size + b)[:, None] * ACTIONS + a[None, :],
        mask=inside[:, None] & (a < ACTIONS)[None, :],
        other=float("-inf"),
    )
    best = tl.argmax(following, axis=1)
    after = tl.load(next_target + row * ACTIONS + best, mask=inside, other=0.0)
    target = tl.load(reward + row, mask=inside, other=0.0) + tl.load(discount + row, mask=inside, other=0.0) * after
    if KNOWN:
        given = tl.load(known + row, mask=inside, other=0.0)
        target = tl.where(given == given, given, target)
    chosen = tl.load(values + b * ACTIONS + tl.load(action + row, mask=inside, other=0), mask=inside, other=0.0)
    tl.store(chosen_out + row, chosen, mask=inside)
    tl.store(target_out + row, target, mask=inside)
    tl.store(error_out + row, chosen - target, mask=inside)
    tl.store(next_action_out + row, best.to(tl.int64), mask=inside)


@triton.jit
def _softplus(x):
    """Return log(1 + exp(x)), exact for small results too."""
    small = tl.exp(-tl.abs(x))
    return tl.maximum(x, 0.0) + tl.where(small < 1e-4, small - 0.5 * small * small, tl.log(1.0 + small))


@triton.jit
def discor_weights(
    values,
    following,
    action,
    next_action,
    td_error,
    discount,
    share,
    temperature,
    prediction_sum,
    weight_out,
    gradient,
    size,
    ACTIONS: tl.constexpr,
    CHOSEN: tl.constexpr,
    BLOCK: tl.constexpr,
    BLOCK_A: tl.constexpr,
):
    """Write DisCor's weights and the gradient of its error networks' loss, before their softplus; a lane a program."""
    lane = tl.program_id(0).to(tl.int64)
    b = tl.arange(0, BLOCK)
    a = tl.arange(0, BLOCK_A)
    inside = b < size
    row = lane * size + b
    taken = tl.load(action + row, mask=inside, other=0)
    before = tl.load(values + row * ACTIONS + taken, mask=inside, other=0.0)
    predicted = _softplus(before)
    if CHOSEN:
        chosen = tl.load(next_action + row, mask=inside, other=0)
        after = tl.load(following + row * ACTIONS + chosen, mask=inside, other=0.0)
    else:
        all_after = tl.load(
            following + row[:, None] * ACTIONS + a[None, :],
            mask=inside[:, None] & (a < ACTIONS)[None, :],
            other=float("-inf"),
        )
        after = tl.max(all_after, axis=1)
    next_error = tl.load(discount + row, mask=inside, other=0.0) * _softplus(after)
    exponent = tl.where(inside, -next_error / tl.load(temperature + lane), float("-inf"))
    powers = tl.exp(exponent - tl.max(exponent, axis=0))
    weight = powers / tl.sum(powers, axis=0) * size * tl.load(share + row, mask=inside, other=0.0)
    tl.store(weight_out + row, weight, mask=inside)
    difference = predicted - tl.abs(tl.load(td_error + row, mask=inside, other=0.0)) - next_error
    slope = 2.0 / size * difference * tl.sigmoid(before)
    tl.store(
        gradient + row[:, None] * ACTIONS + a[None, :],
        tl.where(taken[:, None] == a[None, :], slope[:, None], 0.0),
        mask=inside[:, None] & (a < ACTIONS)[None, :],
    )
    mean = tl.sum(tl.where(inside, predicted, 0.0), axis=0) / size
    tl.store(prediction_sum + lane, tl.load(prediction_sum + lane) + mean)


@triton.jit
def huber_and_statistics(
    error,
    weight,
    chosen,
    target,
    action,
    gradient,
    sums,
    size,
    ACTIONS: tl.constexpr,
    BLOCK: tl.constexpr,
    BLOCK_A: tl.constexpr,
):
    """Write the gradient of the weighted Huber loss, and add the lane's statistics to its sums."""
    lane = tl.program_id(0).to(tl.int64)
    b = tl.arange(0, BLOCK)
    a = tl.arange(0, BLOCK_A)
    inside = b < size
    row = lane * size + b
    found = tl.load(error + row, mask=inside, other=0.0)
    share = tl.load(weight + row, mask=inside, other=0.0)
    slope = tl.minimum(tl.maximum(found, -1.0), 1.0) * share / size
    taken = tl.load(action + row, mask=inside, other=0)
    tl.store(
        gradient + row[:, None] * ACTIONS + a[None, :],
        tl.where(taken[:, None] == a[None, :], slope[:, None], 0.0),
        mask=inside[:, None] & (a < ACTIONS)[None, :],
    )
    off = tl.abs(found)
    inner = tl.minimum(off, 1.0)
    total = tl.sum(share, axis=0)
    effective = total * total / tl.sum(share * share, axis=0)
    place = sums + lane * 5
    loss = tl.sum(share * (inner * (off - 0.5 * inner)), axis=0) / size
    tl.store(place, tl.load(place) + loss.to(tl.float64))
    tl.store(place + 1, tl.load(place + 1) + (tl.sum(off, axis=0) / size).to(tl.float64))
    mean_chosen = tl.sum(tl.load(chosen + row, mask=inside, other=0.0), axis=0) / size
    tl.store(place + 2, tl.load(place + 2) + mean_chosen.to(tl.float64))
    mean_target = tl.sum(tl.load(target + row, mask=inside, other=0.0), axis=0) / size
    tl.store(place + 3, tl.load(place + 3) + mean_target.to(tl.float64))
    tl.store(place + 4, tl.load(place + 4) + effective.to(tl.float64))


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
