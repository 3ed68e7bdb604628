"""Stores that bypass the processor's caches, for what is written once and not read soon.

A processor that writes to a place in memory first reads what is there, and writes it back later. A store that bypasses
the caches only writes, which takes less of the memory's time. It is a hint that changes no result; interpreted kernels
and processors without such stores write as usual.
"""

from __future__ import annotations

import platform
from typing import Any

from llvmlite import ir
from numba.core import cgutils as numba_cgutils
from numba.core import types
from numba.extending import intrinsic, overload

cgutils: Any = numba_cgutils
LINE = 64
BYTE, NUMBER, LONG = (ir.IntType(bits) for bits in (8, 32, 64))
WORDS_OF_A_LINE = ir.VectorType(LONG, LINE // 8)


def stream_row(array: Any, index: int, row: Any) -> None:
    """Copy `row` to ``array[index]``; `end_streams` must follow before another thread may read it."""
    array[index] = row


def end_streams() -> None:
    """Wait until all that `stream_row` has written can be seen by other threads."""


def stream_line(builder: Any, given: Any, target: Any, line: Any, lines: Any) -> None:
    """Write code, for an intrinsic, that copies one line's length of bytes; all of them copy all bytes.

    A line is streamed as the part of memory's line that it begins before. So what comes before the first whole line of
    memory, and the last line's length, are written as usual.
    """
    offset = builder.mul(line, LONG(LINE))
    start = builder.ptrtoint(target, LONG)
    before = builder.and_(builder.neg(start), LONG(LINE - 1))
    last = builder.icmp_unsigned("==", builder.add(line, LONG(1)), lines)
    first = builder.and_(builder.icmp_unsigned("==", line, LONG(0)), builder.icmp_unsigned("!=", before, LONG(0)))
    with builder.if_then(builder.or_(first, last), likely=False):
        _copy_line(builder, given, target, offset, 1)
    with builder.if_then(builder.not_(last), likely=True):
        hint = builder.module.add_metadata([NUMBER(1)])
        _copy_line(builder, given, target, builder.add(offset, before), LINE).set_metadata("nontemporal", hint)


def _copy_line(builder: Any, given: Any, target: Any, offset: Any, alignment: int) -> Any:
    """Write code that copies a line's length of bytes, and return its last instruction."""
    source, place = (
        builder.bitcast(builder.gep(pointer, [offset]), WORDS_OF_A_LINE.as_pointer()) for pointer in (given, target)
    )
    return builder.store(builder.load(source, align=1), place, align=alignment)


@overload(stream_row)
def _compiled_stream_row(array: Any, index: int, row: Any) -> Any:
    stream: Any = _stream_row  # numba supplies the first argument

    def implementation(array: Any, index: int, row: Any) -> None:
        stream(array, index, row)

    return implementation


@overload(end_streams)
def _compiled_end_streams() -> Any:
    end: Any = _end_streams

    def implementation() -> None:
        end()

    return implementation


@intrinsic
def _stream_row(context: Any, array: Any, index: Any, row: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        whole, given = (
            context.make_array(signature.args[place])(context, builder, arguments[place]) for place in (0, 2)
        )
        stride = builder.extract_value(whole.strides, 0)
        target = builder.add(builder.ptrtoint(whole.data, LONG), builder.mul(stride, arguments[1]))
        source = builder.ptrtoint(given.data, LONG)
        size = builder.mul(builder.extract_value(given.shape, 0), given.itemsize)

        def at(start: Any, offset: Any, kind: Any) -> Any:
            return builder.inttoptr(builder.add(start, offset), kind.as_pointer())

        def copy(offset: Any, count: Any) -> None:
            cgutils.raw_memcpy(builder, at(target, offset, BYTE), at(source, offset, BYTE), count, 1)

        # Whole lines are streamed; a row may begin and end within one.
        before = builder.and_(builder.neg(target), LONG(LINE - 1))
        before = builder.select(builder.icmp_unsigned("<", before, size), before, size)
        lines = builder.udiv(builder.sub(size, before), LONG(LINE))
        after = builder.add(before, builder.mul(lines, LONG(LINE)))
        copy(LONG(0), before)
        hint = builder.module.add_metadata([NUMBER(1)])
        with cgutils.for_range(builder, lines) as loop:
            offset = builder.add(before, builder.mul(loop.index, LONG(LINE)))
            line = builder.load(at(source, offset, WORDS_OF_A_LINE), align=8)
            builder.store(line, at(target, offset, WORDS_OF_A_LINE), align=LINE).set_metadata("nontemporal", hint)
        copy(after, builder.sub(size, after))
        return context.get_dummy_value()

    return types.void(array, types.int64, row), generate


@intrinsic
def _end_streams(context: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        if platform.machine() in ("x86_64", "AMD64"):  # others order such stores as all others
            kind = ir.FunctionType(ir.VoidType(), [])
            builder.call(cgutils.get_or_insert_function(builder.module, kind, "llvm.x86.sse.sfence"), [])
        return context.get_dummy_value()

    return types.void(), generate
