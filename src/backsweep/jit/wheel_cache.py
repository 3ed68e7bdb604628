"""Compiled kernels that come with a wheel, so that the first use does not have to compile them.

numba caches code for the processor on which it was compiled. Kernels in a wheel are compiled for any processor of
the last ten years instead (`BASELINES`), and are used where the user's own cache has none. They are as exact as the
others, and somewhat slower on processors that can do more; `backsweep compile` puts native ones into the cache.

A file is used only with the numba and the Python that it was made with and with unchanged kernels. Otherwise, or if the
processor lacks an instruction, kernels are compiled as without a wheel. Files are pickles, like those of numba's cache.
They are read from the package's own folder, which can be trusted as much as the code next to it.
"""

# numba is not typed.
# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import os
import platform
import sys
from functools import cache
from pathlib import Path
from typing import Any

from llvmlite import binding
from numba.core.caching import IndexDataCacheFile
from numba.core.compiler import CompileResult

FOLDER = Path(__file__).parent.parent / "compiled"
V3 = ("avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "popcnt")
BASELINES: dict[str, tuple[str, tuple[str, ...]]] = {
    "x86_64": ("x86-64-v3", V3),
    "amd64": ("x86-64-v3", V3),
    "aarch64": ("generic", ()),
    "arm64": ("generic", ()),
}
"""By machine: the processor that kernels in wheels are compiled for, and the instructions that it needs."""


def baseline() -> tuple[str, tuple[str, ...]] | None:
    """Return the processor for this machine's wheels and its instructions; None if there are no wheels for it."""
    return BASELINES.get(platform.machine().lower())


def baseline_environment() -> dict[str, str]:
    """Return the environment of a process that compiles for that processor and for nothing more."""
    known = baseline()
    if known is None:
        raise ValueError(f"kernels for wheels can be compiled on {', '.join(BASELINES)}, got {platform.machine()}")
    return {**os.environ, "NUMBA_CPU_NAME": known[0], "NUMBA_CPU_FEATURES": ""}


@cache
def _runs_here() -> bool:
    known, found = baseline(), binding.get_host_cpu_features()
    return known is not None and all(found.get(name) for name in known[1])


def _file_of(function: Any, digest: str, folder: Path) -> Any:
    python = f"py{sys.version_info.major}{sys.version_info.minor}"
    return IndexDataCacheFile(str(folder), f"{function.__module__}.{function.__qualname__}.{python}", digest)


def load(function: Any, signature: Any, target_context: Any, digest: str) -> Any:
    """Return the shipped code of a kernel for a signature, None if there is none that can be used here."""
    if _into or not FOLDER.is_dir() or not _runs_here():
        return None  # what is being shipped is compiled, not read back
    try:
        found = _file_of(function, digest, FOLDER).load(str(signature))
        return None if found is None else CompileResult._rebuild(target_context, *found)
    except Exception:  # damaged pickles raise anything; compile in every case
        return None


_into: list[Path] = []


def ship_into(folder: Path) -> None:
    """Write everything that this process compiles from here on to `folder`, for a wheel."""
    folder.mkdir(parents=True, exist_ok=True)
    _into[:] = [folder]


def save(function: Any, signature: Any, result: Any, digest: str) -> None:
    """Write compiled code if this process compiles for a wheel."""
    for folder in _into:
        _file_of(function, digest, folder).save(str(signature), result._reduce())


def has_kernels(kernel: str = "") -> bool:
    """Return whether there are shipped kernels for this machine, or that one."""
    return _runs_here() and any(FOLDER.glob(f"*{kernel}.py*.nbi"))
