"""One lane's batch: rows from the parts of its sampler, what the learner needs of them, and TD errors back again."""

# In compiled code Python's numbers and numpy's are one and the same.
# mypy: disable-error-code="no-any-return,arg-type,assignment,return-value"

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from backsweep.agent.fleet.compiled.codes import (
    EPISODES,
    LANE_BOOTSTRAP,
    LANE_DISCOUNT,
    LANE_FAILED_AT,
    LANE_FIRST_ROW,
    LANE_PARTS,
    LANE_STATE,
    NOT_FINITE,
    PART_ALPHA,
    PART_BETA,
    PART_BETA_ROWS,
    PART_BY_VISITS,
    PART_CLIP,
    PART_CURSOR,
    PART_EPSILON,
    PART_FINAL_BETA,
    PART_FLAG,
    PART_GENERATOR,
    PART_HELD,
    PART_KAPPA,
    PART_KIND,
    PART_LARGEST,
    PART_PREDECESSORS,
    PART_ROOTS,
    PART_RUNNING,
    PART_SEPARATE,
    PART_SHUFFLE,
    PART_SHUFFLE_GENERATOR,
    PART_STITCH,
    PRIORITIZED,
    SWEEP,
    SWEEP_COUNTERS,
    SWEEP_PENDING,
    SWEEP_QUEUE,
    SWEEP_RANDOM,
    SWEEP_ROOTS,
    SWEEP_VISITED,
    SWEEP_WINDOW,
    TREE_LEVELS,
    TREE_MINIMA,
    TREE_SUMS,
    UNIFORM,
)
from backsweep.jit.array_table import (
    Entry,
    float_matrix,
    float_vector,
    int32_matrix,
    int32_vector,
    int64_matrix,
    int64_of_bytes,
    int64_vector,
    word_vector,
)
from backsweep.jit.compilation import inlined, kernel
from backsweep.jit.random_streams_kernels import next_word
from backsweep.samplers.episodic_backward_kernels import walk_back
from backsweep.samplers.sum_tree_kernels import draw_prioritized, update_priorities
from backsweep.store.ingest_kernels import (
    GRAPH_COUNTERS,
    GRAPH_EDGES,
    GRAPH_POOL,
    GRAPH_REWARD_SUMS,
    GRAPH_ROWS,
    GRAPH_TERMINALS,
    GRAPH_VERTICES,
    STORE_ACTIONS,
    STORE_COUNTERS,
    STORE_EPISODES,
    STORE_LIVE_EPISODES,
    STORE_ROWS,
    STORE_VALUES,
)
from backsweep.store.store_kernels import (
    FLAGS,
    LIVE,
    NEXT_OBSERVATION,
    OBSERVATION,
    REWARD,
    TERMINATED,
    TOTAL,
    TRUNCATED,
    draw_uniform,
)
from backsweep.sweep.sweep_kernels import exchange, sweep_rows


@inlined
def beta_at(total: int, ints: NDArray[np.int64], floats: NDArray[np.float64]) -> float:
    """Return the exponent of the importance weights after `total` rows."""
    if ints[PART_BETA_ROWS] == 0:
        return floats[PART_BETA]
    done = min(total / ints[PART_BETA_ROWS], 1.0)
    return floats[PART_BETA] + done * (floats[PART_FINAL_BETA] - floats[PART_BETA])


@kernel
def advance_sweep(
    ints: NDArray[np.int64],
    floats: NDArray[np.float64],
    arrays: Entry,
    store: Entry,
    graph: Entry,
    out: NDArray[np.int64],
) -> int:
    """Return how many rows the sweep gave."""
    return sweep_rows(
        word_vector(arrays, SWEEP_RANDOM),
        ints[PART_ROOTS],
        ints[PART_PREDECESSORS],
        ints[PART_FLAG] != 0,
        floats[PART_KAPPA],
        ints[PART_SEPARATE] != 0,
        ints[PART_BY_VISITS] != 0,
        ints[PART_STITCH] != 0,
        int32_matrix(store, STORE_ROWS),
        int64_matrix(store, STORE_EPISODES),
        int64_vector(store, STORE_COUNTERS),
        int32_matrix(graph, GRAPH_ROWS),
        int64_matrix(graph, GRAPH_VERTICES),
        float_vector(graph, GRAPH_REWARD_SUMS),
        int32_matrix(graph, GRAPH_EDGES),
        int32_vector(graph, GRAPH_POOL),
        int32_vector(graph, GRAPH_TERMINALS),
        int64_vector(graph, GRAPH_COUNTERS),
        int64_matrix(arrays, SWEEP_QUEUE),
        int64_vector(arrays, SWEEP_VISITED),
        int64_vector(arrays, SWEEP_PENDING),
        int64_matrix(arrays, SWEEP_ROOTS),
        int64_vector(arrays, SWEEP_COUNTERS),
        out,
    )


@kernel
def draw_swept(
    ints: NDArray[np.int64],
    floats: NDArray[np.float64],
    generators: NDArray[np.uint64],
    arrays: Entry,
    store: Entry,
    graph: Entry,
    out: NDArray[np.int64],
) -> None:
    """Draw rows by the sweep, through the shuffling window if there is one."""
    counters = int64_vector(store, STORE_COUNTERS)
    filled = advance_sweep(ints, floats, arrays, store, graph, out)
    if filled < out.shape[0]:
        draw_uniform(next_word(generators[PART_GENERATOR]), counters[TOTAL], counters[LIVE], out[filled:])
    shuffle = ints[PART_SHUFFLE]
    if shuffle == 0:
        return
    window, held = int64_vector(arrays, SWEEP_WINDOW), ints[PART_HELD]
    while held < shuffle:
        more = advance_sweep(ints, floats, arrays, store, graph, window[held:shuffle])
        if more == 0:
            break
        held += more
    incoming = out.copy()
    seed = next_word(generators[PART_SHUFFLE_GENERATOR])
    ints[PART_HELD] = exchange(seed, counters[TOTAL] - counters[LIVE], window, held, incoming, out)


