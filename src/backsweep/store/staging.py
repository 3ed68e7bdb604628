"""Checking what a caller of `add` gives, in any form it may come in, and laying it down where the kernels read it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from backsweep.store.store_kernels import TERMINATED, TRUNCATED

USUAL_DTYPES = tuple(
    tuple(np.dtype(kind) for kind in kinds)
    for kinds in ((np.int64,), (np.float64, np.float32), (np.bool_,), (np.bool_,))
)
"""Of actions, rewards, terminated and truncated, as vector environments return them."""
LARGEST_REWARD = float(np.finfo(np.float32).max)  # batches hold 32-bit rewards


def lay_down(staged: Any, value: Any, place: slice) -> None:
    """Copy checked arrays to a place of staging arrays of the same form."""
    if isinstance(staged, dict):
        for key, part in staged.items():
            lay_down(part, value[key], place)
    elif isinstance(staged, tuple):
        for part, item in zip(staged, value, strict=True):
            lay_down(part, item, place)
    else:
        staged[place] = value


def stage_rewards(staged: NDArray[np.float64], reward: Any) -> None:
    """Check a reward per lane, of any dtype, and lay them down."""
    n = len(staged)
    if n == 1 and isinstance(reward, (float, int)) and -LARGEST_REWARD <= reward <= LARGEST_REWARD:
        staged[0] = reward
        return
    array = np.asarray(reward)
    if array.dtype.kind not in "iuf":
        raise TypeError(f"reward must be a number per lane, got dtype {array.dtype}")
    if array.shape != (n,) and (n != 1 or array.shape != ()):
        raise ValueError(f"reward must have shape {(n,)}, got {array.shape}")
    array = array.astype(np.float64)  # the largest reward does not fit a 16-bit one
    if not np.isfinite(array).all():
        raise ValueError(f"reward must be finite, got {reward!r:.200}")
    if (np.abs(array) > LARGEST_REWARD).any():
        raise ValueError(f"reward must fit a 32-bit float, at most {LARGEST_REWARD:.3g}, got {reward!r:.200}")
    staged[:] = array


def stage_flags(staged: NDArray[np.uint8], terminated: Any, truncated: Any) -> None:
    """Check how each lane's step ended, and lay it down as bits."""
    if len(staged) == 1 and isinstance(terminated, (bool, np.bool_)) and isinstance(truncated, (bool, np.bool_)):
        staged[0] = (TERMINATED if terminated else 0) | (TRUNCATED if truncated else 0)
        return
    staged[:] = _flags(terminated, len(staged), "terminated") * np.uint8(TERMINATED)
    staged += _flags(truncated, len(staged), "truncated") * np.uint8(TRUNCATED)


def _flags(value: Any, n: int, name: str) -> NDArray[np.bool_]:
    array = np.asarray(value)
    if array.dtype != np.bool_:
        raise TypeError(f"{name} must be bool, got dtype {array.dtype}")
    if array.shape != (n,) and (n != 1 or array.shape != ()):
        raise ValueError(f"{name} must have shape {(n,)}, got {array.shape}")
    return array
