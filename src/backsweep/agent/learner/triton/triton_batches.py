"""Kernels for the parts of an update other than layers: copies, actions, errors, weights, gradients of losses."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def scale_gradient(gradient, out, undo, numbers, BLOCK: tl.constexpr):
    """Multiply each run's gradient with the power of two that brings its largest number to 1..2; `undo` divides."""
    run = tl.program_id(0).to(tl.int64)
    place = tl.arange(0, BLOCK)
    found = tl.load(gradient + run * numbers + place, mask=place < numbers, other=0.0)
    largest = tl.max(tl.abs(found), axis=0)
    exponent = largest.to(tl.int32, bitcast=True) >> 23
    exponent = tl.where((exponent > 0) & (exponent < 254), exponent, 127)
    scale = ((254 - exponent) << 23).to(tl.float32, bitcast=True)
    tl.store(out + run * numbers + place, found * scale, mask=place < numbers)
    tl.store(undo + run, (exponent << 23).to(tl.float32, bitcast=True))


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
    run_stride,
    out,
    INNER: tl.constexpr,
    ACTIONS: tl.constexpr,
    BLOCK_I: tl.constexpr,
    BLOCK_A: tl.constexpr,
):
    """Apply the last layer to one row of each run and write the action of the largest value, the first of equals."""
    run = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, BLOCK_I)
    a = tl.arange(0, BLOCK_A)
    flowing = tl.load(inputs + run * INNER + i, mask=i < INNER, other=0.0)
    weights = tl.load(
        weight + run * run_stride + i[:, None] * ACTIONS + a[None, :],
        mask=(i < INNER)[:, None] & (a < ACTIONS)[None, :],
        other=0.0,
    )
    values = tl.sum(flowing[:, None] * weights, axis=0)
    values += tl.load(bias + run * run_stride + a, mask=a < ACTIONS, other=0.0)
    # A run whose values are NaN still has to take a valid action.
    values = tl.where((a < ACTIONS) & (values == values), values, float("-inf"))
    tl.store(out + run, tl.argmax(values, axis=0).to(tl.int64))


@triton.jit
def _write_at_actions(out, row, taken, numbers, inside, ACTIONS: tl.constexpr, BLOCK_A: tl.constexpr):
    """Write each row's number at the action that it took, and 0 at the others."""
    a = tl.arange(0, BLOCK_A)
    tl.store(
        out + row[:, None] * ACTIONS + a[None, :],
        tl.where(taken[:, None] == a[None, :], numbers[:, None], 0.0),
        mask=inside[:, None] & (a < ACTIONS)[None, :],
    )


