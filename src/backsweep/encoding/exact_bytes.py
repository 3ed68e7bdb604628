"""A 128-bit digest of the observation's bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
import xxhash
from numpy.typing import NDArray

from backsweep.encoding.base import LiveEncoder
from backsweep.trees import leaves
from backsweep.types import Observations


def digest_keys(arrays: list[NDArray[Any]]) -> NDArray[np.int64]:
    """Return the 128-bit digest of each item across `arrays`, as two words; shape (batch, 2)."""
    batch = len(arrays[0])
    keys = np.empty((batch, 2), np.int64)
    contiguous = [np.ascontiguousarray(array) for array in arrays]
    for item in range(batch):
        if len(contiguous) == 1:
            digest = xxhash.xxh3_128_digest(contiguous[0][item])
        else:
            hasher = xxhash.xxh3_128()
            for array in contiguous:
                hasher.update(array[item])
            digest = hasher.digest()
        keys[item] = np.frombuffer(digest, ">i8")
    return keys


def without_negative_zero(array: NDArray[Any]) -> NDArray[Any]:
    """Return floats with -0.0 replaced by 0.0: the two are equal but differ in their bytes."""
    return array + 0.0 if array.dtype.kind == "f" else array


@dataclass(frozen=True)
class ExactBytes:
    """Every distinct observation is its own vertex: the key is a 128-bit XXH3 digest."""

    def build(self, space: gym.Space[Any], generator: np.random.Generator) -> LiveExactBytes:
        """Return the live encoder; it does not depend on the space or the generator."""
        return LiveExactBytes()


class LiveExactBytes(LiveEncoder):
    """Digests of whole observations."""

    words = 2

    def encode(self, observations: Observations) -> NDArray[np.int64]:
        """Return the digests, shape (batch, 2)."""
        return digest_keys([without_negative_zero(leaf) for leaf in leaves(observations)])
