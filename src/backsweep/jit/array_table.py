"""Bundles of arrays for kernels: a declared schema, and a table of addresses that is cheap to pass.

A kernel that works on a replay needs some forty arrays. Passing them one by one takes longer than the kernel's work,
and a mistake in their order would go unnoticed. So arrays that belong together form a *bundle*, a `NamedTuple` whose
annotations declare the type of each array:

    class Ring(NamedTuple):
        rows: Int32Matrix
        counters: Int64Vector

Python code fills a bundle and calls `addresses_of`, which checks every array against its annotation and returns where
the arrays are:

    addresses[array]    [ address | size of axis 0 | axis 1 | axis 2 | axis 3 ]

A kernel takes these and gets the bundle back with ``unpack(Ring, addresses)``. The addresses of several bundles make a
table (`address_table`), tables of several runs make a larger one, and a kernel takes any of them as one array.

The arrays must neither move nor be freed while their addresses are in use: whoever asks for them keeps them alive.
"""

from __future__ import annotations

import ctypes
import operator
from collections.abc import Sequence
from functools import cache
from types import MappingProxyType
from typing import Annotated, Any, NamedTuple, TypeAlias, TypeVar, cast, get_type_hints

import numpy as np
from numba import from_dtype
from numba.core import cgutils as numba_cgutils
from numba.core import types
from numba.core.typing.arraydecl import GetItemBuffer, SetItemBuffer
from numba.core.typing.templates import infer_global as numba_infer_global
from numba.extending import intrinsic, lower_builtin, models, register_model
from numba.np import arrayobj as numba_arrayobj
from numpy.typing import NDArray

from backsweep.jit.compilation import interpreted

arrayobj: Any = numba_arrayobj
cgutils: Any = numba_cgutils
lower: Any = lower_builtin
infer_global: Any = numba_infer_global

MOST_AXES = 4
COLUMNS = 1 + MOST_AXES

Addresses: TypeAlias = NDArray[np.int64]
"""The addresses of the arrays of one bundle, (arrays, COLUMNS)."""
Table: TypeAlias = NDArray[np.int64]
"""The addresses of several bundles, (bundles, arrays, COLUMNS); or of several runs, with one more axis in front."""
Bundle = TypeVar("Bundle", bound=tuple[Any, ...])


class Kind(NamedTuple):
    """The type of an array of a bundle."""

    dtype: type[np.generic]
    axes: int

    def __str__(self) -> str:
        return f"a contiguous array of {np.dtype(self.dtype)} with {self.axes} axes"


BoolVector = Annotated[NDArray[np.bool_], Kind(np.bool_, 1)]
BoolMatrix = Annotated[NDArray[np.bool_], Kind(np.bool_, 2)]
ByteVector = Annotated[NDArray[np.uint8], Kind(np.uint8, 1)]
ByteMatrix = Annotated[NDArray[np.uint8], Kind(np.uint8, 2)]
ByteImages = Annotated[NDArray[np.uint8], Kind(np.uint8, 4)]
WordVector = Annotated[NDArray[np.uint64], Kind(np.uint64, 1)]
WordMatrix = Annotated[NDArray[np.uint64], Kind(np.uint64, 2)]
Int16Cubes = Annotated[NDArray[np.int16], Kind(np.int16, 4)]
Int32Vector = Annotated[NDArray[np.int32], Kind(np.int32, 1)]
Int32Matrix = Annotated[NDArray[np.int32], Kind(np.int32, 2)]
Int32Cube = Annotated[NDArray[np.int32], Kind(np.int32, 3)]
Int64Vector = Annotated[NDArray[np.int64], Kind(np.int64, 1)]
Int64Matrix = Annotated[NDArray[np.int64], Kind(np.int64, 2)]
Float32Vector = Annotated[NDArray[np.float32], Kind(np.float32, 1)]
Float64Vector = Annotated[NDArray[np.float64], Kind(np.float64, 1)]
Float64Matrix = Annotated[NDArray[np.float64], Kind(np.float64, 2)]


@cache
def schema(bundle: type[tuple[Any, ...]]) -> dict[str, Kind]:
    """Return the kind of every array of a bundle, by name."""
    hints = get_type_hints(bundle, include_extras=True)
    kinds = {name: getattr(hint, "__metadata__", (None,))[0] for name, hint in hints.items()}
    for name, kind in kinds.items():
        if not isinstance(kind, Kind):
            raise TypeError(f"{bundle.__name__}.{name} must be annotated with a kind of array, got {hints[name]}")
    return cast(dict[str, Kind], kinds)


