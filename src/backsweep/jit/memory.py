"""Large arrays whose memory is taken as it is used.

`reserve` hands out zeroed arrays of the full size that a replay could ever need. The operating system gives them
physical pages only where something is written, so a replay for a million transitions that holds a thousand costs what
a thousand cost, nothing is ever copied to grow, and kernels see plain arrays with fixed addresses.
"""

from __future__ import annotations

import contextlib
import math
import mmap
import os
import sys
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

# Python names the flag from 3.13 on; the number is the Linux one.
_MAP_NORESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000)
_SMALL = 1 << 16
_LARGE = 1 << 24


def reserve(shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """Return a zeroed array whose pages are taken when they are first written."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    if size < _SMALL or not sys.platform.startswith("linux"):
        return np.zeros(shape, dtype)
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_NORESERVE
    block = mmap.mmap(-1, size, flags=flags)
    if size >= _LARGE and hasattr(mmap, "MADV_HUGEPAGE"):
        # Batches touch rows all over the place; with pages of 2 MiB the processor finds them without extra look-ups.
        # Where the kernel was built without such pages it says so, and small ones serve as well.
        with contextlib.suppress(OSError):
            block.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(block, dtype).reshape(shape)


def physical_memory() -> int | None:
    """Return the bytes of memory of this machine, or None where it cannot be told."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None
