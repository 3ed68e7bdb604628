"""A prefetch hint for kernels: this entry is needed soon.

A kernel that knows its next look-ups can request them early and continue; the data has arrived when it is needed. A
hint changes no result. Interpreted kernels ignore it.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils as numba_cgutils
from numba.core import types
from numba.extending import intrinsic

from backsweep.jit.compilation import interpreted

cgutils: Any = numba_cgutils
READ, KEEP_IN_ALL_CACHES, DATA = 0, 3, 1


def prefetch(array: Any, index: int, offset: int = 0) -> None:
    """Prefetch ``array[index]``, an index of the array's first axis, from the number `offset` on."""


@intrinsic
def _prefetch(context: Any, array: Any, index: Any, offset: Any = None) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        view = context.make_array(signature.args[0])(context, builder, arguments[0])
        stride = builder.extract_value(view.strides, 0)
        position = context.cast(builder, arguments[1], signature.args[1], types.intp)
        start = builder.ptrtoint(view.data, stride.type)
        if offset is not None:
            within = context.cast(builder, arguments[2], signature.args[2], types.intp)
            start = builder.add(start, builder.mul(view.itemsize, within))
        byte_pointer = ir.IntType(8).as_pointer()
        address = builder.inttoptr(builder.add(start, builder.mul(stride, position)), byte_pointer)
        number = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte_pointer, number, number, number])
        hint = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        builder.call(hint, [address, number(READ), number(KEEP_IN_ALL_CACHES), number(DATA)])
        return context.get_dummy_value()

    return types.void(array, index, types.none if offset is None else types.int64), generate


if not interpreted():
    prefetch = _prefetch  # type: ignore[assignment]
