"""SplitMix64: one 64-bit word stretched into a stream, identically compiled and interpreted.

    state[0] ──+ golden ratio──> state[0] ──mix──> word

The state is an array of one uint64, so that kernels can pass it on by reference.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from backsweep.compilation import inlined

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
MIX_2 = np.uint64(0x94D049BB133111EB)
SHIFT_30 = np.uint64(30)
SHIFT_27 = np.uint64(27)
SHIFT_31 = np.uint64(31)
SHIFT_11 = np.uint64(11)
UNIT = 1.0 / 9007199254740992.0  # 2 ** -53


@inlined
def mix(word: np.uint64) -> np.uint64:
    """Scramble a word; a bijection on 64 bits."""
    word = (word ^ (word >> SHIFT_30)) * MIX_1
    word = (word ^ (word >> SHIFT_27)) * MIX_2
    return word ^ (word >> SHIFT_31)


@inlined
def draw_unit(state: NDArray[np.uint64]) -> float:
    """Draw a float from [0, 1) with 53 random bits."""
    state[0] = state[0] + GOLDEN
    return np.float64(mix(state[0]) >> SHIFT_11) * UNIT


@inlined
def draw_below(state: NDArray[np.uint64], bound: int) -> int:
    """Draw an int from 0..bound-1. For bounds below 2**31 the bias is below 2**-22 of a probability."""
    return int(draw_unit(state) * bound)