def addresses_of(bundle: tuple[Any, ...]) -> Addresses:
    """Return the addresses of a bundle's arrays, after checking each against the schema."""
    addresses = np.zeros((len(bundle), COLUMNS), np.int64)
    for place, ((name, kind), array) in enumerate(zip(schema(type(bundle)).items(), bundle, strict=True)):
        if not isinstance(array, np.ndarray):
            raise TypeError(f"{type(bundle).__name__}.{name} must be {kind}, got {type(array).__name__}")
        if array.dtype != kind.dtype or array.ndim != kind.axes or not array.flags.c_contiguous:
            order = "" if array.flags.c_contiguous else " that is not contiguous"
            raise ValueError(
                f"{type(bundle).__name__}.{name} must be {kind}, got {array.dtype} of shape {array.shape}{order}"
            )
        addresses[place, 0] = array.ctypes.data
        addresses[place, 1 : 1 + array.ndim] = array.shape
    return addresses


def address_table(bundles: Sequence[tuple[Any, ...] | None]) -> Table:
    """Return the addresses of several bundles, padded to the longest; None leaves a place empty."""
    found = [np.zeros((0, COLUMNS), np.int64) if bundle is None else addresses_of(bundle) for bundle in bundles]
    table = np.zeros((len(found), max(map(len, found)), COLUMNS), np.int64)
    for place, addresses in enumerate(found):
        table[place, : len(addresses)] = addresses
    return table


def address_tables(runs: Sequence[Sequence[tuple[Any, ...] | None]]) -> NDArray[np.int64]:
    """Return the tables of several runs, padded to the largest, (runs, bundles, arrays, COLUMNS)."""
    tables = [address_table(bundles) for bundles in runs]
    stacked = np.zeros((len(tables), *np.max([table.shape for table in tables], axis=0)), np.int64)
    for place, table in enumerate(tables):
        stacked[place, : table.shape[0], : table.shape[1]] = table
    return stacked


def unpack(bundle: type[Bundle], addresses: Addresses) -> Bundle:
    """Return the arrays of a bundle; in compiled code this is a few loads, and unused arrays cost nothing."""
    arrays = []
    for place, kind in enumerate(schema(bundle).values()):
        array = np.empty(addresses[place, 1 : 1 + kind.axes], kind.dtype)
        if array.size:
            memory: Any = (ctypes.c_char * array.nbytes).from_address(int(addresses[place, 0]))
            array = np.frombuffer(memory, kind.dtype).reshape(array.shape)
        arrays.append(array)
    return bundle(*arrays)


class BorrowedArray(types.Array):
    """The type, in compiled code, of an array whose memory is owned elsewhere.

    numba counts references to an array at every call and slice. For arrays that are never freed here that is wasted: it
    took a third of the time of short kernels. And an index of one entry must not be negative, or it would have to be
    tested at every access, which took an eighth of the time of `add`. Bounds checks refuse such an index.
    """

    of_kernels = True
    """Nothing in Python has this type; `kernel_cache.py` makes use of that."""

    def __init__(self, dtype: Any, ndim: int, layout: Any, readonly: bool = False, aligned: bool = True) -> None:
        name = f"borrowed {'readonly ' * readonly}{'' if aligned else 'unaligned '}array({dtype}, {ndim}d, {layout})"
        super().__init__(dtype, ndim, layout, readonly=readonly, name=name, aligned=aligned)

    def copy(self, dtype: Any = None, ndim: int | None = None, layout: Any = None, readonly: bool | None = None) -> Any:
        """Return the type of a view, which is borrowed as well."""
        return BorrowedArray(
            self.dtype if dtype is None else dtype,
            self.ndim if ndim is None else ndim,
            self.layout if layout is None else layout,
            not self.mutable if readonly is None else readonly,
            self.aligned,
        )


@register_model(BorrowedArray)
class BorrowedModel(models.ArrayModel):
    """Lies in registers as any array does, but holds nothing whose users are counted."""

    def traverse(self, builder: Any) -> list[Any]:
        """Return the parts that are counted: none."""
        return []

    def inner_models(self) -> list[Any]:
        """Return the models of parts that are counted: none."""
        return []


def _place(context: Any, builder: Any, kind: Any, array: Any, index_type: Any, index: Any) -> Any:
    """Return the address of one entry, or None if the index is not a number for every axis."""
    several = isinstance(index_type, types.BaseTuple)
    index_types = index_type.types if several else (index_type,)
    if len(index_types) != kind.ndim or not all(isinstance(item, types.Integer) for item in index_types):
        return None
    numbers = cgutils.unpack_tuple(builder, index, count=len(index_types)) if several else [index]
    places = [
        context.cast(builder, number, item, types.intp) for number, item in zip(numbers, index_types, strict=True)
    ]
    view = arrayobj.make_array(kind)(context, builder, array)
    return cgutils.get_item_pointer(
        context, builder, kind, view, places, wraparound=False, boundscheck=context.enable_boundscheck
    )


