"""Rows that are written past the caches are the rows that were given, and nothing beside them is written."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from backsweep.jit.compilation import kernel
from backsweep.jit.streaming import end_streams, stream_row

pytestmark = pytest.mark.kernels


@kernel
def stream(array: NDArray[np.uint64], index: int, row: NDArray[np.uint64]) -> None:
    stream_row(array, index, row)
    end_streams()


@given(st.integers(0, 40), st.integers(1, 5), st.integers(0, 7), st.data())
def test_a_streamed_row_is_copied_whole_and_alone(words: int, rows: int, shift: int, data: st.DataObject) -> None:
    """Rows begin and end anywhere in a line of the cache."""
    block = np.arange(shift + rows * words, dtype=np.uint64)
    array, expected = block[shift:].reshape(rows, words), block.copy()
    index = data.draw(st.integers(0, rows - 1))
    row = np.random.default_rng(words).integers(0, 2**64, words, np.uint64)
    expected[shift:].reshape(rows, words)[index] = row
    stream(array, index, row)
    assert np.array_equal(block, expected)