@kernel
def draw_part(
    ints: NDArray[np.int64],
    floats: NDArray[np.float64],
    generators: NDArray[np.uint64],
    arrays: Entry,
    store: Entry,
    graph: Entry,
    row: NDArray[np.int64],
    weight: NDArray[np.float32],
) -> None:
    """Draw the rows of one part of a sampler; weights come in as ones."""
    counters = int64_vector(store, STORE_COUNTERS)
    total, live, kind = counters[TOTAL], counters[LIVE], ints[PART_KIND]
    generator = generators[PART_GENERATOR]
    if kind == UNIFORM:
        draw_uniform(next_word(generator), total, live, row)
    elif kind == PRIORITIZED:
        draw_prioritized(
            next_word(generator),
            total - live,
            int32_matrix(store, STORE_ROWS).shape[0],
            beta_at(total, ints, floats),
            ints[PART_FLAG] != 0,
            int64_vector(arrays, TREE_LEVELS),
            float_vector(arrays, TREE_SUMS),
            float_vector(arrays, TREE_MINIMA),
            row,
            weight,
        )
    elif kind == SWEEP:
        draw_swept(ints, floats, generators, arrays, store, graph, row)
    elif kind == EPISODES:
        filled, cursor = walk_back(
            next_word(generator),
            ints[PART_CURSOR],
            ints[PART_FLAG] != 0,
            ints[PART_RUNNING] != 0,
            int32_matrix(store, STORE_ROWS),
            int64_matrix(store, STORE_EPISODES),
            int32_vector(store, STORE_LIVE_EPISODES),
            counters,
            row,
        )
        ints[PART_CURSOR] = cursor
        if filled < row.shape[0]:
            draw_uniform(next_word(generator), total, live, row[filled:])


@kernel
def draw_lane(
    shares: NDArray[np.int64],
    ints: NDArray[np.int64],
    floats: NDArray[np.float64],
    store: Entry,
    graph: Entry,
    part_ints: NDArray[np.int64],
    part_floats: NDArray[np.float64],
    part_generators: NDArray[np.uint64],
    part_arrays: NDArray[np.int64],
    row: NDArray[np.int64],
    first: NDArray[np.int64],
    second: NDArray[np.int64],
    action: NDArray[np.int64],
    reward: NDArray[np.float32],
    discount: NDArray[np.float32],
    weight: NDArray[np.float32],
) -> None:
    """Draw a batch: its rows, and what the learner needs of them, observations by their rows in the bank."""
    weight[:] = 1.0
    place = 0
    for part in range(ints[LANE_PARTS]):
        share = shares[part]
        if share > 0:
            draw_part(
                part_ints[part],
                part_floats[part],
                part_generators[part],
                part_arrays[part],
                store,
                graph,
                row[place : place + share],
                weight[place : place + share],
            )
            place += share
    rows, values = int32_matrix(store, STORE_ROWS), float_matrix(store, STORE_VALUES)
    actions = int64_of_bytes(store, STORE_ACTIONS)
    capacity, offset = rows.shape[0], ints[LANE_FIRST_ROW]
    gamma = floats[LANE_DISCOUNT]
    for i in range(row.shape[0]):
        slot = row[i] % capacity
        first[i] = offset + rows[slot, OBSERVATION]
        second[i] = offset + rows[slot, NEXT_OBSERVATION]
        action[i] = actions[slot]
        reward[i] = values[slot, REWARD]
        flags = rows[slot, FLAGS]
        ends = (flags & TERMINATED) != 0 or (not ints[LANE_BOOTSTRAP] and (flags & TRUNCATED) != 0)
        discount[i] = 0.0 if ends else gamma


@kernel
def apply_lane(
    step: int,
    ints: NDArray[np.int64],
    store: Entry,
    part_ints: NDArray[np.int64],
    part_floats: NDArray[np.float64],
    part_arrays: NDArray[np.int64],
    row: NDArray[np.int64],
    td_error: NDArray[np.float64],
) -> None:
    """Set priorities from the TD errors of the last batch; an error that is not a number stops the lane."""
    for i in range(row.shape[0]):
        if not np.isfinite(td_error[i]):
            ints[LANE_STATE] = NOT_FINITE
            ints[LANE_FAILED_AT] = step
            return
    capacity = int32_matrix(store, STORE_ROWS).shape[0]
    for part in range(ints[LANE_PARTS]):
        if part_ints[part, PART_KIND] == PRIORITIZED:
            numbers, arrays = part_floats[part], part_arrays[part]
            numbers[PART_LARGEST] = update_priorities(
                row,
                td_error,
                capacity,
                numbers[PART_ALPHA],
                numbers[PART_EPSILON],
                numbers[PART_CLIP],
                numbers[PART_LARGEST],
                int64_vector(arrays, TREE_LEVELS),
                float_vector(arrays, TREE_SUMS),
                float_vector(arrays, TREE_MINIMA),
            )
