"""Arrays whose memory is allocated as it is used: zeroed, writable, and as long as they are held."""

from __future__ import annotations

import gc
import sys

import numpy as np
import pytest

from backsweep.jit.memory import FILLED_IN_ORDER, READ_ALL_OVER, WRITTEN_ALL_OVER, aligned, reserve

HUGE_PAGE = 1 << 21


@pytest.mark.parametrize("large", [FILLED_IN_ORDER, READ_ALL_OVER, WRITTEN_ALL_OVER])
@pytest.mark.parametrize("rows", [0, 3, 5000, 140_000, 300_000, 1_100_000])
def test_reserved_arrays_are_zeroed_and_writable_from_end_to_end(rows: int, large: int) -> None:
    arrays = [reserve((rows, 2), np.int64, large) for _ in range(2)]
    for array in arrays:
        assert (array.shape, array.dtype) == ((rows, 2), np.int64)
        assert array.flags.c_contiguous
        assert not array.any()
    if sys.platform.startswith("linux") and arrays[0].nbytes >= large:
        assert [array.ctypes.data % HUGE_PAGE for array in arrays] == [0, 0]
    if rows:
        first, last = arrays[0][:1], arrays[0][-1:]
        first[:], last[:] = 5, 7
        assert not arrays[1].any()
        arrays.clear()
        gc.collect()
        assert last.tolist() == [[7, 7]]  # a view keeps the memory


def test_aligned_arrays_start_at_a_cache_line() -> None:
    for count in range(1, 40, 3):
        array = aligned((count, 2), np.int16)
        assert array.ctypes.data % 64 == 0
        assert (array.shape, array.dtype, array.any()) == ((count, 2), np.int16, False)
