"""NChain's moves.

state   0 ──> 1 ──> 2 ──> ... ──> N-1     forward; entering N-1 pays 1 and ends the episode
        0 <── 1 <── 2 <── ...             backward; at 0 it has no effect
"""

# In compiled code Python's numbers and numpy's are one and the same.
# mypy: disable-error-code="no-any-return,arg-type,assignment,return-value"

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from backsweep.jit.compilation import kernel
from backsweep.jit.random_streams_kernels import draw_below, draw_unit

FORWARD = 0
BACKWARD = 1
NUM_ACTIONS = 2


@kernel
def next_state(state: int, action: int, length: int) -> int:
    """Return the state that `action` leads to."""
    if action == FORWARD:
        return min(state + 1, length - 1)
    return max(state - 1, 0)


@kernel
def step_lanes(
    actions: NDArray[np.int64],
    resting: NDArray[np.bool_],
    random_action_chance: float,
    length: int,
    max_steps: int,
    streams: NDArray[np.uint64],
    states: NDArray[np.int64],
    steps: NDArray[np.int64],
    rewards: NDArray[np.float64],
    terminated: NDArray[np.bool_],
    truncated: NDArray[np.bool_],
) -> None:
    """Move every lane that is not resting; all arrays have one entry per lane."""
    for lane in range(actions.size):
        if resting[lane]:
            continue
        action = actions[lane]
        stream = streams[lane : lane + 1]
        if random_action_chance > 0.0 and draw_unit(stream) < random_action_chance:
            action = draw_below(stream, NUM_ACTIONS)
        states[lane] = next_state(states[lane], action, length)
        steps[lane] += 1
        terminated[lane] = states[lane] == length - 1
        truncated[lane] = steps[lane] >= max_steps
        rewards[lane] = 1.0 if terminated[lane] else 0.0
