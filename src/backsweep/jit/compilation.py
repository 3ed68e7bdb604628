"""How kernels are compiled: without the interpreter lock, once per installation, and never from a stale cache.

numba caches compiled code on disk and recompiles when the file of a function changes. It ignores changes in other files
whose functions and constants were compiled in, and the setting for bounds checks. So all kernels share one cache folder
that is named after a digest of all of that.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar, cast

import numba

from backsweep.jit.kernel_cache import cache_folder, with_cache
from backsweep.jit.part_libraries import is_part
from backsweep.jit.wheel_cache import has_kernels

_numba: Any = numba.config
Function = TypeVar("Function", bound=Callable[..., Any])
OPTIONS: dict[str, Any] = {"nogil": True, "no_cfunc_wrapper": True}  # nothing calls kernels from C

# GNU's OpenMP, which runs threaded kernels, lets a waiting thread spin for milliseconds before it sleeps. On shared
# cores it spins on a core that the others need, and a call of microseconds takes milliseconds. This many rounds are a
# fraction of a millisecond. The setting is read once, when OpenMP is loaded: for the first threaded kernel, or with
# torch.
if "OMP_WAIT_POLICY" not in os.environ:
    os.environ.setdefault("GOMP_SPINCOUNT", "10000")


def kernel(function: Function) -> Function:
    """Compile a function with numba when it is first called, and cache the result on disk."""
    # The result is called like the function itself, which is what the type says.
    return cast(Function, with_cache(numba.njit(**OPTIONS)(function)))


def inlined(function: Function) -> Function:
    """Compile a small function into the kernels that call it: passing arrays on costs more than its work."""
    return cast(Function, with_cache(numba.njit(**OPTIONS, forceinline=True)(function)))


def threaded(function: Function) -> Function:
    """Compile a kernel whose `prange` loops run on several threads; iterations must not write to the same places.

    A loop's body must be one call of a kernel, which is compiled separately. numba compiles loop bodies slowly, and
    drops writes to arrays that were made inside, such as those of an unpacked bundle.
    """
    return cast(Function, with_cache(numba.njit(**OPTIONS, parallel=True)(function)))


def entry_point(kernel: Callable[..., Any], numbers: int) -> Callable[..., Any] | None:
    """Return what numba calls for a kernel of so many whole numbers, None if it is not compiled yet.

    numba looks at the type of every argument of a call, which takes a tenth of a microsecond even for numbers.
    """
    dispatcher: Any = kernel
    found = None if interpreted() else dispatcher.overloads.get((numba.int64,) * numbers)
    return None if found is None or is_part(found) else cast(Callable[..., Any], found.entry_point)


@cache
def _prepare_threads() -> None:
    """Start numba's threads without changing torch's number of threads.

    On its first use, numba sets the number of threads of the process's OpenMP, which may be torch's; torch's small
    products then run on all cores and take several times as long.
    """
    torch: Any = sys.modules.get("torch")
    before = None if torch is None else torch.get_num_threads()
    numba.get_num_threads()
    if torch is not None and torch.get_num_threads() != before:
        torch.set_num_threads(before)


def use_threads(count: int | None) -> None:
    """Set the number of threads of threaded kernels called from this thread; None means every usable core."""
    most = most_threads()
    _prepare_threads()
    if count is not None and not 1 <= count <= most:
        raise ValueError(f"count must be in 1..{most}, got {count}")
    numba.set_num_threads(most if count is None else count)


def threads_in_use() -> int:
    """Return the number of threads of threaded kernels called from this thread."""
    _prepare_threads()
    return int(numba.get_num_threads())


def most_threads() -> int:
    """Return the largest number of threads: the usable cores, or NUMBA_NUM_THREADS."""
    return int(_numba.NUMBA_NUM_THREADS)


def interpreted() -> bool:
    """Return whether kernels run as plain Python (NUMBA_DISABLE_JIT), for debugging."""
    return bool(_numba.DISABLE_JIT)


def is_compiled(kernel: str = "") -> bool:
    """Return whether that kernel, or else any, is cached or came with the wheel, for whatever types."""
    folder = cache_folder()
    return has_kernels(kernel) or (folder is not None and any(folder.rglob(f"*{kernel}-*.nbi")))


_announced: set[str] = set()


def announce_first_compilation(kernel: str = "", what: str = "its kernels", how_long: str = "about 20 seconds") -> None:
    """Print once to stderr that kernels will be compiled, if that kernel, or else any, is not cached yet."""
    if kernel in _announced or _numba.DISABLE_JIT:
        return
    _announced.add(kernel)
    if not is_compiled(kernel):
        often = "once after an installation" if cache_folder() is not None else "in every process"
        print(f"backsweep: compiling {what}, {often} ({how_long}) ...", file=sys.stderr, flush=True)


def announced_elsewhere() -> None:
    """Do not say in this process that kernels will be compiled: the one that started it has said so."""
    _announced.add("")
