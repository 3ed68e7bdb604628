"""Arrays of many lanes behind one table of numbers, for kernels that move all lanes in one call.

A lane's replay and tasks are some sixty arrays. Handing those of a hundred lanes to a kernel would take longer than the
kernel's work, so it is handed a table instead: where each array lies, and its shape.

    table[lane, array]    [ address | size of axis 0 | axis 1 | axis 2 | axis 3 ]

The arrays must be contiguous and must neither move nor be freed while the table is in use: whoever makes a table keeps
them. Dtypes are not in the table: a kernel asks for an array in the dtype it knows it has (`int32_matrix` and so on).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numba import carray  # type: ignore[attr-defined]
from numba.core import cgutils as numba_cgutils
from numba.core import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from backsweep.jit.compilation import inlined

cgutils: Any = numba_cgutils

ADDRESS = 0
SIZE_0 = 1
SIZE_1 = 2
SIZE_2 = 3
SIZE_3 = 4
COLUMNS = 5

Entry = NDArray[np.int64]
"""One row of a table: the arrays of one lane."""


def address_table(lanes: Sequence[Sequence[NDArray[Any]]]) -> NDArray[np.int64]:
    """Return the table of some lanes' arrays; every lane has as many, in the same order."""
    table = np.zeros((len(lanes), max((len(arrays) for arrays in lanes), default=0), COLUMNS), np.int64)
    for lane, arrays in enumerate(lanes):
        for place, array in enumerate(arrays):
            if not array.flags.c_contiguous:
                raise ValueError(f"array {place} of lane {lane} is not contiguous")
            if array.ndim >= COLUMNS:
                raise ValueError(f"array {place} of lane {lane} has {array.ndim} axes, at most {COLUMNS - 1} fit")
            table[lane, place, ADDRESS] = array.ctypes.data
            table[lane, place, SIZE_0 : SIZE_0 + array.ndim] = array.shape
    return table


@intrinsic
def _pointer(context: Any, address: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], cgutils.voidptr_t)

    return types.voidptr(types.int64), generate


pointer: Any = _pointer  # numba supplies the first argument


@inlined
def bool_vector(entry: Entry, array: int) -> NDArray[np.bool_]:
    """Return an array of the lane."""
    return carray(pointer(entry[array, ADDRESS]), (entry[array, SIZE_0],), np.bool_)


@inlined
def byte_vector(entry: Entry, array: int) -> NDArray[np.uint8]:
    """Return an array of the lane."""
    return carray(pointer(entry[array, ADDRESS]), (entry[array, SIZE_0],), np.uint8)


@inlined
def byte_matrix(entry: Entry, array: int) -> NDArray[np.uint8]:
    """Return an array of the lane."""
    return carray(pointer(entry[array, ADDRESS]), (entry[array, SIZE_0], entry[array, SIZE_1]), np.uint8)


@inlined
def byte_images(entry: Entry, array: int) -> NDArray[np.uint8]:
    """Return an array of the lane with four axes."""
    shape = (entry[array, SIZE_0], entry[array, SIZE_1], entry[array, SIZE_2], entry[array, SIZE_3])
    return carray(pointer(entry[array, ADDRESS]), shape, np.uint8)


@inlined
def word_vector(entry: Entry, array: int) -> NDArray[np.uint64]:
    """Return an array of the lane."""
    return carray(pointer(entry[array, ADDRESS]), (entry[array, SIZE_0],), np.uint64)


@inlined
def word_matrix(entry: Entry, array: int) -> NDArray[np.uint64]:
    """Return an array of the lane."""
    return carray(pointer(entry[array, ADDRESS]), (entry[array, SIZE_0], entry[array, SIZE_1]), np.uint64)


@inlined
def int32_vector(entry: Entry, array: int) -> NDArray[np.int32]:
    """Return an array of the lane."""
    return carray(pointer(entry[array, ADDRESS]), (entry[array, SIZE_0],), np.int32)


@inlined
def int32_matrix(entry: Entry, array: int) -> NDArray[np.int32]:
    """Return an array of the lane."""
    return carray(pointer(entry[array, ADDRESS]), (entry[array, SIZE_0], entry[array, SIZE_1]), np.int32)


@inlined
def int64_vector(entry: Entry, array: int) -> NDArray[np.int64]:
    """Return an array of the lane."""
    return carray(pointer(entry[array, ADDRESS]), (entry[array, SIZE_0],), np.int64)


@inlined
def int64_matrix(entry: Entry, array: int) -> NDArray[np.int64]:
    """Return an array of the lane."""
    return carray(pointer(entry[array, ADDRESS]), (entry[array, SIZE_0], entry[array, SIZE_1]), np.int64)


@inlined
def float_vector(entry: Entry, array: int) -> NDArray[np.float64]:
    """Return an array of the lane."""
    return carray(pointer(entry[array, ADDRESS]), (entry[array, SIZE_0],), np.float64)


@inlined
def float_matrix(entry: Entry, array: int) -> NDArray[np.float64]:
    """Return an array of the lane."""
    return carray(pointer(entry[array, ADDRESS]), (entry[array, SIZE_0], entry[array, SIZE_1]), np.float64)


@inlined
def bytes_at(entry: Entry, array: int, offset: int, size: int) -> NDArray[np.uint8]:
    """Return `size` bytes of an array of any dtype, from byte `offset` on, as a matrix of one row."""
    return carray(pointer(entry[array, ADDRESS] + offset), (1, size), np.uint8)


@inlined
def bytes_of_words(entry: Entry, array: int) -> NDArray[np.uint8]:
    """Return a matrix of 64-bit words as the bytes that they are."""
    return carray(pointer(entry[array, ADDRESS]), (entry[array, SIZE_0], 8 * entry[array, SIZE_1]), np.uint8)


@inlined
def int64_of_bytes(entry: Entry, array: int) -> NDArray[np.int64]:
    """Return a matrix of bytes with eight columns as the 64-bit numbers that they are."""
    return carray(pointer(entry[array, ADDRESS]), (entry[array, SIZE_0],), np.int64)
