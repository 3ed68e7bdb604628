"""Targets from graph values for runs in lock-step."""

# mypy: disable-error-code="no-any-return,arg-type,assignment,return-value"
from __future__ import annotations

import numpy as np
from numba import prange
from numpy.typing import NDArray

from backsweep.jit.array_table import Table, unpack
from backsweep.jit.compilation import kernel, threaded
from backsweep.planning.model_kernels import Experience, Model
from backsweep.planning.target_kernels import read_targets, read_tried_values

# Bundles of a run.
MODEL = 0
EXPERIENCE = 1
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
    experience, model = unpack(Experience, arrays[EXPERIENCE]), unpack(Model, arrays[MODEL])
    read_targets(row, settings[GAP], settings[FLOOR], settings[DISCOUNT], experience, model, target)
    if tried.size:
        read_tried_values(row, experience, model, tried)


@threaded
def read_all_targets(
    row: NDArray[np.int64],
    settings: NDArray[np.float64],
    arrays: NDArray[np.int64],
    target: NDArray[np.float32],
    tried: NDArray[np.float32],
) -> None:
    """Write the targets (runs, batch) of the runs that plan; others keep what is there.

    `tried` (runs, batch, actions) gets the values of tried actions; it is empty if they are not wanted.
    """
    for run in prange(row.shape[0]):
        read_run_targets(row[run], settings[run], arrays[run], target[run], tried[run])
