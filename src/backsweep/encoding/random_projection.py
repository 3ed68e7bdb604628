"""phi(s) = M s with entries of M from Normal(0, 1/d), in fixed point."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from backsweep.checks import is_int
from backsweep.encoding import random_projection_kernels
from backsweep.encoding.base import LiveEncoder
from backsweep.encoding.byte_products_kernels import BLOCK, HALF, LARGEST_ENTRY, LOW_BITS, OUTPUTS, PARTS
from backsweep.jit.memory import aligned
from backsweep.snapshot.contents import need
from backsweep.trees import leaves
from backsweep.types import Observations

NO_COPIES = np.zeros((0, 0), np.uint8)
LARGEST_NUMBER = random_projection_kernels.LARGEST / random_projection_kernels.SCALE


@dataclass(frozen=True)
class RandomProjection:
    """The paper's encoding: a random linear projection to `dim` numbers.

    Entries of the matrix and float observations are rounded to multiples of 2**-20 and the product is computed in
    integers, so equal observations always have equal keys. Floats that differ by less may share a key; the
    replay counts this as a collision.
    """

    dim: int = 3
    """How many numbers a key has."""

    def __post_init__(self) -> None:
        if not is_int(self.dim):
            raise TypeError(f"RandomProjection: dim must be an int, got {type(self.dim).__name__}")
        if not 1 <= self.dim <= 64:
            raise ValueError(f"RandomProjection: dim must be between 1 and 64, got {self.dim}")

    def build(self, space: gym.Space[Any], generator: np.random.Generator) -> LiveRandomProjection:
        """Draw the matrix for `space`."""
        sizes = [math.prod(leaf.shape or ()) for leaf in leaves(space)]
        entries = generator.standard_normal((self.dim, sum(sizes))) * math.sqrt(1.0 / self.dim)
        # Samples never come near these limits, which guarantee the bound on sums of bytes.
        scaled = np.clip(np.rint(entries * random_projection_kernels.SCALE), -LARGEST_ENTRY, LARGEST_ENTRY)
        matrix = scaled.astype(np.int32)
        return LiveRandomProjection(np.split(matrix, np.cumsum(sizes)[:-1], axis=1))


class LiveRandomProjection(LiveEncoder):
    """The projection for one space: a block of columns of M for each array of an observation."""

    def __init__(self, blocks: list[NDArray[np.int32]]) -> None:
        self.words = len(blocks[0])
        self._set_blocks(blocks)

    def _set_blocks(self, blocks: list[NDArray[np.int32]]) -> None:
        self._blocks = [np.ascontiguousarray(block) for block in blocks]
        self._planes: dict[int, NDArray[np.int16]] = {}

    @property
    def matrix(self) -> NDArray[np.int32]:
        """M in units of 2**-20; of an observation that is one array, the array that kernels read."""
        return self._blocks[0] if len(self._blocks) == 1 else np.concatenate(self._blocks, axis=1)

    def planes(self, leaf: int = 0) -> NDArray[np.int16]:
        """Return a block of the matrix as kernels need it that project bytes; it lives as long as the matrix."""
        if leaf not in self._planes:
            self._planes[leaf] = planes_of(self._blocks[leaf])
        return self._planes[leaf]

    def encode(self, observations: Observations) -> NDArray[np.int64]:
        """Return the projected keys, shape (batch, dim)."""
        leaf_arrays = list(leaves(observations))
        keys = np.zeros((len(leaf_arrays[0]), self.words), np.int64)
        for leaf, values in enumerate(leaf_arrays):
            self._project(values.reshape(len(values), -1), leaf, keys)
        return keys

    def _project(self, flat: NDArray[Any], leaf: int, keys: NDArray[np.int64]) -> None:
        """Add the projection of one array of each observation to its key."""
        block = self._blocks[leaf]
        if flat.dtype == np.uint8:
            places = np.arange(len(flat), dtype=np.int32)[:, None]
            pixels = np.ascontiguousarray(flat)
            random_projection_kernels.project_bytes(pixels, places, block, self.planes(leaf), keys, NO_COPIES)
        elif flat.dtype.kind == "f":
            numbers = np.ascontiguousarray(flat, dtype=np.float64)
            if numbers.size and max(numbers.max(), -numbers.min()) > LARGEST_NUMBER:
                warn_of_range()
            random_projection_kernels.project_floats(numbers, block, keys)
        else:
            random_projection_kernels.project_integers(np.ascontiguousarray(flat, dtype=np.int64), block, keys)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the matrix, because later versions of numpy may draw other numbers."""
        return {"matrix": self.matrix}

    def load(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Restore a saved matrix."""
        matrix, own = arrays["matrix"], self.matrix
        fits = matrix.shape == own.shape and matrix.dtype == own.dtype
        need(fits, f"the matrix is {matrix.dtype} {matrix.shape} where {own.dtype} {own.shape} is expected")
        need(bool((np.abs(matrix.astype(np.int64)) <= LARGEST_ENTRY).all()), "the matrix has an entry beyond 2**24")
        sizes = np.cumsum([block.shape[1] for block in self._blocks])[:-1]
        self._set_blocks(np.split(matrix, sizes, axis=1))


def warn_of_range() -> None:
    """Warn that observations hold numbers beyond the range of the projection."""
    warnings.warn(
        f"RandomProjection clips numbers beyond {LARGEST_NUMBER:.3g} to {LARGEST_NUMBER:.3g}, so observations that "
        "differ only there count as the same state; scale them down, or use ExactBytes",
        stacklevel=3,
    )


def planes_of(matrix: NDArray[np.int32]) -> NDArray[np.int16]:
    """Arrange a matrix (rows, pixels) for `multiply_blocks`; with fewer pixels than a block there is none."""
    rows, size = matrix.shape
    groups, blocks = -(-rows // OUTPUTS), -(-size // BLOCK) if size >= BLOCK else 0
    padded = np.zeros((groups * OUTPUTS, blocks * BLOCK), np.int32)
    if blocks:
        whole = size - size % BLOCK
        padded[:rows, :whole] = matrix[:, :whole]
        if whole < size:
            padded[:rows, whole - size :] = matrix[:, whole:]
    high = (padded + (1 << LOW_BITS >> 1)) >> LOW_BITS
    split = np.stack([padded - (high << LOW_BITS), high], axis=1).reshape(groups, OUTPUTS, 2, blocks, 2, HALF)
    planes = aligned((groups, blocks, PARTS, HALF), np.int16)
    planes[:] = split.transpose(0, 3, 4, 1, 2, 5).reshape(planes.shape)
    return planes
