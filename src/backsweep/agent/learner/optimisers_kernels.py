"""Adam on the CPU in one pass over the memory.

A unit that never fires has no gradient, and its moments decay until they are denormal, which processors compute a
hundred times more slowly. Here they stop at a size that no parameter notices.
"""

# In compiled code Python's numbers and numpy's are one and the same.
# mypy: disable-error-code="no-any-return,arg-type,assignment,return-value,call-overload"

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from backsweep.jit.compilation import kernel


@kernel
def adam(
    parameters: NDArray[Any], gradient: NDArray[Any], mean: NDArray[Any], square: NDArray[Any], constants: NDArray[Any]
) -> None:
    """Take one step with flat arrays of one type.

    `constants` are 1 - beta1, beta2, 1 - beta2 (whose last digits float32 would lose), epsilon, the divisor of the root
    of the mean square, the factor of the quotient, the smallest size of a mean that counts, and the smallest mean
    square.
    """
    new1, beta2, new2, epsilon, divisor, factor, smallest_mean, smallest_square = constants
    zero, inverse = parameters.dtype.type(0), np.divide(parameters.dtype.type(1), divisor)
    for place in range(parameters.shape[0]):
        slope = gradient[place]
        first = mean[place] + new1 * (slope - mean[place])
        first = zero if abs(first) < smallest_mean else first
        second = max(beta2 * square[place] + new2 * slope * slope, smallest_square)
        mean[place], square[place] = first, second
        # numpy's division: Python's checks for zero, which would keep the loop from being vectorised.
        parameters[place] += factor * np.divide(first, np.sqrt(second) * inverse + epsilon)
