"""Products of bytes and a matrix: the vector instructions give what plain integers give."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llvmlite import binding

from backsweep.encoding import byte_products_kernels
from backsweep.encoding.byte_products_kernels import BLOCK, LARGEST_ENTRY, OUTPUTS, multiply_blocks
from backsweep.encoding.random_projection import planes_of
from backsweep.encoding.random_projection_kernels import STRETCH, project_bytes
from backsweep.jit.compilation import interpreted
from twins.random_projection import project

SIZES = (1, 7, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK - 1, BLOCK * STRETCH, BLOCK * (STRETCH + 1) + 5)


@pytest.mark.kernels
@settings(max_examples=25)
@given(
    st.sampled_from(SIZES), st.integers(1, 7), st.lists(st.integers(0, 3), max_size=5), st.integers(0, 2**32), st.data()
)
def test_observations_are_projected_as_by_the_twin(
    size: int, rows: int, places: list[int], seed: int, data: st.DataObject
) -> None:
    """Rows of observations may be longer than what is projected: they are padded to whole words."""
    rng = np.random.default_rng(seed)
    largest = data.draw(st.sampled_from([1, 4096, LARGEST_ENTRY]))
    matrix = rng.integers(-largest, largest + 1, (rows, size)).astype(np.int32)
    observations = rng.integers(0, 256, (4, size + data.draw(st.integers(0, 7))), np.uint8)
    keys = rng.integers(-5, 5, (len(places), rows))
    expected = [
        [before + found for before, found in zip(key, project(observations[place, :size], matrix), strict=True)]
        for key, place in zip(keys.tolist(), places, strict=True)
    ]
    project_bytes(observations, np.array(places, np.int32).reshape(-1, 1), matrix, planes_of(matrix), keys)
    assert keys.tolist() == expected


@pytest.mark.parametrize("sign", [-1, 1])
def test_the_largest_sums_do_not_overflow(sign: int) -> None:
    size = BLOCK * (STRETCH + 2) + 1
    matrix = np.full((OUTPUTS, size), sign * LARGEST_ENTRY, np.int32)
    keys = np.zeros((1, OUTPUTS), np.int64)
    project_bytes(np.full((1, size), 255, np.uint8), np.zeros((1, 1), np.int32), matrix, planes_of(matrix), keys)
    assert keys.tolist() == [[sign * LARGEST_ENTRY * 255 * size] * OUTPUTS]


def can_run(bits: int) -> bool:
    needed = {0: None, 256: "avx2", 512: "avx512bw"}[bits]
    return needed is None or bool(binding.get_host_cpu_features().get(needed))


@pytest.mark.skipif(interpreted(), reason="it is about compiled code")
@pytest.mark.parametrize("bits", [0, 256, 512])
def test_every_kind_of_processor_finds_the_same(bits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    if not can_run(bits):
        pytest.skip("this processor lacks the instruction")
    monkeypatch.setattr(byte_products_kernels, "_vector_bits", lambda context: bits)
    intrinsic: Any = byte_products_kernels._multiply_blocks

    @numba.njit
    def compiled(pixels: Any, planes: Any) -> Any:
        return intrinsic(pixels, planes)

    rng = np.random.default_rng(bits)
    for blocks in (1, 2, 5):
        pixels = rng.integers(0, 256, blocks * BLOCK, np.uint8)
        matrix = rng.integers(-LARGEST_ENTRY, LARGEST_ENTRY + 1, (OUTPUTS, blocks * BLOCK)).astype(np.int32)
        planes = planes_of(matrix)[0]
        assert compiled(pixels, planes) == multiply_blocks(pixels, planes) == tuple(project(pixels, matrix))
