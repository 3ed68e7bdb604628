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

from backsweep.jit.streaming import stream_line
from backsweep.jit.wheel_cache import BASELINES

cgutils: Any = numba_cgutils

HALF = 32
BLOCK = 2 * HALF
OUTPUTS = 3  # rows of the matrix in a group: their sums fit into registers
LOW_BITS = 12
PARTS = 4 * OUTPUTS
IMAGES_AT_ONCE = 4
LARGEST_ENTRY = 2**24 - 1  # the sums of a stretch of blocks stay below 2**31


def multiply_blocks(
    images: tuple[NDArray[np.uint8], ...], planes: NDArray[np.int16], copies: tuple[NDArray[np.uint8], ...]
) -> tuple[int, ...]:
    """Multiply some blocks of bytes of one image or more by one group of planes (block, part, pixel).

    Returns the products with the three rows of the matrix, of one image after the other. `IMAGES_AT_ONCE` images take
    less time together, because each part of the planes is then read once for all.

    If there are `copies`, one for each image, the bytes are copied there, past the caches; `end_streams` must follow.
    Memory takes its time to accept them, and the processor multiplies meanwhile.
    """
    parts = planes.astype(np.int64).reshape(-1, 2, OUTPUTS, 2, HALF)
    products: list[int] = []
    for pixels in images:
        sums = (parts * pixels.reshape(-1, 2, 1, 1, HALF)).sum((0, 1, 4))
        products += (sums[:, 0] + (sums[:, 1] << LOW_BITS)).tolist()
    for pixels, copy in zip(images, copies, strict=False):
        copy[:] = pixels
    return tuple(products)


@overload(multiply_blocks)
def _compiled_multiply_blocks(images: Any, planes: Any, copies: Any) -> Any:
    compiled: Any = _multiply_blocks  # numba supplies the first argument

    def implementation(images: Any, planes: Any, copies: Any) -> Any:
        return compiled(images, planes, copies)

    return implementation


def has_registers_for_many() -> bool:
    """Say whether the processor keeps the sums of `IMAGES_AT_ONCE` images in registers."""
    return True


@overload(has_registers_for_many)
def _compiled_has_registers_for_many() -> Any:
    compiled: Any = _has_registers_for_many

    def implementation() -> bool:
        return bool(compiled())

    return implementation


@intrinsic
def _has_registers_for_many(context: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return ir.Constant(ir.IntType(1), int(_vector_bits(context) == 512))

    return types.boolean(), generate


BYTE, SHORT, INT, LONG = (ir.IntType(bits) for bits in (8, 16, 32, 64))
BYTES, SHORTS, SUMS = ir.VectorType(BYTE, HALF), ir.VectorType(SHORT, HALF), ir.VectorType(INT, HALF // 2)


@intrinsic
def _multiply_blocks(context: Any, images: Any, planes: Any, copies: Any) -> Any:
    count = len(images)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        def first(kind: Any, array: Any, number: Any) -> Any:
            view = context.make_array(kind)(context, builder, array)
            return builder.bitcast(view.data, number.as_pointer())

        def firsts(place: int) -> list[Any]:
            kinds = signature.args[place]
            return [first(kind, builder.extract_value(arguments[place], i), BYTE) for i, kind in enumerate(kinds)]

        first_pixels, first_copies = firsts(0), firsts(2)
        first_entry = first(planes, arguments[1], SHORT)
        blocks = builder.extract_value(context.make_array(planes)(context, builder, arguments[1]).shape, 0)
        bits = _vector_bits(context)
        # Two chains of sums of one image hide the latency of an addition, where there are registers enough for them.
        chains = 2 if bits == 512 and count == 1 else 1
        sums = [
            [cgutils.alloca_once_value(builder, ir.Constant(SUMS, None)) for _ in range(chains * 2 * OUTPUTS)]
            for _ in range(count)
        ]

        def load(start: Any, block: Any, stride: int, offset: int, kind: Any) -> Any:
            place = builder.add(builder.mul(block, LONG(stride)), LONG(offset))
            return builder.load(builder.bitcast(builder.gep(start, [place]), kind.as_pointer()), align=1)

        with cgutils.for_range(builder, blocks) as loop:
            for pixels, copy in zip(first_pixels, first_copies, strict=False):
                stream_line(builder, pixels, copy, loop.index, blocks)
            for half in range(2):
                numbers = [
                    builder.zext(load(pixels, loop.index, BLOCK, HALF * half, BYTES), SHORTS) for pixels in first_pixels
                ]
                for part in range(2 * OUTPUTS):
                    offset = HALF * (2 * OUTPUTS * half + part)
                    entries = load(first_entry, loop.index, HALF * PARTS, offset, SHORTS)
                    for image in range(count):
                        place = sums[image][2 * OUTPUTS * (half % chains) + part]
                        products = _add_pairs(builder, numbers[image], entries, bits)
                        builder.store(builder.add(builder.load(place), products), place)
        results = []
        for places in sums:
            totals = [_total(builder, places[part :: 2 * OUTPUTS]) for part in range(2 * OUTPUTS)]
            results += [
                builder.add(totals[2 * row], builder.shl(totals[2 * row + 1], LONG(LOW_BITS))) for row in range(OUTPUTS)
            ]
        return context.make_tuple(builder, signature.return_type, results)

    products: Any = types.UniTuple
    return products(types.int64, OUTPUTS * count)(images, planes, copies), generate


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
