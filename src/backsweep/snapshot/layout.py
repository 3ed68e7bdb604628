"""How arrays are cut into segments.

A large array is cut along its first axis into chunks of about eight megabytes, one segment each. Where the cuts
fall depends on the size of a row alone, never on the number of rows, so an array that grows keeps all its full
chunks. Small arrays are packed together, since a file each would cost more than they hold.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

CHUNK_BYTES = 8 << 20
SMALL_BYTES = 1 << 20

# What safetensors calls each dtype. Bytes on disk are little-endian on every machine.
DTYPES: dict[str, np.dtype[Any]] = {
    "BOOL": np.dtype(np.bool_),
    "I8": np.dtype("<i1"),
    "I16": np.dtype("<i2"),
    "I32": np.dtype("<i4"),
    "I64": np.dtype("<i8"),
    "U8": np.dtype("<u1"),
    "U16": np.dtype("<u2"),
    "U32": np.dtype("<u4"),
    "U64": np.dtype("<u8"),
    "F16": np.dtype("<f2"),
    "F32": np.dtype("<f4"),
    "F64": np.dtype("<f8"),
}
CODES = {dtype.str: code for code, dtype in DTYPES.items()}


@dataclass(frozen=True, slots=True)
class ArraySpec:
    """An array's dtype (as safetensors names it) and shape. A 0-d array counts as one row."""

    code: str
    shape: tuple[int, ...]

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the bytes on disk."""
        return DTYPES[self.code]

    @property
    def rows(self) -> int:
        """Length of the first axis."""
        return self.shape[0] if self.shape else 1

    @property
    def row_bytes(self) -> int:
        """Bytes of one row."""
        return math.prod(self.shape[1:]) * self.dtype.itemsize

    def part_shape(self, start: int, stop: int) -> tuple[int, ...]:
        """Shape of the rows from `start` up to `stop`."""
        return (stop - start, *self.shape[1:]) if self.shape else ()


@dataclass(frozen=True, slots=True)
class Piece:
    """Rows `start` up to `stop` of one array."""

    array: str
    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class SegmentPlan:
    """What one segment file is to hold; `label` and `index` go into its name."""

    label: str
    index: int
    pieces: tuple[Piece, ...]


def spec_of(name: object, array: object) -> ArraySpec:
    """Describe one array to be saved, or refuse it.

    Raises
    ------
    TypeError
        If the name is no string, the value no array, or its dtype cannot be kept without pickle.
    ValueError
        If the name is empty, reserved or not valid text.
    """
    if not isinstance(name, str):
        raise TypeError(f"array names must be strings, got {name!r}")
    if not name or name == "__metadata__":
        raise ValueError(f"{name!r} cannot be used as an array name")
    try:
        name.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"the array name {name!r} is not valid text") from error
    if not isinstance(array, np.ndarray):
        raise TypeError(f"arrays[{name!r}] is a {type(array).__name__}; expected a numpy array")
    code = CODES.get(array.dtype.newbyteorder("<").str)
    if code is None:
        raise TypeError(
            f"arrays[{name!r}] has dtype {array.dtype}; expected bool, an integer or a float of at most 64 bits"
        )
    return ArraySpec(code, array.shape)


def plan_segments(specs: Mapping[str, ArraySpec]) -> Iterator[SegmentPlan]:
    """Cut the arrays into segments: chunks of the large ones first, then the small ones packed together."""
    small: list[str] = []
    for name, spec in specs.items():
        size = spec.rows * spec.row_bytes
        if size < SMALL_BYTES:
            small.append(name)
            continue
        step = max(1, CHUNK_BYTES // spec.row_bytes)
        for index, start in enumerate(range(0, spec.rows, step)):
            yield SegmentPlan(name, index, (Piece(name, start, min(start + step, spec.rows)),))
    for index, group in enumerate(_groups(sorted(small), specs)):
        # Widest items first keeps every array aligned to its own item size in the file.
        group.sort(key=lambda name: (-specs[name].dtype.itemsize, name))
        yield SegmentPlan("packed", index, tuple(Piece(name, 0, specs[name].rows) for name in group))


def _groups(names: list[str], specs: Mapping[str, ArraySpec]) -> Iterator[list[str]]:
    """Split the small arrays into groups of at most one chunk's bytes, since a group is copied in one go."""
    group: list[str] = []
    held = 0
    for name in names:
        size = specs[name].rows * specs[name].row_bytes
        if group and held + size > CHUNK_BYTES:
            yield group
            group, held = [], 0
        group.append(name)
        held += size
    if group:
        yield group


def rows_of(array: NDArray[Any], piece: Piece) -> NDArray[Any]:
    """View the rows of `array` that a piece covers (the whole of a 0-d array)."""
    return array[piece.start : piece.stop] if array.ndim else array
