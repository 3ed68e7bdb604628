"""Two streams of random words, identically compiled and interpreted.

SplitMix64 expands one 64-bit word into a stream; its state is an array of one word, so that kernels can pass it by
reference:

    state[0] ──+ golden ratio──> state[0] ──mix──> word

PCG64 is numpy's own generator, for kernels that borrow a component's generator; its state is an array of
four words, and gives the words that `random_raw` gives:

    state    [ high | low | increment high | increment low ]
"""

# In compiled code Python's numbers and numpy's are one and the same.
# mypy: disable-error-code="no-any-return,arg-type,assignment,return-value"

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from backsweep.jit.compilation import inlined

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
MIX_2 = np.uint64(0x94D049BB133111EB)
SHIFT_30 = np.uint64(30)
SHIFT_27 = np.uint64(27)
SHIFT_31 = np.uint64(31)
SHIFT_11 = np.uint64(11)
UNIT = 1.0 / 9007199254740992.0  # 2 ** -53
PCG_HIGH = np.uint64(0x2360ED051FC65DA4)
PCG_LOW = np.uint64(0x4385DF649FCCF645)
LOW_32 = np.uint64(0xFFFFFFFF)
SHIFT_32 = np.uint64(32)
SHIFT_58 = np.uint64(58)
SIXTY_THREE = np.uint64(63)
SIXTY_FOUR = np.uint64(64)
ZERO = np.uint64(0)
ONE = np.uint64(1)


@inlined
def mix(word: np.uint64) -> np.uint64:
    """Mix the bits of a word; a bijection on 64 bits."""
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


@inlined
def multiply_high(first: np.uint64, second: np.uint64) -> np.uint64:
    """Return the upper half of the 128-bit product of two words."""
    first_low, first_high = first & LOW_32, first >> SHIFT_32
    second_low, second_high = second & LOW_32, second >> SHIFT_32
    middle = first_high * second_low + ((first_low * second_low) >> SHIFT_32)
    other = first_low * second_high + (middle & LOW_32)
    return first_high * second_high + (middle >> SHIFT_32) + (other >> SHIFT_32)


@inlined
def next_word(state: NDArray[np.uint64]) -> np.uint64:
    """Draw the next word of a PCG64 stream."""
    product = state[1] * PCG_LOW
    high = multiply_high(state[1], PCG_LOW) + state[0] * PCG_LOW + state[1] * PCG_HIGH
    low = product + state[3]
    carry = ONE if low < product else ZERO
    high = high + state[2] + carry
    state[0] = high
    state[1] = low
    word = high ^ low
    rotation = high >> SHIFT_58
    return (word >> rotation) | (word << ((SIXTY_FOUR - rotation) & SIXTY_THREE))


@inlined
def next_unit(state: NDArray[np.uint64]) -> float:
    """Draw a float from [0, 1) as numpy's Generator does from a PCG64 stream."""
    return np.float64(next_word(state) >> SHIFT_11) * UNIT
