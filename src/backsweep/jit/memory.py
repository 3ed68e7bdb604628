"""Large arrays whose memory is allocated as it is used.

`reserve` returns zeroed arrays of the largest size that a replay could need. The operating system provides physical
pages only where something is written, so a replay for a million transitions that holds a thousand needs memory for a
thousand, arrays are never copied to grow, and kernels see plain arrays with fixed addresses.
"""

from __future__ import annotations

import contextlib
import math
import mmap
import sys
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

# Python names the flag from 3.13 on; the number is the Linux one.
_MAP_NORESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000)
_SMALL = 1 << 16
_HUGE_PAGE = 1 << 21
FILLED_IN_ORDER = 8 * _HUGE_PAGE
"""The least size for large pages of an array that is filled from its start."""
READ_ALL_OVER = 3 * _HUGE_PAGE
"""The same for an array whose entries are also read in no order, by every batch."""
WRITTEN_ALL_OVER = _HUGE_PAGE
"""The same for a hash table: a few hundred entries are enough to touch all of its pages, small or large."""
_LINE = 64


def reserve(shape: tuple[int, ...], dtype: DTypeLike, large: int = FILLED_IN_ORDER) -> NDArray[Any]:
    """Return a zeroed array whose pages are allocated when first written; from `large` bytes on, pages of 2 MiB.

    With these the processor needs fewer address look-ups, which take longer than the reads and prefetches that wait
    for them. But half of one is wasted where an array ends, and a few entries here and there take much memory.
    """
    size = math.prod(shape) * np.dtype(dtype).itemsize
    if size < _SMALL or not sys.platform.startswith("linux"):
        return np.zeros(shape, dtype)
    if size < large or not hasattr(mmap, "MADV_HUGEPAGE"):
        return np.frombuffer(_pages(size), dtype).reshape(shape)
    block = _pages(size + _HUGE_PAGE)
    with contextlib.suppress(OSError):  # kernels without such pages raise, and small pages work as well
        block.madvise(mmap.MADV_HUGEPAGE)
    start = -np.frombuffer(block, np.uint8).ctypes.data % _HUGE_PAGE
    return np.frombuffer(block, dtype, math.prod(shape), start).reshape(shape)


def _pages(size: int) -> mmap.mmap:
    try:
        return mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_NORESERVE)
    except OSError as error:
        raise MemoryError(f"{size} bytes of memory cannot be reserved: {error.strerror}") from error


def aligned(shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """Return a zeroed array that starts at a cache line, so that no vector straddles two."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    block = np.zeros(size + _LINE, np.uint8)
    start = -block.ctypes.data % _LINE
    return block[start : start + size].view(dtype).reshape(shape)