@triton.jit
def td_errors(
    values,
    next_target,
    action,
    reward,
    discount,
    known,
    place,
    shares,
    found,
    next_action_out,
    BATCH: tl.constexpr,
):
    """Write each row's value, Double DQN target (or the known one), TD error and best next action; a run a program.

    `place` says which successor is a row's; without it they are in order. `found` (3, R, B) takes the first three.
    """
    SIZE: tl.constexpr = BATCH.size
    SUCCESSORS: tl.constexpr = BATCH.successors
    ACTIONS: tl.constexpr = BATCH.actions
    BLOCK: tl.constexpr = BATCH.block
    BLOCK_A: tl.constexpr = BATCH.block_of_actions
    run = tl.program_id(0).to(tl.int64)
    b = tl.arange(0, BLOCK)
    a = tl.arange(0, BLOCK_A)
    inside = b < SIZE
    row = run * SIZE + b
    values += run * (SIZE + SUCCESSORS) * ACTIONS
    next_target += run * SUCCESSORS * ACTIONS
    if place is not None:
        successor = tl.load(place + row, mask=inside, other=0)
    else:
        successor = b
    following = tl.load(
        values + (SIZE + successor)[:, None] * ACTIONS + a[None, :],
        mask=inside[:, None] & (a < ACTIONS)[None, :],
        other=float("-inf"),
    )
    best = tl.argmax(following, axis=1)
    after = tl.load(next_target + successor * ACTIONS + best, mask=inside, other=0.0)
    target = tl.load(reward + row, mask=inside, other=0.0) + tl.load(discount + row, mask=inside, other=0.0) * after
    if known is not None:
        given = tl.load(known + row, mask=inside, other=0.0)
        share = tl.load(shares + run)
        target = tl.where(given == given, share * given + (1.0 - share) * target, target)
    chosen = tl.load(values + b * ACTIONS + tl.load(action + row, mask=inside, other=0), mask=inside, other=0.0)
    rows = tl.num_programs(0).to(tl.int64) * SIZE
    tl.store(found + row, chosen, mask=inside)
    tl.store(found + rows + row, target, mask=inside)
    tl.store(found + 2 * rows + row, chosen - target, mask=inside)
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
    BATCH: tl.constexpr,
):
    """Write DisCor's weights and the gradient of its error networks' loss, before their softplus; a run a program."""
    SIZE: tl.constexpr = BATCH.size
    ACTIONS: tl.constexpr = BATCH.actions
    BLOCK: tl.constexpr = BATCH.block
    BLOCK_A: tl.constexpr = BATCH.block_of_actions
    run = tl.program_id(0).to(tl.int64)
    b = tl.arange(0, BLOCK)
    inside = b < SIZE
    row = run * SIZE + b
    taken = tl.load(action + row, mask=inside, other=0)
    before = tl.load(values + row * ACTIONS + taken, mask=inside, other=0.0)
    predicted = _softplus(before)
    if next_action is not None:
        chosen = tl.load(next_action + row, mask=inside, other=0)
        after = tl.load(following + row * ACTIONS + chosen, mask=inside, other=0.0)
    else:
        a = tl.arange(0, BLOCK_A)
        all_after = tl.load(
            following + row[:, None] * ACTIONS + a[None, :],
            mask=inside[:, None] & (a < ACTIONS)[None, :],
            other=float("-inf"),
        )
        after = tl.max(all_after, axis=1)
    next_error = tl.load(discount + row, mask=inside, other=0.0) * _softplus(after)
    exponent = tl.where(inside, -next_error / tl.load(temperature + run), float("-inf"))
    powers = tl.exp(exponent - tl.max(exponent, axis=0))
    weight = powers / tl.sum(powers, axis=0) * SIZE * tl.load(share + row, mask=inside, other=0.0)
    tl.store(weight_out + row, weight, mask=inside)
    difference = predicted - tl.abs(tl.load(td_error + row, mask=inside, other=0.0)) - next_error
    slope = 2.0 / SIZE * difference * tl.sigmoid(before)
    _write_at_actions(gradient, row, taken, slope, inside, ACTIONS, BLOCK_A)
    mean = tl.sum(tl.where(inside, predicted, 0.0), axis=0) / SIZE
    tl.store(prediction_sum + run, tl.load(prediction_sum + run) + mean)


@triton.jit
def huber_and_statistics(
    error,
    weight,
    chosen,
    target,
    action,
    gradient,
    sums,
    BATCH: tl.constexpr,
):
    """Write the gradient of the weighted Huber loss, and add the run's statistics to its sums."""
    SIZE: tl.constexpr = BATCH.size
    ACTIONS: tl.constexpr = BATCH.actions
    BLOCK: tl.constexpr = BATCH.block
    BLOCK_A: tl.constexpr = BATCH.block_of_actions
    run = tl.program_id(0).to(tl.int64)
    b = tl.arange(0, BLOCK)
    inside = b < SIZE
    row = run * SIZE + b
    found = tl.load(error + row, mask=inside, other=0.0)
    share = tl.load(weight + row, mask=inside, other=0.0)
    slope = tl.minimum(tl.maximum(found, -1.0), 1.0) * share / SIZE
    taken = tl.load(action + row, mask=inside, other=0)
    _write_at_actions(gradient, row, taken, slope, inside, ACTIONS, BLOCK_A)
    off = tl.abs(found)
    inner = tl.minimum(off, 1.0)
    total = tl.sum(share, axis=0)
    effective = total * total / tl.sum(share * share, axis=0)
    place = sums + run * 5
    loss = tl.sum(share * (inner * (off - 0.5 * inner)), axis=0) / SIZE
    tl.store(place, tl.load(place) + loss.to(tl.float64))
    tl.store(place + 1, tl.load(place + 1) + (tl.sum(off, axis=0) / SIZE).to(tl.float64))
    mean_chosen = tl.sum(tl.load(chosen + row, mask=inside, other=0.0), axis=0) / SIZE
    tl.store(place + 2, tl.load(place + 2) + mean_chosen.to(tl.float64))
    mean_target = tl.sum(tl.load(target + row, mask=inside, other=0.0), axis=0) / SIZE
    tl.store(place + 3, tl.load(place + 3) + mean_target.to(tl.float64))
    tl.store(place + 4, tl.load(place + 4) + effective.to(tl.float64))