def _read(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Compile ``array[index]``."""
    kind, index_type = signature.args
    place = _place(context, builder, kind, arguments[0], index_type, arguments[1])
    if place is not None:
        return arrayobj.load_item(context, builder, kind, place)
    several = isinstance(index_type, types.BaseTuple)
    general = arrayobj.getitem_array_tuple if several else arrayobj.getitem_arraynd_intp
    return general(context, builder, signature, arguments)


def _write(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Compile ``array[index] = number``."""
    kind, index_type, value_type = signature.args
    place = _place(context, builder, kind, arguments[0], index_type, arguments[1])
    if place is None:
        return arrayobj.setitem_array(context, builder, signature, arguments)
    value = context.cast(builder, arguments[2], value_type, kind.dtype)
    arrayobj.store_item(context, builder, kind, value, place)
    return context.get_dummy_value()


for _index in (types.Integer, types.BaseTuple):
    lower(operator.getitem, BorrowedArray, _index)(_read)
    lower(operator.setitem, BorrowedArray, _index, types.Number)(_write)


class _ReadType(GetItemBuffer):
    """The type of ``array[index]``, as numba finds it for every array.

    numba asks what a processor has of its own before it asks everything else that can be indexed, of which there is so
    much that a seventh of the time of compiling went by.
    """

    metadata: Any = MappingProxyType({"target": "cpu"})

    def generic(self, args: Any, kws: Any) -> Any:
        numbas: Any = super()
        return numbas.generic(args, kws) if isinstance(args[0], BorrowedArray) else None


class _WriteType(SetItemBuffer):
    """The same for ``array[index] = number``."""

    metadata: Any = _ReadType.metadata

    def generic(self, args: Any, kws: Any) -> Any:
        numbas: Any = super()
        return numbas.generic(args, kws) if isinstance(args[0], BorrowedArray) else None


infer_global(operator.getitem)(_ReadType)
infer_global(operator.setitem)(_WriteType)


@intrinsic
def _compiled_unpack(typing_context: Any, bundle: Any, addresses: Any) -> Any:
    kind = (addresses.ndim, addresses.layout, addresses.dtype) if isinstance(addresses, types.Array) else None
    if kind != (2, "C", types.int64):
        raise TypeError(f"unpack takes the addresses of a bundle, got {addresses}")
    arrays = [BorrowedArray(from_dtype(np.dtype(kind.dtype)), kind.axes, "C") for kind in _kinds(bundle)]

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        table = arrayobj.make_array(signature.args[1])(context, builder, arguments[1])

        def constant(value: int) -> Any:
            return context.get_constant(types.intp, value)

        def entry(place: int, column: int) -> Any:
            return builder.load(builder.gep(table.data, [constant(place * COLUMNS + column)]))

        values = []
        for place, kind in enumerate(arrays):
            array = arrayobj.make_array(kind)(context, builder)
            item = constant(context.get_abi_sizeof(context.get_data_type(kind.dtype)))
            shape = [entry(place, 1 + axis) for axis in range(kind.ndim)]
            strides = [item]
            for size in reversed(shape[1:]):
                strides.insert(0, builder.mul(strides[0], size))
            arrayobj.populate_array(
                array,
                data=builder.inttoptr(entry(place, 0), array.data.type),
                shape=shape,
                strides=strides,
                itemsize=item,
                meminfo=None,
            )
            values.append(array._getvalue())
        return context.make_tuple(builder, signature.return_type, values)

    unpacked: Any = types.NamedTuple
    return unpacked(arrays, bundle.instance_class)(bundle, addresses), generate


def _kinds(bundle: Any) -> list[Kind]:
    return list(schema(bundle.instance_class).values())


def borrow(table: Table) -> Table:
    """Return addresses or a table as an array whose users are not counted; the kernel's caller keeps it alive."""
    return table


@intrinsic
def _compiled_borrow(typing_context: Any, table: Any) -> Any:
    borrowed = BorrowedArray(table.dtype, table.ndim, table.layout, not table.mutable, table.aligned)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return arguments[0]

    return borrowed(table), generate


def viewed(array: NDArray[Any], kind: type[Any]) -> NDArray[Any]:
    """Return an array of a bundle, or the first rows of one, as numbers of another kind."""
    return array.view(kind)


@intrinsic
def _compiled_view(typing_context: Any, array: Any, kind: Any) -> Any:
    """What numba compiles for `view` is several functions, which also look whether sizes fit."""
    if not isinstance(array, BorrowedArray) or array.layout != "C":
        raise TypeError(f"viewed takes an array of a bundle, got {array}")
    result = array.copy(dtype=kind.dtype)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        given = arrayobj.make_array(signature.args[0])(context, builder, arguments[0])
        view = arrayobj.make_array(result)(context, builder)
        item = context.get_constant(types.intp, context.get_abi_sizeof(context.get_data_type(result.dtype)))
        shape, strides = (cgutils.unpack_tuple(builder, part) for part in (given.shape, given.strides))
        shape[-1] = builder.udiv(builder.mul(shape[-1], given.itemsize), item)
        data = builder.bitcast(given.data, view.data.type)
        arrayobj.populate_array(
            view, data=data, shape=shape, strides=[*strides[:-1], item], itemsize=item, meminfo=None
        )
        return view._getvalue()

    return result(array, kind), generate


if not interpreted():
    unpack = _compiled_unpack  # type: ignore[assignment]
    viewed = _compiled_view  # type: ignore[assignment]
    borrow = _compiled_borrow  # type: ignore[assignment]
