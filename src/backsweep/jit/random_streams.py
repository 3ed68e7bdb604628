"""One root seed, many named and independent generators.

A component gets its generator by name, so adding a component never changes the numbers that another one draws. Kernels
hold no generator: each call gets one 64-bit word from the component's numpy generator and expands it with SplitMix64
(`random_streams_kernels.py`), so the state of all randomness is the state of numpy generators.
"""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backsweep.checks import is_int


def named_generator(seed: int, *names: str) -> np.random.Generator:
    """Return the generator that `seed` gives to the component called `names`, the same on every machine."""
    words = [zlib.crc32(name.encode()) for name in names]
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(entropy=seed, spawn_key=words)))


def generator_state(generator: np.random.Generator) -> dict[str, Any]:
    """Return the generator's state as plain JSON."""
    state: dict[str, Any] = dict(generator.bit_generator.state)
    return state


def restore_generator(generator: np.random.Generator, state: dict[str, Any]) -> None:
    """Set the generator to a state from `generator_state`."""
    generator.bit_generator.state = state


def generator_words(generator: np.random.Generator) -> NDArray[np.uint64]:
    """Return the generator's state as the four words that `kernels.next_word` takes."""
    inner = generator.bit_generator.state["state"]
    mask = (1 << 64) - 1
    return np.array([number >> 64 if high else number & mask for number, high in _halves(inner)], np.uint64)


def restore_generator_words(generator: np.random.Generator, words: NDArray[np.uint64]) -> None:
    """Set the generator to the state of the four words after kernels used them."""
    state = dict(generator.bit_generator.state)
    high, low, increment_high, increment_low = (int(word) for word in words)
    state["state"] = {"state": high << 64 | low, "inc": increment_high << 64 | increment_low}
    generator.bit_generator.state = state


def _halves(inner: dict[str, int]) -> list[tuple[int, bool]]:
    return [(inner[name], high) for name in ("state", "inc") for high in (True, False)]


def random_word(generator: np.random.Generator) -> np.uint64:
    """Draw the word that a kernel call expands."""
    return np.uint64(generator.bit_generator.random_raw())


def checked_seed(seed: object) -> int:
    """Return `seed` as an int; raise if it is not a valid seed."""
    if not is_int(seed):
        raise TypeError(f"seed must be an int, got {type(seed).__name__}")
    if seed < 0:
        raise ValueError(f"seed must be 0 or more, got {seed}")
    return int(seed)
