"""Reading numbers and arrays from the objects that hold them; see `objects.py` for the picture."""

# In compiled code Python's numbers and numpy's are one and the same.
# mypy: disable-error-code="no-any-return,arg-type,assignment,return-value"

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba.core import cgutils as numba_cgutils
from numba.core import types
from numba.extending import intrinsic
from numba.np import arrayobj as numba_arrayobj
from numpy.typing import NDArray

from backsweep.jit.array_table import COLUMNS, BorrowedArray, Int64Matrix, Int64Vector, Table
from backsweep.jit.compilation import inlined, kernel

arrayobj: Any = numba_arrayobj
cgutils: Any = numba_cgutils

# Offsets in an object, in bytes.
HEADER = 16
TYPE = 8
VALUE = HEADER
DIGIT = HEADER + 8
ITEMS = tuple.__basicsize__
DATA = HEADER
AXES = HEADER + 8
SHAPE = HEADER + 16
STRIDES = HEADER + 24
DTYPE = HEADER + 40
# Kinds of numbers.
NO_NUMBER, BOOL, INT8, INT16, INT32, INT64, UINT8, UINT16, UINT32, FLOAT32, FLOAT64 = range(11)
ZERO = 11  # False or the int 0
ONE = 12  # True
DIGIT_BELOW_ZERO = 13  # an int
# Entries of `ObjectPlaces.known`.
ARRAY_TYPE, BOOL_DTYPE, INT_TYPE, ZERO_TAG, POSITIVE_TAG, NEGATIVE_TAG = range(6)


class ObjectPlaces(NamedTuple):
    """Addresses to recognise objects by."""

    known: Int64Vector
    flags: Int64Vector
    """False, True, and numpy's two."""
    types: Int64Matrix
    """Of each kind of number: its dtype, its scalars' type, its code."""


