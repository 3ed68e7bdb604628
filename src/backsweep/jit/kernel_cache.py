"""The cache of compiled kernels.

numba's cache files are pickles, so anyone who can write them can run code as the user who loads them. They are
therefore stored only in a folder that belongs to this user and that no other user can write to or replace: in
NUMBA_CACHE_DIR, XDG_CACHE_HOME or the home's cache, else in a private folder for temporary files. Without such a
folder, on a full disk or with damaged files, every process compiles its kernels: slower, but otherwise harmless.
"""

# numba is not typed.
# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numba
import xxhash
from numba.core import sigutils, types
from numba.core.caching import FunctionCache
from numba.core.compiler_lock import global_compiler_lock

from backsweep.jit import wheel_cache
from backsweep.jit.garbage import rarer_searches
from backsweep.jit.interrupts import uninterrupted
from backsweep.jit.part_libraries import is_part, libraries_of, set_environments

_numba: Any = numba.config
COMPILED = (
    "*_kernels.py",
    "codes.py",
    "prefetching.py",
    "streaming.py",
    "array_table.py",
    "compilation.py",
    "kernel_cache.py",
    "part_libraries.py",
    "wheel_cache.py",
)
"""The files that affect compiled code: kernels, constants, shared tools, decorators and cache."""
WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH if os.name == "posix" else 0


class KernelCache(FunctionCache):
    """numba's cache of one function; failures are ignored."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the cached or shipped code of a signature, None if it is missing or cannot be read."""
        try:
            found = super().load_overload(sig, target_context)
        except Exception:  # damaged pickles raise anything; recompile in every case
            found = None
        return wheel_cache.load(self._py_func, sig, target_context, contents_digest()) if found is None else found

    def save_overload(self, sig: Any, data: Any) -> None:
        """Cache compiled code if possible."""
        if is_part(data):
            return  # it is cached as a part of its callers
        wheel_cache.save(self._py_func, sig, data, contents_digest())
        try:
            try:
                super().save_overload(sig, data)
            except OSError:
                raise
            except Exception:  # replace a damaged index
                self.flush()
                super().save_overload(sig, data)
        except OSError as error:
            say_once(f"compiled kernels cannot be cached in {cache_folder()} ({error.strerror}); continuing without")


_compiling: list[Any] = []
"""The kernels that are being compiled, each for the one before it; whoever holds numba's lock may change it."""


def with_cache(dispatcher: Any) -> Any:
    """Give a function compiled by numba a cache in our folder, if there is one; return it."""
    if _numba.DISABLE_JIT:
        return dispatcher
    _compile_in_one_go(dispatcher)
    folder = cache_folder()
    if folder is None:
        return dispatcher
    with _numbas_folder(folder), contextlib.suppress(RuntimeError, OSError):
        kept = KernelCache(dispatcher.py_func)
        if Path(kept.cache_path).is_relative_to(folder):
            dispatcher._cache = kept
    return dispatcher


def _compile_in_one_go(dispatcher: Any) -> None:
    """Delay signals while numba compiles or loads: an interrupted numba cannot be used any more in the process.

    A kernel that another one calls becomes a part of it (`part_libraries.py`), and gets no wrapper for calls from
    Python: for bundles of arrays the wrapper is more code, and takes longer to compile, than most kernels.
    """
    compile_it, add_it, options = dispatcher.compile, dispatcher.add_overload, dispatcher.targetoptions

    def compile_whole(signature: Any) -> Any:
        given, _ = sigutils.normalize_signature(signature)
        arguments = tuple(given)
        before = options.get("no_cpython_wrapper", False)
        with uninterrupted(), rarer_searches(), global_compiler_lock:
            part = bool(_compiling) or any(map(_only_kernels_have, arguments))
            part = part and not options.get("parallel")  # whose loops call machine code
            known = dispatcher.overloads.get(arguments)
            if known is not None and is_part(known) and not part:
                del dispatcher.overloads[arguments]
            options["no_cpython_wrapper"] = part
            _compiling.append(dispatcher)
            try:
                with libraries_of(dispatcher.targetctx, part):
                    found = compile_it(signature)
            finally:
                _compiling.pop()
                options["no_cpython_wrapper"] = before
            if not part:
                set_environments(dispatcher.overloads[arguments])
            return found

    def add_overload(result: Any) -> None:
        if is_part(result):
            dispatcher.overloads[tuple(result.signature.args)] = result  # where kernels find it, and Python does not
        else:
            add_it(result)

    dispatcher.compile, dispatcher.add_overload = compile_whole, add_overload


