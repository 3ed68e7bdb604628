"""Seeds for replays that frameworks make without a seed."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np


def seed_from_numpy() -> int:
    """Return a seed derived from numpy's global random state, without changing that state.

    Frameworks seed that state before they make their buffers. So the same seed gives the same rows, and different seeds
    give different streams.
    """
    state: Any = np.random.get_state()  # noqa: NPY002 - looked at, not drawn from
    return zlib.crc32(np.asarray(state[1]).tobytes() + int(state[2]).to_bytes(4, "little"))
