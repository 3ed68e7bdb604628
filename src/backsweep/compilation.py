"""Tells the user when the kernels are compiled for the first time, which takes seconds."""

from __future__ import annotations

import os
import sys
from typing import Any

_announced = False


def announce_first_compilation(kernel: Any) -> None:
    """Say once on stderr that compiling is under way if `kernel` has never been compiled on this machine."""
    global _announced
    if _announced or _is_cached(kernel):
        return
    _announced = True
    print("backsweep: compiling its kernels, once after an installation (about 20 s) ...", file=sys.stderr, flush=True)


def _is_cached(kernel: Any) -> bool:
    """Look for the index file that numba keeps per function; interpreted kernels have none and need none."""
    if not hasattr(kernel, "signatures"):
        return True
    if kernel.signatures:
        return True
    try:
        cache_file = kernel._cache._cache_file
        return os.path.exists(cache_file._index_path)
    except AttributeError:  # another numba keeps its cache elsewhere: rather silent than wrong
        return True