def _only_kernels_have(kind: Any) -> bool:
    if isinstance(kind, types.BaseTuple):
        members: Any = kind
        return any(map(_only_kernels_have, members.types))
    return getattr(kind, "of_kernels", False)


@contextlib.contextmanager
def _numbas_folder(folder: Path) -> Iterator[None]:
    """Make numba use our folder within the block, then restore its settings."""
    before = _numba.CACHE_DIR
    _numba.CACHE_DIR = str(folder)
    try:
        yield
    finally:
        _numba.CACHE_DIR = before


@cache
def cache_folder() -> Path | None:
    """Return the cache folder, None if there is no private one."""
    name = f"kernels-{contents_digest()}"
    for base in _bases():
        try:
            folder = base() / name
            if not _is_ours(folder.parent) or _can_be_swapped(folder.parent):
                continue
            folder.parent.chmod(0o700)
            if not _is_ours(folder):
                continue
            if folder.stat().st_mode & WRITABLE_BY_OTHERS:
                shutil.rmtree(folder)  # its contents may be another user's
                folder.mkdir(mode=0o700)
            if os.access(folder, os.W_OK | os.X_OK):
                return folder
        except (OSError, RuntimeError):  # no home, a read-only one, another user's, a full disk
            continue
    say_once("there is no private folder for compiled kernels; every process compiles them again")
    return None


def _bases() -> list[Callable[[], Path]]:
    """Return the ways to find our folder, in the order in which they are tried."""
    bases: list[Callable[[], Path]] = []
    for given in (_numba.CACHE_DIR, os.environ.get("XDG_CACHE_HOME")):
        if given:
            bases.append(lambda given=given: Path(given) / "backsweep")  # type: ignore[misc]
    bases.append(lambda: Path.home() / ".cache" / "backsweep")
    bases.append(lambda: Path(tempfile.gettempdir()) / f"backsweep-{_user()}")
    return bases


def _user() -> int:
    return os.getuid() if hasattr(os, "getuid") else 0


def _is_ours(folder: Path) -> bool:
    """Make a folder that only this user can write to; return whether it belongs to this user."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    found = folder.lstat()  # which does not follow a link
    return stat.S_ISDIR(found.st_mode) and (os.name != "posix" or found.st_uid == _user())


def _can_be_swapped(folder: Path) -> bool:
    """Return whether any user can put another folder in its place after it was checked.

    Who can write to one of the folders above it can rename what is in there, unless its sticky bit is set.
    """
    if os.name != "posix":
        return False
    above = {*folder.absolute().parents, *folder.resolve().parents}  # a link can be replaced, and what it leads to
    modes = [place.stat().st_mode for place in above]
    return any(mode & stat.S_IWOTH and not mode & stat.S_ISVTX for mode in modes)


@cache
def contents_digest() -> str:
    """Return a digest of everything that affects compiled code and that numba does not check."""
    package = Path(__file__).parent.parent
    digest = xxhash.xxh3_64(f"bounds checks: {_numba.BOUNDSCHECK}".encode())
    for path in sorted(path for pattern in COMPILED for path in package.rglob(pattern)):
        digest.update(path.relative_to(package).as_posix().encode())
        digest.update(path.read_bytes())
    return str(digest.hexdigest())


_said: set[str] = set()


def say_once(message: str) -> None:
    """Print a message to stderr, once per process."""
    if message not in _said:
        _said.add(message)
        print(f"backsweep: {message}", file=sys.stderr, flush=True)
