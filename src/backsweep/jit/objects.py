"""Where CPython and numpy store the fields of their objects, for kernels that read arguments in place.

Passing an array to a compiled function takes a tenth of a microsecond, and a compilation for each new combination of
types. A kernel that gets the address of a tuple of arguments pays neither. The places are those of the public C
interfaces of CPython and numpy:

    object     [ ... | type ]
    tuple      [ object | ... | item 0 | item 1 | ... ]
    number     [ object | value ]                          float and numpy's scalars
    int        [ object | sign and length | digits ... ]
    ndarray    [ object | data | axes | shape | strides | base | dtype | ... ]

`object_places` verifies every place with objects of its own. If one is not as expected, arguments are converted by
numpy instead.
"""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backsweep.jit.compilation import interpreted
from backsweep.jit.objects_kernels import (
    AXES,
    DATA,
    DIGIT,
    DTYPE,
    FLOAT32,
    FLOAT64,
    HEADER,
    INT8,
    INT16,
    INT32,
    INT64,
    ITEMS,
    SHAPE,
    STRIDES,
    TYPE,
    UINT8,
    UINT16,
    UINT32,
    VALUE,
    ObjectPlaces,
)

NUMBERS = (
    (np.int8, INT8),
    (np.int16, INT16),
    (np.int32, INT32),
    (np.int64, INT64),
    (np.uint8, UINT8),
    (np.uint16, UINT16),
    (np.uint32, UINT32),
    (np.float32, FLOAT32),
    (np.float64, FLOAT64),
)


def _word(address: int) -> int:
    return ctypes.c_int64.from_address(address).value


def _half_word(address: int) -> int:
    return ctypes.c_int32.from_address(address).value


@cache
def object_places() -> ObjectPlaces | None:
    """Return the addresses that kernels compare types with; None where objects are not laid out as expected."""
    if interpreted() or sys.implementation.name != "cpython" or not (_tuples_are_known() and _arrays_are_known()):
        return None
    types = [(id(np.dtype(kind)), id(kind), code) for kind, code in NUMBERS]
    types.append((0, id(float), FLOAT64))
    for (_, scalar, code), value in zip(types, [3, -4, 5, -6, 7, 8, 9, 2.5, -0.125, 1e300], strict=True):
        kind: Any = float if scalar == id(float) else next(kind for kind, known in NUMBERS if known == code)
        if not _number_is_known(kind(value)):
            return None
    ints = _int_tags()
    if ints is None:
        return None
    flags = [id(False), id(True), id(np.False_), id(np.True_)]
    return ObjectPlaces(
        np.array([id(np.ndarray), id(np.dtype(np.bool_)), id(int), *ints], np.int64),
        np.array(flags, np.int64),
        np.array(types, np.int64),
    )


def _tuples_are_known() -> bool:
    pair = (object(), object())
    return (
        object.__basicsize__ == HEADER
        and _word(id(pair) + TYPE) == id(tuple)
        and [_word(id(pair) + ITEMS + 8 * place) for place in range(2)] == [id(item) for item in pair]
    )


def _arrays_are_known() -> bool:
    whole: NDArray[np.int16] = np.arange(48, dtype=np.int16).reshape(4, 6, 2)
    for array in (whole, whole[1:, ::2], whole[0, 0, :1], np.float64(3.0) + np.zeros(()), np.zeros(3, np.bool_)):
        held = np.asarray(array)
        place, axes = id(held), held.ndim
        shape, strides = _word(place + SHAPE), _word(place + STRIDES)
        if (
            _word(place + TYPE) != id(np.ndarray)
            or _word(place + DATA) != held.ctypes.data
            or _half_word(place + AXES) != axes
            or [_word(shape + 8 * axis) for axis in range(axes)] != list(held.shape)
            or [_word(strides + 8 * axis) for axis in range(axes)] != list(held.strides)
            or _word(place + DTYPE) != id(held.dtype)
        ):
            return False
    return True


def _number_is_known(number: Any) -> bool:
    value = np.asarray(number)
    held = (ctypes.c_char * value.nbytes).from_address(id(number) + VALUE)
    return _word(id(number) + TYPE) == id(type(number)) and bytes(held) == value.tobytes()


def _int_tags() -> tuple[int, int, int] | None:
    """Return the word before the digits of 0, of positive and of negative ints of one digit."""
    tags = [_word(id(number) + VALUE) for number in (0, 1, -1)]
    for number in (12345, -12345, 1 << 29, -(1 << 29)):
        if _word(id(number) + VALUE) != tags[1 if number > 0 else 2] or _half_word(id(number) + DIGIT) != abs(number):
            return None
    longer = [_word(id(number) + VALUE) for number in (1 << 40, -(1 << 40))]
    return None if len({*tags, *longer}) != 5 else (tags[0], tags[1], tags[2])
