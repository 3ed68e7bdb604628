"""All changes to the disk, in an order that survives a crash.

A file is written under a temporary name, flushed to the disk (fsync), and only then renamed. The new name is safe once
its folder has been flushed too.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

from backsweep.jit.interrupts import uninterrupted

TEMPORARY = ".tmp"
NO_LINKS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


def stage(path: Path, data: bytes | memoryview) -> None:
    """Write `data` in full under the temporary name of `path` and force it to the disk."""
    with staging(path) as file:
        write_all(file, data)


@contextlib.contextmanager
def staging(path: Path) -> Iterator[IO[bytes]]:
    """Open the file with the temporary name of `path` for writing, and force it to the disk at the end."""
    with _writing(temporary_name(path), path) as file:
        yield file


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """Open a file that takes the place of `path` once it is complete; several processes may do so at once.

    Each writes under a name of its own, and the file that is complete last stays. A killed process leaves its file
    behind, under a name that nothing reads.
    """
    temporary = path.with_name(f"{path.name}.{secrets.token_hex(8)}{TEMPORARY}")
    with _writing(temporary, path) as file:
        yield file
    _rename(temporary, path)


@contextlib.contextmanager
def _writing(temporary: Path, path: Path) -> Iterator[IO[bytes]]:
    with _naming_the_path(path):
        try:
            # A file of that name is an old temporary of ours, or a link that would redirect the write.
            remove(temporary)
            with opened(temporary, "wb", _open_new) as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
        except BaseException:
            remove(temporary)
            raise


def _open_new(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_EXCL | NO_LINKS, 0o666)


def write_all(file: IO[bytes], data: bytes | memoryview) -> None:
    """Write all of `data`."""
    file.write(data)


def read_whole(path: Path) -> bytes:
    """Return the contents of a regular file; anything else, such as a pipe that never ends, is an OSError."""
    with opened(path, "rb", regular) as file:
        data: bytes = file.read()
    return data


def opened(path: Path, mode: str, opener: Callable[[str, int], int]) -> Any:
    """Open a file with an `opener`, whose handle would be lost if a signal handler raised between its steps."""
    with uninterrupted():
        return open(path, mode, opener=opener)


def regular(path: str, flags: int) -> int:
    """Open a regular file, as the `opener` of `open`; anything else, such as a pipe that never ends, is an OSError."""
    handle = os.open(path, flags | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0), 0o666)
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file", path)
    except BaseException:  # also Ctrl-C
        os.close(handle)
        raise
    return handle


def regular_and_no_link(path: str, flags: int) -> int:
    """Open a regular file for writing, as the `opener` of `open`; a link, to a file elsewhere, is an OSError."""
    try:
        return regular(path, flags | NO_LINKS)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        raise OSError(errno.ELOOP, "it is a link, and writing would change a file elsewhere", path) from None


def traits(path: Path) -> tuple[int, ...]:
    """Return traits that change when a file is written to or replaced; empty without such a file."""
    try:
        found = path.lstat()
    except OSError:
        return ()
    return found.st_mode, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def publish(path: Path) -> None:
    """Rename a staged file to its final name, atomically."""
    _rename(temporary_name(path), path)


def _rename(temporary: Path, path: Path) -> None:
    with _naming_the_path(path):
        try:
            os.replace(temporary, path)
        except BaseException:
            remove(temporary)
            raise


def force_folder(folder: Path) -> None:
    """Force the names in a folder to the disk, where the system has such a thing."""
    if os.name != "posix":
        return
    with _naming_the_path(folder), uninterrupted():  # or the handle could be lost
        try:
            handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        except PermissionError:
            return  # a folder above ours that we may write to but not read: it cannot be forced by us
        try:
            os.fsync(handle)
        except OSError as error:
            # Some file systems cannot flush folders; nothing more can be done there.
            if error.errno not in (errno.EINVAL, errno.ENOTSUP):
                raise
        finally:
            os.close(handle)


def make_folder(folder: Path) -> None:
    """Create a folder and the ones above it, each forced to the disk; does nothing where it is there already."""
    if folder.is_dir():
        return
    make_folder(folder.parent)
    with _naming_the_path(folder):
        folder.mkdir(exist_ok=True)
    force_folder(folder.parent)


def remove(path: Path) -> None:
    """Delete a file if possible; a leftover is harmless, and the next save tries again."""
    with contextlib.suppress(OSError):
        os.unlink(path)


def temporary_name(path: Path) -> Path:
    """Where `path` is staged before it gets its name. For one writer at a time; `replacing` is for several."""
    return path.with_name(path.name + TEMPORARY)


@contextlib.contextmanager
def _naming_the_path(path: Path) -> Iterator[None]:
    """Add the file name to the error of a failed write, which does not contain it."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, f"{error.strerror or error} (while saving)", os.fspath(path)) from error
