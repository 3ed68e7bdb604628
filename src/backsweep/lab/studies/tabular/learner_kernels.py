"""One update of a table of values.

    values[s, a]    the table that is learned
    target[s, a]    the table to bootstrap from: a copy, or the learned table itself
    known[row]      a precomputed target (EBU's), NaN for the one-step target

All targets of a batch are computed first; then its rows are applied in order.
"""

# In compiled code Python's numbers and numpy's are one and the same.
# mypy: disable-error-code="no-any-return,arg-type,assignment,return-value"

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from backsweep.jit.compilation import kernel


@kernel
def back_up(
    state: NDArray[np.int64],
    action: NDArray[np.int64],
    reward: NDArray[np.float32],
    discount: NDArray[np.float32],
    following: NDArray[np.int64],
    known: NDArray[np.float64],
    step: NDArray[np.float64],
    target: NDArray[np.float64],
    values: NDArray[np.float64],
    error: NDArray[np.float64],
) -> None:
    """Move values[s, a] by `step` (0..1) of the way to the target of each row; write the TD errors."""
    rows = state.size
    wanted = np.empty(rows, np.float64)
    for row in range(rows):
        if np.isnan(known[row]):
            best = target[following[row], 0]
            for other in range(1, target.shape[1]):
                best = max(best, target[following[row], other])
            wanted[row] = reward[row] + discount[row] * best
        else:
            wanted[row] = known[row]
        error[row] = wanted[row] - values[state[row], action[row]]
    for row in range(rows):
        old = values[state[row], action[row]]
        values[state[row], action[row]] = old + step[row] * (wanted[row] - old)


@kernel
def is_solved(values: NDArray[np.float64]) -> bool:
    """Return whether going forward is strictly better everywhere; a tie is not a solution."""
    for state in range(values.shape[0] - 1):
        if values[state, 0] <= values[state, 1]:
            return False
    return True


@kernel
def next_choices(following: NDArray[np.int64], values: NDArray[np.float64], choice: NDArray[np.int64]) -> None:
    """Write the first best action of each successor."""
    for row in range(following.size):
        choice[row] = 0
        for action in range(1, values.shape[1]):
            if values[following[row], action] > values[following[row], choice[row]]:
                choice[row] = action
