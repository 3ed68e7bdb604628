"""The moves of a task as arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class StateGraph:
    """The moves of a task. States 0..num_states-1 have actions; the num_terminal states after them have none."""

    next_state: NDArray[np.int32]
    """(num_states, actions): where each action leads."""
    reward: NDArray[np.float64]
    """(num_states, actions): the reward."""
    terminated: NDArray[np.bool_]
    """(num_states, actions): whether it ends the episode."""
    succeeded: NDArray[np.bool_]
    """(num_states, actions): whether it reaches the task's goal."""
    num_states: int
    num_terminal: int
    num_levels: int
    start_state: NDArray[np.int32]
    start_probability: NDArray[np.float64]
