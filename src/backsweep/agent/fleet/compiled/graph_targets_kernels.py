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
    row: NDArray[np.int64], settings: NDArray[np.float64], arrays: Table, target: NDArray[np.float32]
) -> None:
    """Write the targets of one run's batch, if it plans."""
    if settings[PLANS] == 0.0:
        return
    experience, model = unpack(Experience, arrays[EXPERIENCE]), unpack(Model, arrays[MODEL])
    read_targets(row, settings[GAP], settings[FLOOR], settings[DISCOUNT], experience, model, target)


@kernel
def read_run_tried(
    row: NDArray[np.int64], settings: NDArray[np.float64], arrays: Table, tried: NDArray[np.float32]
) -> None:
    """Write the values of the tried actions of the states of one run's batch, if it plans."""
    if settings[PLANS] == 0.0:
        return
    read_tried_values(row, unpack(Experience, arrays[EXPERIENCE]), unpack(Model, arrays[MODEL]), tried)


@threaded
def read_all_targets(
    row: NDArray[np.int64],
    settings: NDArray[np.float64],
    arrays: NDArray[np.int64],
    target: NDArray[np.float32],
) -> None:
    """Write the targets of the runs that plan, (runs, batch); others keep what is there."""
    for run in prange(row.shape[0]):
        read_run_targets(row[run], settings[run], arrays[run], target[run])


@threaded
def read_all_tried(
    row: NDArray[np.int64],
    settings: NDArray[np.float64],
    arrays: NDArray[np.int64],
    tried: NDArray[np.float32],
) -> None:
    """Write the values of the tried actions of the rows' states, (runs, batch, actions), for runs that plan."""
    for run in prange(row.shape[0]):
        read_run_tried(row[run], settings[run], arrays[run], tried[run])
