"""How kernels are compiled: without the interpreter lock, once per installation, and never from a stale cache.

numba keeps compiled code on disk and compiles anew when the file of a function changes. It does not look at the other
files whose functions and constants went into it, nor at whether bounds checks are asked for. So all kernels share one
cache folder that is named after all of that: a change in any of it starts a new one.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, TypeVar, cast

import numba

from backsweep.jit.kernel_cache import cache_folder, with_cache

_numba: Any = numba.config
Function = TypeVar("Function", bound=Callable[..., Any])

# GNU's OpenMP, which lends threaded kernels their threads, lets one that waits for the others spin for milliseconds
# before it sleeps. Where cores are shared, it spins on the very core that the others need, and a call of microseconds
# takes milliseconds. This many rounds are a fraction of one. It is read once, when OpenMP is loaded: for the first
# threaded kernel, or with torch.
if "OMP_WAIT_POLICY" not in os.environ:
    os.environ.setdefault("GOMP_SPINCOUNT", "10000")


def kernel(function: Function) -> Function:
    """Compile a function with numba when it is first called, and keep the result on disk."""
    # Called like the function it was made of, which is what the type says.
    return cast(Function, with_cache(numba.njit(nogil=True)(function)))


def inlined(function: Function) -> Function:
    """Compile a small function into the kernels that call it: passing arrays on costs more than its work."""
    return cast(Function, with_cache(numba.njit(nogil=True, forceinline=True)(function)))


def exact_sums(function: Function) -> Function:
    """Compile a kernel whose floating-point sums come out the same in any order, and so may be computed in any order.

    That is so where every number and every partial sum is a whole number below 2**53.
    """
    return cast(Function, with_cache(numba.njit(nogil=True, fastmath={"reassoc", "contract"})(function)))


def threaded(function: Function) -> Function:
    """Compile a kernel whose `prange` loops are shared out among threads; its parts must not write to the same places.

    A loop's body must be one call of a kernel. That kernel is compiled on its own as ever, while numba's treatment of
    the body is slow, and drops writes to arrays that were made inside it, such as those of an unpacked bundle.
    """
    return cast(Function, with_cache(numba.njit(nogil=True, parallel=True)(function)))


@cache
def _prepare_threads() -> None:
    """Let numba make its threads ready, and torch keep the number of threads that it had.

    Asked for the first time, numba sets the number for whatever OpenMP there is in the process, which may be torch's;
    its small products then run on all cores, where they take several times as long.
    """
    torch: Any = sys.modules.get("torch")
    before = None if torch is None else torch.get_num_threads()
    numba.get_num_threads()
    if torch is not None and torch.get_num_threads() != before:
        torch.set_num_threads(before)


def use_threads(count: int | None) -> None:
    """Let threaded kernels called from this thread use `count` threads from here on; None means every usable core."""
    most = most_threads()
    _prepare_threads()
    if count is not None and not 1 <= count <= most:
        raise ValueError(f"count must be in 1..{most}, got {count}")
    numba.set_num_threads(most if count is None else count)


def threads_in_use() -> int:
    """Return how many threads the threaded kernels called from this thread use; to be asked before the first call."""
    _prepare_threads()
    return int(numba.get_num_threads())


def most_threads() -> int:
    """Return how many threads there can be: as many as cores may be used, or NUMBA_NUM_THREADS."""
    return int(_numba.NUMBA_NUM_THREADS)


@contextlib.contextmanager
def on_one_thread() -> Iterator[None]:
    """Keep threaded kernels on the calling thread for a while: little work costs more to hand over than to do."""
    before = threads_in_use()
    numba.set_num_threads(1)
    try:
        yield
    finally:
        numba.set_num_threads(before)


def interpreted() -> bool:
    """Say whether kernels run as plain Python (NUMBA_DISABLE_JIT), for debugging."""
    return bool(_numba.DISABLE_JIT)


_announced: set[str] = set()


def announce_first_compilation(
    kernel: str = "", what: str = "its kernels", how_long: str = "about half a minute"
) -> None:
    """Say once on stderr that compiling lies ahead, if that kernel, or else any, is not there yet on this machine."""
    if kernel in _announced or _numba.DISABLE_JIT:
        return
    _announced.add(kernel)
    folder = cache_folder()
    if folder is None or not any(folder.rglob(f"*{kernel}-*.nbi")):
        often = "once after an installation" if folder is not None else "in every process"
        print(f"backsweep: compiling {what}, {often} ({how_long}) ...", file=sys.stderr, flush=True)
