"""Targets from graph values for lanes in lock-step, from tables of their planners' arrays."""

# mypy: disable-error-code="no-any-return,arg-type,assignment,return-value"
from __future__ import annotations

import numpy as np
from numba import prange
from numpy.typing import NDArray

from backsweep.jit.array_table import (
    Entry,
    float_matrix,
    float_vector,
    int32_matrix,
    int32_vector,
    int64_matrix,
    int64_vector,
    word_vector,
)
from backsweep.jit.compilation import kernel, threaded
from backsweep.planning.model_kernels import Experience, Model
from backsweep.planning.target_kernels import read_targets

# Columns of settings.
PLANS = 0  # whether the lane has graph values
GAP = 1
FLOOR = 2
DISCOUNT = 3
SETTINGS = 4


@kernel
def read_lane_targets(
    row: NDArray[np.int64], settings: NDArray[np.float64], model: Entry, experience: Entry, target: NDArray[np.float32]
) -> None:
    """Write the targets of one lane's batch."""
    read_targets(
        row,
        settings[GAP],
        settings[FLOOR],
        settings[DISCOUNT],
        Experience(
            int32_matrix(experience, 0),
            float_matrix(experience, 1),
            int64_vector(experience, 2),
            int64_matrix(experience, 3),
            int32_vector(experience, 4),
        ),
        Model(
            int32_matrix(model, 0),
            word_vector(model, 1),
            float_matrix(model, 2),
            int64_vector(model, 3),
            int32_matrix(model, 4),
            float_matrix(model, 5),
            int32_matrix(model, 6),
            int32_vector(model, 7),
            int32_matrix(model, 8),
            float_matrix(model, 9),
            int32_vector(model, 10),
            float_vector(model, 11),
            int64_vector(model, 12),
        ),
        target,
    )


@threaded
def read_all_targets(
    row: NDArray[np.int64],
    settings: NDArray[np.float64],
    models: NDArray[np.int64],
    experiences: NDArray[np.int64],
    target: NDArray[np.float32],
) -> None:
    """Write the targets of the lanes that plan, (lanes, batch); others keep what is there."""
    for lane in prange(row.shape[0]):
        if settings[lane, PLANS] != 0.0:
            read_lane_targets(row[lane], settings[lane], models[lane], experiences[lane], target[lane])