def _loader(kind: Any) -> Any:
    """Return what reads a number of one kind from any address."""

    @intrinsic
    def load(context: Any, address: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            pointer = builder.inttoptr(arguments[0], context.get_data_type(kind).as_pointer())
            return builder.load(pointer, align=1)

        return kind(types.int64), generate

    return load


load_int8, load_uint8 = _loader(types.int8), _loader(types.uint8)
load_int16, load_uint16 = _loader(types.int16), _loader(types.uint16)
load_int32, load_uint32 = _loader(types.int32), _loader(types.uint32)
load_int64 = _loader(types.int64)
load_float32, load_float64 = _loader(types.float32), _loader(types.float64)


@intrinsic
def _store_int64(context: Any, address: Any, number: Any) -> Any:
    """Write a number to an address."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = builder.inttoptr(arguments[0], context.get_data_type(types.int64).as_pointer())
        builder.store(arguments[1], pointer, align=1)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate


@intrinsic
def _copy_bytes(context: Any, array: Any, row: Any, address: Any, count: Any) -> Any:
    """Copy `count` bytes from an address to the start of a row of an array."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        view = context.make_array(signature.args[0])(context, builder, arguments[0])
        byte_pointer = ir.IntType(8).as_pointer()
        stride = builder.extract_value(view.strides, 0)
        start = builder.ptrtoint(view.data, stride.type)
        target = builder.inttoptr(builder.add(start, builder.mul(stride, arguments[1])), byte_pointer)
        source = builder.inttoptr(arguments[2], byte_pointer)
        cgutils.raw_memcpy(builder, target, source, arguments[3], 1)
        return context.get_dummy_value()

    return types.void(array, types.int64, types.int64, types.int64), generate


@intrinsic
def _words_at(context: Any, address: Any, count: Any) -> Any:
    """Return `count` words at an address, which need not be a multiple of 8, as an array."""
    kind = BorrowedArray(types.uint64, 1, "C", readonly=True, aligned=False)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = arrayobj.make_array(kind)(context, builder)
        size = context.get_constant(types.intp, 8)
        data = builder.inttoptr(arguments[0], array.data.type)
        arrayobj.populate_array(array, data=data, shape=[arguments[1]], strides=[size], itemsize=size, meminfo=None)
        return array._getvalue()

    return kind(types.int64, types.int64), generate


@intrinsic
def _table_at(context: Any, address: Any, bundles: Any, arrays: Any) -> Any:
    """Return the table of addresses that lies at an address."""
    kind = BorrowedArray(types.int64, 3, "C")

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        table = arrayobj.make_array(kind)(context, builder)
        size, columns = (context.get_constant(types.intp, number) for number in (8, COLUMNS))
        row = builder.mul(size, columns)
        data = builder.inttoptr(arguments[0], table.data.type)
        shape, strides = [*arguments[1:], columns], [builder.mul(row, arguments[2]), row, size]
        arrayobj.populate_array(table, data=data, shape=shape, strides=strides, itemsize=size, meminfo=None)
        return table._getvalue()

    return kind(types.int64, types.int64, types.int64), generate


store_int64: Any = _store_int64  # numba supplies the first argument
copy_bytes: Any = _copy_bytes
words_at: Any = _words_at
table_at: Any = _table_at


@inlined
def table_in(item: int) -> Table:
    """Return the table that an array object holds: to hand its address to a kernel takes half as long as the array."""
    shape = load_int64(item + SHAPE)
    return table_at(load_int64(item + DATA), load_int64(shape), load_int64(shape + 8))


@kernel
def numbers_of(item: int, count: int, places: ObjectPlaces) -> tuple[int, int, int]:
    """Return where `count` numbers start, how far they are apart and of which kind they are, or NO_NUMBER.

    They are an array (count,) or (count, 1), or, if there is only one, a scalar.
    """
    known, kind = places.known, load_int64(item + TYPE)
    address, stride, found = item + VALUE, 0, 0
    if kind == known[ARRAY_TYPE]:
        axes, shape = load_int32(item + AXES), load_int64(item + SHAPE)
        first = 1 if axes == 0 else load_int64(shape)
        if axes > 2 or first != count or (axes == 2 and load_int64(shape + 8) != 1):
            return address, stride, NO_NUMBER
        address, kind, found = load_int64(item + DATA), load_int64(item + DTYPE), 1
        if axes > 0:
            stride = load_int64(load_int64(item + STRIDES))
        if kind == known[BOOL_DTYPE]:
            return address, stride, BOOL
    elif count != 1:
        return address, stride, NO_NUMBER
    elif kind == known[INT_TYPE]:
        tag = load_int64(item + VALUE)
        if tag == known[ZERO_TAG]:
            return address, stride, ZERO
        if tag == known[POSITIVE_TAG]:
            return item + DIGIT, stride, UINT32
        return item + DIGIT, stride, DIGIT_BELOW_ZERO if tag == known[NEGATIVE_TAG] else NO_NUMBER
    elif item == places.flags[0] or item == places.flags[2]:
        return address, stride, ZERO
    elif item == places.flags[1] or item == places.flags[3]:
        return address, stride, ONE
    for i in range(places.types.shape[0]):
        if places.types[i, 1 - found] == kind:
            return address, stride, places.types[i, 2]
    return address, stride, NO_NUMBER


@kernel
def number_at(address: int, kind: int) -> float:
    """Return a number; large ones of 64 bits are rounded."""
    if kind == FLOAT64:
        return load_float64(address)
    if kind == FLOAT32:
        return load_float32(address)
    if kind == INT64:
        return load_int64(address)
    if kind == INT32:
        return load_int32(address)
    if kind == UINT32:
        return load_uint32(address)
    if kind == DIGIT_BELOW_ZERO:
        return -float(load_uint32(address))
    if kind == INT16:
        return load_int16(address)
    if kind == UINT16:
        return load_uint16(address)
    if kind == INT8:
        return load_int8(address)
    if kind in (UINT8, BOOL):
        return load_uint8(address)
    return 1.0 if kind == ONE else 0.0


@kernel
def rows_of(item: int, count: int, dtype: int, shape: NDArray[np.int64], known: NDArray[np.int64]) -> tuple[int, int]:
    """Return where `count` values start and how far they are apart, if `item` is an array of them; else 0.

    Each is of one dtype and shape and lies in one piece. If there is only one, the first axis may be missing.
    """
    if load_int64(item + TYPE) != known[ARRAY_TYPE] or load_int64(item + DTYPE) != dtype:
        return 0, 0
    axes, sizes, strides = load_int32(item + AXES), load_int64(item + SHAPE), load_int64(item + STRIDES)
    stride = 0
    if axes == shape.shape[0]:  # the last of which is the size of an item
        if load_int64(sizes) != count:
            return 0, 0
        stride = load_int64(strides)
        sizes, strides = sizes + 8, strides + 8
    elif axes != shape.shape[0] - 1 or count != 1:
        return 0, 0
    step = shape[shape.shape[0] - 1]
    for axis in range(shape.shape[0] - 2, -1, -1):
        size = load_int64(sizes + 8 * axis)
        if size != shape[axis] or (size != 1 and load_int64(strides + 8 * axis) != step):
            return 0, 0
        step *= size
    return load_int64(item + DATA), stride
