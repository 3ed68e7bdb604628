"""One run's batch: rows from the parts of its sampler, what the learner needs of them, and TD errors back again."""

# In compiled code Python's numbers and numpy's are one and the same.
# mypy: disable-error-code="no-any-return,arg-type,assignment,return-value"

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from backsweep.agent.fleet.compiled import codes
from backsweep.agent.learner.backward_targets_kernels import stops
from backsweep.jit.array_table import Addresses, Table, unpack, viewed
from backsweep.jit.compilation import inlined, kernel
from backsweep.jit.random_streams_kernels import next_word
from backsweep.planning.model_kernels import NOISY, Model
from backsweep.samplers.episodic_backward_kernels import walk_back
from backsweep.samplers.sum_tree_kernels import draw_prioritized, update_priorities
from backsweep.samplers.uniform_kernels import draw_uniform
from backsweep.store.reading_kernels import fold_steps
from backsweep.store.ring_kernels import FLAGS, GRAPH, LIVE, NEXT_OBSERVATION, OBSERVATION, RING, TOTAL, Ring
from backsweep.sweep.sweep_kernels import sweep_rows
from backsweep.sweep.window_kernels import exchange


@inlined
def part_of(arrays: Table, number: int) -> codes.Part:
    """Return a part of the run's sampler."""
    return unpack(codes.Part, arrays[codes.PARTS + codes.BUNDLES_PER_PART * number])


@inlined
def sampler_addresses(arrays: Table, number: int) -> Addresses:
    """Return the addresses of the arrays that a part's kind has: a tree's, or a sweep's."""
    return arrays[codes.PARTS + codes.BUNDLES_PER_PART * number + 1]


@inlined
def beta_at(total: int, part: codes.Part) -> float:
    """Return the exponent of the importance weights after `total` rows."""
    if part.ints[codes.PART_BETA_ROWS] == 0:
        return part.floats[codes.PART_BETA]
    done = min(total / part.ints[codes.PART_BETA_ROWS], 1.0)
    return part.floats[codes.PART_BETA] + done * (part.floats[codes.PART_FINAL_BETA] - part.floats[codes.PART_BETA])


@kernel
def draw_swept(arrays: Table, number: int, out: NDArray[np.int64]) -> None:
    """Draw rows by the sweep, through the shuffling window if there is one."""
    part, sweep, ring, graph = part_of(arrays, number), sampler_addresses(arrays, number), arrays[RING], arrays[GRAPH]
    counters, generators = unpack(Ring, ring).counters, part.generators
    filled = sweep_rows(ring, graph, sweep, out)
    if filled < out.shape[0]:
        draw_uniform(next_word(generators[codes.PART_GENERATOR]), counters[TOTAL], counters[LIVE], out[filled:])
    shuffle = part.ints[codes.PART_SHUFFLE]
    if shuffle == 0:
        return
    window, held = part.window, part.ints[codes.PART_HELD]
    while held < shuffle:
        more = sweep_rows(ring, graph, sweep, window[held:shuffle])
        if more == 0:
            break
        held += more
    incoming = np.empty(out.shape[0], np.int64)
    for i in range(out.shape[0]):
        incoming[i] = out[i]
    seed = next_word(generators[codes.PART_SHUFFLE_GENERATOR])
    part.ints[codes.PART_HELD] = exchange(seed, counters[TOTAL] - counters[LIVE], window, held, incoming, out)


@inlined
def is_noisy(arrays: Table) -> bool:
    """Say whether the run's graph values found outcomes too random to plan with, see `samplers.prioritized`."""
    plans = unpack(codes.RunArrays, arrays[codes.RUN]).ints[codes.RUN_PLANS] != 0
    return plans and unpack(Model, arrays[codes.MODEL]).counters[NOISY] != 0


