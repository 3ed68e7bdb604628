"""The forms of arguments of `add` that a kernel can stage.

Arrays with the dtype and shape of their space, and numbers and flags as scalars or arrays, need no conversion: a kernel
reads them in place. All other arguments, wrong ones included, are converted and checked in Python.
"""

from __future__ import annotations

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from backsweep.store.argument_form_kernels import (
    ACTION_DTYPE,
    ACTION_HIGH,
    ACTION_KIND,
    ACTION_LOW,
    ARRAY,
    FORM_NUMBERS,
    LANES,
    NUMBER,
    OBSERVATION_BYTES,
    OBSERVATION_DTYPE,
    OBSERVATION_HIGH,
    OBSERVATION_KIND,
    OBSERVATION_LOW,
    Form,
)
from backsweep.store.layout import Field, Layout

EXPONENTS = {
    np.dtype(np.float32): (0x7F800000, 0x7F800000 << 32),
    np.dtype(np.float64): (0x7FF0000000000000, 0x7FF0000000000000),
}
"""The bits that are all set in a float that is not finite, for the lower and for the upper half of a word."""
NO_BOUNDS = np.zeros(0, np.float64)


def usual_form(layout: Layout, action_layout: Layout, lanes: int, limits: NDArray[np.float64]) -> Form:
    """Return the form in which a replay's arguments are taken as they are; `limits` holds the largest reward."""
    numbers, low, high = np.zeros(FORM_NUMBERS, np.int64), NO_BOUNDS, NO_BOUNDS
    numbers[LANES] = lanes
    exponents: tuple[int, ...] = ()
    observation, action = layout.single, action_layout.single
    if observation is not None and _is_number(layout, observation):
        numbers[OBSERVATION_KIND] = NUMBER
        numbers[[OBSERVATION_LOW, OBSERVATION_HIGH]] = observation.low, observation.high
    elif observation is not None and observation.low is None and observation.frames == 1:
        exponents = EXPONENTS.get(observation.dtype, ())
        if exponents or observation.dtype.kind in "biu":
            numbers[OBSERVATION_KIND] = ARRAY
            numbers[OBSERVATION_DTYPE] = _address(observation)
            numbers[OBSERVATION_BYTES] = observation.nbytes
    if action is not None and _is_number(action_layout, action):
        numbers[ACTION_KIND] = NUMBER
        numbers[[ACTION_LOW, ACTION_HIGH]] = action.low, action.high
    elif action is not None and isinstance(action_layout.space, gym.spaces.Box) and action.dtype in EXPONENTS:
        numbers[ACTION_KIND] = ARRAY
        numbers[ACTION_DTYPE] = _address(action)
        low, high = (np.asarray(bound, np.float64).ravel() for bound in (action.low, action.high))
    return Form(numbers, limits, _shape(observation), _shape(action), low, high, np.array(exponents, np.uint64))


def _is_number(layout: Layout, field: Field) -> bool:
    return isinstance(layout.space, gym.spaces.Discrete) and field.dtype == np.int64


def _address(field: Field) -> int:
    return id(np.dtype(field.dtype.type))  # the one that numpy itself gives its arrays


def _shape(field: Field | None) -> NDArray[np.int64]:
    return np.array([0] if field is None else [*field.shape, field.dtype.itemsize], np.int64)
