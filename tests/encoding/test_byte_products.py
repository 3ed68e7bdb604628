"""Products of bytes and a matrix: the vector instructions give what plain integers give."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llvmlite import binding

from backsweep.encoding import byte_products_kernels
from backsweep.encoding.byte_products_kernels import BLOCK, IMAGES_AT_ONCE, LARGEST_ENTRY, OUTPUTS, multiply_blocks
from backsweep.encoding.random_projection import planes_of
from backsweep.encoding.random_projection_kernels import LONG_STRETCH, STRETCH, multiplied_together, project_bytes
from backsweep.jit.compilation import interpreted
from twins.random_projection import project

SIZES = (1, 7, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK - 1, BLOCK * STRETCH, BLOCK * (STRETCH + 1) + 5)


PLACES = 4


@pytest.mark.kernels
@settings(max_examples=25)
@given(
    st.sampled_from(SIZES),
    st.integers(1, 7),
    st.lists(st.integers(0, PLACES - 1), max_size=2 * IMAGES_AT_ONCE + 1),
    st.booleans(),
    st.integers(0, 2**32),
    st.data(),
)
def test_observations_are_projected_and_copied_as_by_the_twin(
    size: int, rows: int, places: list[int], copied: bool, seed: int, data: st.DataObject
) -> None:
    """Rows of observations may be longer than what is projected: they are padded to whole words.

    A place of the copies that is named twice keeps what is copied there last.
    """
    rng = np.random.default_rng(seed)
    largest = data.draw(st.sampled_from([1, 4096, LARGEST_ENTRY]))
    matrix = rng.integers(-largest, largest + 1, (rows, size)).astype(np.int32)
    observations = rng.integers(0, 256, (PLACES, size + data.draw(st.integers(0, 7))), np.uint8)
    keys = rng.integers(-5, 5, (len(places), rows))
    expected = [
        [before + found for before, found in zip(key, project(observations[place, :size], matrix), strict=True)]
        for key, place in zip(keys.tolist(), places, strict=True)
    ]
    numbers = np.array([(place, data.draw(st.integers(0, PLACES - 1))) for place in places], np.int32).reshape(-1, 2)
    copies = np.zeros((PLACES if copied else 0, size + data.draw(st.integers(0, 7))), np.uint8)
    expected_copies = copies.copy()
    if copied and size >= BLOCK:
        for place, target in numbers[: multiplied_together(len(places))].tolist():
            expected_copies[target, :size] = observations[place, :size]
    project_bytes(observations, numbers, matrix, planes_of(matrix), keys, copies)
    assert keys.tolist() == expected
    assert np.array_equal(copies, expected_copies)


@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize("count", [1, IMAGES_AT_ONCE + 1])
def test_the_largest_sums_do_not_overflow(sign: int, count: int) -> None:
    size = BLOCK * (max(STRETCH, LONG_STRETCH) + 2) + 1
    matrix = np.full((OUTPUTS, size), sign * LARGEST_ENTRY, np.int32)
    keys, places = np.zeros((count, OUTPUTS), np.int64), np.zeros((count, 1), np.int32)
    no_copies = np.zeros((0, size), np.uint8)
    project_bytes(np.full((1, size), 255, np.uint8), places, matrix, planes_of(matrix), keys, no_copies)
    assert keys.tolist() == [[sign * LARGEST_ENTRY * 255 * size] * OUTPUTS] * count


def can_run(bits: int) -> bool:
    needed = {0: None, 256: "avx2", 512: "avx512bw"}[bits]
    return needed is None or bool(binding.get_host_cpu_features().get(needed))


def compiled_for(bits: int, monkeypatch: pytest.MonkeyPatch) -> Callable[[Any, Any, Any], Any]:
    """Compile the products for a processor with instructions of so many bits."""
    if not can_run(bits):
        pytest.skip("this processor lacks the instruction")
    monkeypatch.setattr(byte_products_kernels, "_vector_bits", lambda context: bits)
    intrinsic: Any = byte_products_kernels._multiply_blocks

    @numba.njit
    def compiled(images: Any, planes: Any, copies: Any) -> Any:
        return intrinsic(images, planes, copies)

    return compiled


@pytest.mark.skipif(interpreted(), reason="it is about compiled code")
@pytest.mark.parametrize("bits", [0, 256, 512])
def test_every_kind_of_processor_finds_the_same(bits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = compiled_for(bits, monkeypatch)
    rng = np.random.default_rng(bits)
    for blocks in (1, 2, 5):
        images = tuple(rng.integers(0, 256, (IMAGES_AT_ONCE, blocks * BLOCK), np.uint8))
        matrix = rng.integers(-LARGEST_ENTRY, LARGEST_ENTRY + 1, (OUTPUTS, blocks * BLOCK)).astype(np.int32)
        planes = planes_of(matrix)[0]
        products = [tuple(project(pixels, matrix)) for pixels in images]
        assert compiled(images[:1], planes, ()) == multiply_blocks(images[:1], planes, ()) == products[0]
        assert compiled(images, planes, ()) == multiply_blocks(images, planes, ()) == sum(products, ())


@pytest.mark.skipif(interpreted(), reason="it is about compiled code")
@pytest.mark.parametrize("bits", [0, 256, 512])
@pytest.mark.parametrize("offset", [0, 1, 8, BLOCK - 1])
def test_copies_begin_anywhere_in_a_line_of_memory(bits: int, offset: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is written before or after a copy."""
    compiled = compiled_for(bits, monkeypatch)
    rng = np.random.default_rng(offset)
    for blocks in (1, 2, 5):
        size = blocks * BLOCK
        images = tuple(rng.integers(1, 256, (IMAGES_AT_ONCE, size), np.uint8))
        planes = planes_of(np.ones((OUTPUTS, size), np.int32))[0]
        memory = np.zeros((IMAGES_AT_ONCE, size + 2 * BLOCK), np.uint8)
        compiled(images, planes, tuple(row[offset : offset + size] for row in memory))
        assert not memory[:, :offset].any()
        assert np.array_equal(memory[:, offset : offset + size], np.stack(images))
        assert not memory[:, offset + size :].any()


@pytest.mark.skipif(interpreted(), reason="it is about compiled code")
@pytest.mark.parametrize(("bits", "at_once"), [(0, False), (256, False), (512, True)])
def test_many_are_multiplied_at_once_where_there_are_registers(
    bits: int, at_once: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(byte_products_kernels, "_vector_bits", lambda context: bits)

    intrinsic: Any = byte_products_kernels._has_registers_for_many

    @numba.njit
    def compiled() -> bool:
        return bool(intrinsic())

    assert compiled() == at_once
