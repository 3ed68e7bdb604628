"""The numbers of an update between its networks, on the CPU: TD errors, then the loss with its gradient.

In torch they are two dozen operations on arrays of a few hundred numbers, which take longer to call than to compute.
"""

# In compiled code Python's numbers and numpy's are one and the same.
# mypy: disable-error-code="no-any-return,arg-type,assignment,return-value,call-overload"

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from backsweep.jit.compilation import kernel

CHOSEN, TARGET, ERROR = 0, 1, 2


@kernel
def td_errors(
    values: NDArray[Any],
    next_target: NDArray[Any],
    action: NDArray[np.int64],
    reward: NDArray[Any],
    discount: NDArray[Any],
    known: NDArray[Any],
    shares: NDArray[Any],
    out: NDArray[Any],
    next_action: NDArray[np.int64],
) -> None:
    """Write each row's value, Double DQN target and TD error to `out` (3, R, B), and the best next actions (R, B).

    `values` (R, 2 B, A) are those of the observations, then of the successors. `known` (R, B or 0) are given targets,
    NaN where there is none; they count with their run's share.
    """
    runs, size = action.shape
    for run in range(runs):
        for row in range(size):
            best = 0
            for other in range(1, values.shape[2]):
                value = values[run, size + row, other]
                if value > values[run, size + row, best] or np.isnan(value):  # so that a failed run is noticed
                    best = other
            target = reward[run, row] + discount[run, row] * next_target[run, row, best]
            if known.shape[1] > 0 and not np.isnan(known[run, row]):
                share = shares[run]
                target = share * known[run, row] + (reward.dtype.type(1) - share) * target
            chosen = values[run, row, action[run, row]]
            out[CHOSEN, run, row], out[TARGET, run, row], out[ERROR, run, row] = chosen, target, chosen - target
            next_action[run, row] = best


@kernel
def huber_and_statistics(
    td_error: NDArray[Any],
    weight: NDArray[Any],
    chosen: NDArray[Any],
    target: NDArray[Any],
    action: NDArray[np.int64],
    gradient: NDArray[Any],
    sums: NDArray[np.float64],
) -> None:
    """Write the gradient (R, B, A) of the weighted Huber loss, and add the `STATISTICS` of the update to `sums`."""
    runs, size = td_error.shape
    one, count = td_error.dtype.type(1), td_error.dtype.type(size)
    for run in range(runs):
        loss = absolute = value = aim = total = squares = 0.0
        for row in range(size):
            error, share = td_error[run, row], weight[run, row]
            for other in range(gradient.shape[2]):
                gradient[run, row, other] = 0
            gradient[run, row, action[run, row]] = min(max(error, -one), one) * share / count
            off = abs(error)
            inner = min(off, one)
            loss += share * (inner * (off - 0.5 * inner))
            absolute += off
            value += chosen[run, row]
            aim += target[run, row]
            total += share
            squares += share * share
        sums[run, 0] += loss / size
        sums[run, 1] += absolute / size
        sums[run, 2] += value / size
        sums[run, 3] += aim / size
        sums[run, 4] += np.divide(total * total, squares)
