"""Products of bytes and a matrix of integers, with the processor's instruction for 16-bit numbers.

Processors multiply 16-bit numbers and add pairs of products to a 32-bit sum in one instruction, for 16 pairs at a time.
Entries of the matrix have 25 bits, so each is split into two:

    entry = low + high * 2**12        low in -2048 .. 2047

and the matrix is arranged in the order in which it is read, in blocks of 64 pixels, three rows of the matrix at a time:

    planes[group of three rows, block, part, pixel within half a block]
    part = 6 * (half of the block) + 2 * (row within the group) + (0: low, 1: high)

The last block ends at the last pixel, so it may overlap the one before; the overlap is 0 there. No compiler finds this
instruction in a plain loop over bytes, so it is written out here. Interpreted kernels, and processors other than
x86-64, get the same sums by plain arithmetic.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils as numba_cgutils
from numba.core import types
from numba.extending import intrinsic, overload
from numpy.typing import NDArray

from backsweep.jit.wheel_cache import BASELINES

cgutils: Any = numba_cgutils

HALF = 32
BLOCK = 2 * HALF
OUTPUTS = 3  # rows of the matrix in a group: their sums fit into registers
LOW_BITS = 12
PARTS = 4 * OUTPUTS
LARGEST_ENTRY = 2**24 - 1  # the sums of a stretch of blocks stay far below 2**31


def multiply_blocks(pixels: NDArray[np.uint8], planes: NDArray[np.int16]) -> tuple[int, int, int]:
    """Return the products of some blocks of bytes and the three rows in one group of planes (block, part, pixel)."""
    parts = planes.astype(np.int64).reshape(-1, 2, OUTPUTS, 2, HALF)
    sums = (parts * pixels.reshape(-1, 2, 1, 1, HALF)).sum((0, 1, 4))
    first, second, third = (sums[:, 0] + (sums[:, 1] << LOW_BITS)).tolist()
    return first, second, third


@overload(multiply_blocks)
def _compiled_multiply_blocks(pixels: Any, planes: Any) -> Any:
    compiled: Any = _multiply_blocks  # numba supplies the first argument

    def implementation(pixels: Any, planes: Any) -> Any:
        return compiled(pixels, planes)

    return implementation


BYTE, SHORT, INT, LONG = (ir.IntType(bits) for bits in (8, 16, 32, 64))
BYTES, SHORTS, SUMS = ir.VectorType(BYTE, HALF), ir.VectorType(SHORT, HALF), ir.VectorType(INT, HALF // 2)


@intrinsic
def _multiply_blocks(context: Any, pixels: Any, planes: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        views = [
            context.make_array(kind)(context, builder, argument)
            for kind, argument in zip(signature.args, arguments, strict=True)
        ]
        first_pixel = builder.bitcast(views[0].data, BYTE.as_pointer())
        first_entry = builder.bitcast(views[1].data, SHORT.as_pointer())
        bits = _vector_bits(context)
        # Two chains of sums hide the latency of an addition, where there are registers enough for them.
        chains = 2 if bits == 512 else 1
        sums = [cgutils.alloca_once_value(builder, ir.Constant(SUMS, None)) for _ in range(chains * 2 * OUTPUTS)]

        def load(first: Any, block: Any, stride: int, offset: int, kind: Any) -> Any:
            place = builder.add(builder.mul(block, LONG(stride)), LONG(offset))
            return builder.load(builder.bitcast(builder.gep(first, [place]), kind.as_pointer()), align=1)

        with cgutils.for_range(builder, builder.extract_value(views[1].shape, 0)) as loop:
            for half in range(2):
                numbers = builder.zext(load(first_pixel, loop.index, BLOCK, HALF * half, BYTES), SHORTS)
                for part in range(2 * OUTPUTS):
                    offset = HALF * (2 * OUTPUTS * half + part)
                    entries = load(first_entry, loop.index, HALF * PARTS, offset, SHORTS)
                    place = sums[2 * OUTPUTS * (half % chains) + part]
                    products = _add_pairs(builder, numbers, entries, bits)
                    builder.store(builder.add(builder.load(place), products), place)
        totals = [_total(builder, sums[part :: 2 * OUTPUTS]) for part in range(2 * OUTPUTS)]
        results = [
            builder.add(totals[2 * row], builder.shl(totals[2 * row + 1], LONG(LOW_BITS))) for row in range(OUTPUTS)
        ]
        return context.make_tuple(builder, signature.return_type, results)

    sums: Any = types.UniTuple
    return sums(types.int64, OUTPUTS)(pixels, planes), generate


def _vector_bits(context: Any) -> int:
    """Return the bits of the instruction that adds pairs of products on the processor that code is made for, or 0."""
    triple, name, features = context.codegen().magic_tuple()
    if not triple.startswith("x86_64"):
        return 0
    if "+avx512bw" in features:
        return 512
    return 256 if "+avx2" in features or name == BASELINES["x86_64"][0] else 0


def _add_pairs(builder: Any, numbers: Any, entries: Any, bits: int) -> Any:
    """Multiply two vectors of shorts; return the sums of pairs of products, in no particular order."""

    def shorts(vector: Any, start: int, count: int) -> Any:
        picked = ir.Constant(ir.VectorType(INT, count), [INT(start + i) for i in range(count)])
        return builder.shuffle_vector(vector, ir.Constant(vector.type, None), picked)

    count = HALF // 2
    if bits == 512:
        return _call(builder, "llvm.x86.avx512.pmaddw.d.512", SUMS, [numbers, entries])
    if bits == 256:
        kind = ir.VectorType(INT, count // 2)
        halves = [
            _call(builder, "llvm.x86.avx2.pmadd.wd", kind, [shorts(numbers, i, count), shorts(entries, i, count)])
            for i in (0, count)
        ]
        both = ir.Constant(SUMS, [INT(i) for i in range(count)])
        return builder.shuffle_vector(halves[0], halves[1], both)
    wide = ir.VectorType(INT, HALF)
    products = builder.mul(builder.sext(numbers, wide), builder.sext(entries, wide))
    return builder.add(shorts(products, 0, count), shorts(products, count, count))


def _total(builder: Any, places: list[Any]) -> Any:
    """Return the sum of all entries of some vectors of sums, as a 64-bit number."""
    wide = ir.VectorType(LONG, HALF // 2)
    vectors = [builder.sext(builder.load(place), wide) for place in places]
    total = vectors[0]
    for vector in vectors[1:]:
        total = builder.add(total, vector)
    return _call(builder, f"llvm.vector.reduce.add.v{HALF // 2}i64", LONG, [total])


def _call(builder: Any, name: str, result: Any, arguments: list[Any]) -> Any:
    kind = ir.FunctionType(result, [argument.type for argument in arguments])
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), arguments)