@kernel
def draw_part(arrays: Table, number: int, row: NDArray[np.int64], weight: NDArray[np.float32]) -> None:
    """Draw the rows of one part of a sampler; weights come in as ones."""
    part, ring = part_of(arrays, number), unpack(Ring, arrays[RING])
    total, live, kind = ring.counters[TOTAL], ring.counters[LIVE], part.ints[codes.PART_KIND]
    generator = part.generators[codes.PART_GENERATOR]
    if kind == codes.UNIFORM or (kind == codes.PRIORITIZED and is_noisy(arrays)):
        draw_uniform(next_word(generator), total, live, row)
    elif kind == codes.PRIORITIZED:
        draw_prioritized(
            next_word(generator),
            total - live,
            ring.rows.shape[0],
            beta_at(total, part),
            part.ints[codes.PART_FLAG] != 0,
            sampler_addresses(arrays, number),
            row,
            weight,
        )
    elif kind == codes.SWEEP:
        draw_swept(arrays, number, row)
    elif kind == codes.EPISODES:
        filled, cursor = walk_back(
            next_word(generator),
            part.ints[codes.PART_CURSOR],
            part.ints[codes.PART_FLAG] != 0,
            part.ints[codes.PART_RUNNING] != 0,
            arrays[RING],
            row,
        )
        part.ints[codes.PART_CURSOR] = cursor
        if filled < row.shape[0]:
            draw_uniform(next_word(generator), total, live, row[filled:])


@kernel
def draw_run(arrays: Table) -> None:
    """Draw a batch: its rows, and what the learner needs of them, observations by their device rows."""
    run, batch, ring = (
        unpack(codes.RunArrays, arrays[codes.RUN]),
        unpack(codes.Batch, arrays[codes.BATCH]),
        unpack(Ring, arrays[RING]),
    )
    batch.weight[:] = 1.0
    place = 0
    for number in range(run.ints[codes.RUN_PARTS]):
        share = run.shares[number]
        if share > 0:
            draw_part(arrays, number, batch.row[place : place + share], batch.weight[place : place + share])
            place += share
    rows, values, actions = ring.rows, ring.values, viewed(ring.actions, np.int64)
    capacity, offset = rows.shape[0], run.ints[codes.RUN_FIRST_ROW]
    gamma, bootstrap = run.floats[codes.RUN_DISCOUNT], run.ints[codes.RUN_BOOTSTRAP] != 0
    for i in range(batch.row.shape[0]):
        slot = batch.row[i] % capacity
        last, reward, discount = fold_steps(slot, run.ints[codes.RUN_N_STEP], gamma, rows, values)
        batch.device_rows[0, i] = offset + rows[slot, OBSERVATION]
        batch.device_rows[1, i] = offset + rows[last, NEXT_OBSERVATION]
        batch.action[i] = actions[slot, 0]
        batch.reward[i] = reward
        batch.discount[i] = 0.0 if stops(rows[last, FLAGS], bootstrap) else discount


@kernel
def apply_run(step: int, arrays: Table) -> None:
    """Set priorities from the TD errors of the last batch; an error that is not a number stops the run."""
    run, batch = unpack(codes.RunArrays, arrays[codes.RUN]), unpack(codes.Batch, arrays[codes.BATCH])
    for i in range(batch.td_error.shape[0]):
        if not np.isfinite(batch.td_error[i]):
            run.ints[codes.RUN_STATE] = codes.NOT_FINITE
            run.ints[codes.RUN_FAILED_AT] = step
            return
    capacity = unpack(Ring, arrays[RING]).rows.shape[0]
    for number in range(run.ints[codes.RUN_PARTS]):
        part = part_of(arrays, number)
        if part.ints[codes.PART_KIND] == codes.PRIORITIZED:
            part.floats[codes.PART_LARGEST] = update_priorities(
                batch.row,
                batch.td_error,
                capacity,
                part.floats[codes.PART_ALPHA],
                part.floats[codes.PART_EPSILON],
                part.floats[codes.PART_CLIP],
                part.floats[codes.PART_LARGEST],
                sampler_addresses(arrays, number),
            )
