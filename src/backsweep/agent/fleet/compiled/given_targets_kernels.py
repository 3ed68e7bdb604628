"""EBU's walks of all runs of a group, and their targets from graph values.

`agent.learner.backward_targets_kernels` has the walk of one run.
"""

# In compiled code Python's numbers and numpy's are one and the same.
# mypy: disable-error-code="no-any-return,arg-type,assignment,return-value"

from __future__ import annotations

import numpy as np
from numba import prange
from numpy.typing import NDArray

from backsweep.agent.fleet.compiled import codes
from backsweep.agent.learner import backward_targets_kernels
from backsweep.agent.learner.backward_targets_kernels import Backward, Walk
from backsweep.jit.array_table import Table, unpack
from backsweep.jit.compilation import kernel, threaded
from backsweep.planning.model_kernels import Experience, Model
from backsweep.planning.target_kernels import read_targets, read_tried_values
from backsweep.store.ring_kernels import NEXT_OBSERVATION, RING, Ring


@kernel
def find_episodes(
    runs: NDArray[np.int64], walks: Table, found: NDArray[np.int64], next_places: NDArray[np.int64]
) -> None:
    """List the episodes that the batches of all runs begin, and count each run's.

    Row i of `next_places` gets the device rows of what comes after the steps of run i.
    """
    for i in range(runs.shape[0]):
        found[i] = 0
        run = unpack(codes.RunArrays, runs[i, codes.RUN])
        if run.ints[codes.RUN_STATE] != codes.GOING:
            continue
        found[i] = backward_targets_kernels.find_episodes(runs[i, RING], walks[i])
        rows, walk = unpack(Ring, runs[i, RING]).rows, unpack(Walk, walks[i])
        for step in range(walk.lengths.sum()):
            row = walk.steps[step] % rows.shape[0]
            next_places[i, step] = run.ints[codes.RUN_FIRST_ROW] + rows[row, NEXT_OBSERVATION]


@kernel
def walk_through(
    runs: NDArray[np.int64],
    walks: Table,
    rule: Backward,
    starts: NDArray[np.int64],
    next_target: NDArray[np.floating],
    next_online: NDArray[np.floating],
    known: NDArray[np.floating],
    weight: NDArray[np.floating],
) -> None:
    """Walk through the batches of all runs; rows that are skipped get no weight.

    Each run has its own discount and treatment of time limits. The values of a run's steps begin at `starts[run]` of
    the values given.
    """
    for i in range(runs.shape[0]):
        run = unpack(codes.RunArrays, runs[i, codes.RUN])
        if run.ints[codes.RUN_STATE] != codes.GOING:
            continue
        gamma, bootstrap = run.floats[codes.RUN_DISCOUNT], run.ints[codes.RUN_BOOTSTRAP] != 0
        own = Backward(gamma, bootstrap, rule.double, rule.diffusion, rule.skipped_steps)
        target, online = next_target[starts[i] :], next_online[starts[i] :]
        backward_targets_kernels.walk_through(runs[i, RING], walks[i], own, target, online, known[i])
        skipped = unpack(Walk, walks[i]).skipped
        for place in range(skipped.shape[0]):
            if skipped[place]:
                weight[i, place] = 0.0


# Columns of settings.
PLANS = 0  # whether the run has graph values
GAP = 1
FLOOR = 2
DISCOUNT = 3
SETTINGS = 4


@kernel
def read_run_targets(
    row: NDArray[np.int64],
    settings: NDArray[np.float64],
    arrays: Table,
    target: NDArray[np.float32],
    tried: NDArray[np.float32],
) -> None:
    """Write the targets of one run's batch, and the values of its states' tried actions if wanted; if it plans."""
    if settings[PLANS] == 0.0:
        return
    experience, model = unpack(Experience, arrays[codes.EXPERIENCE]), unpack(Model, arrays[codes.MODEL])
    read_targets(row, settings[GAP], settings[FLOOR], settings[DISCOUNT], experience, model, target)
    if tried.size:
        read_tried_values(row, experience, model, tried)


@threaded
def read_all_targets(
    row: NDArray[np.int64],
    settings: NDArray[np.float64],
    runs: NDArray[np.int64],
    target: NDArray[np.float32],
    tried: NDArray[np.float32],
) -> None:
    """Write the targets (runs, batch) of the runs that plan; others keep what is there.

    `tried` (runs, batch, actions) gets the values of tried actions; it is empty if they are not wanted.
    """
    for run in prange(row.shape[0]):
        read_run_targets(row[run], settings[run], runs[run], target[run], tried[run])
