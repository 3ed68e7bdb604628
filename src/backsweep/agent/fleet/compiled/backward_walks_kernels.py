"""EBU's walks of all runs of a group; see `agent.learner.backward_targets_kernels` for one run's."""

# In compiled code Python's numbers and numpy's are one and the same.
# mypy: disable-error-code="no-any-return,arg-type,assignment,return-value"

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from backsweep.agent.fleet.compiled import codes
from backsweep.agent.learner import backward_targets_kernels
from backsweep.agent.learner.backward_targets_kernels import Backward, Walk
from backsweep.jit.array_table import Table, unpack
from backsweep.jit.compilation import kernel
from backsweep.store.store_kernels import NEXT_OBSERVATION, RING, Ring


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
