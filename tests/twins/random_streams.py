"""The plain-Python twin of `jit/random_streams_kernels.py`."""

from __future__ import annotations

MASK = (1 << 64) - 1


class SplitMix64:
    """The stream that a kernel stretches from one word."""

    def __init__(self, word: int) -> None:
        self.state = int(word)

    def unit(self) -> float:
        """Draw a float from [0, 1)."""
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        word = self.state
        word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & MASK
        word ^= word >> 31
        return (word >> 11) * 2.0**-53

    def below(self, bound: int) -> int:
        """Draw an int from 0..bound-1."""
        return int(self.unit() * bound)
