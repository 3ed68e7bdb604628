"""Which successors of a batch an update must evaluate: those of rows whose target is not given."""

# In compiled code Python's numbers and numpy's are one and the same.
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from backsweep.jit.compilation import kernel


@kernel
def gather_needed(
    rows: NDArray[np.int64],
    discount: NDArray[Any],
    given: NDArray[Any],
    shares: NDArray[np.float64],
    images: NDArray[np.int64],
    place: NDArray[np.int64],
) -> bool:
    """Write what the networks must evaluate to `images` (R, B + S); return whether no run needs more than S successors.

    `rows` (R, 2, B) are the numbers of observations and successors, `given` (R, B) targets, NaN where there is none,
    which count with their run's share. Each row's observation comes first, then the needed successors, then the first
    observation again. `place` (R, B) is which of the S is a row's; 0 for rows that need none.
    """
    runs, size = rows.shape[0], rows.shape[2]
    for run in range(runs):
        last = size
        for row in range(size):
            images[run, row] = rows[run, 0, row]
            place[run, row] = 0
            if discount[run, row] != 0 and (shares[run] != 1 or np.isnan(given[run, row])):
                if last == images.shape[1]:
                    return False
                images[run, last] = rows[run, 1, row]
                place[run, row] = last - size
                last += 1
        images[run, last:] = rows[run, 0, 0]
    return True
