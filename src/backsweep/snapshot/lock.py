"""One writer at a time."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path

from backsweep.snapshot.errors import SnapshotError, WriterError
from backsweep.snapshot.files import NO_LINKS

try:
    import fcntl
except ImportError:  # a system without advisory locks: the user must avoid two writers
    fcntl = None  # type: ignore[assignment]

LOCK_NAME = "writer.lock"


@contextlib.contextmanager
def writer_lock(folder: Path) -> Iterator[None]:
    """Hold the folder's lock, or raise `WriterError` at once if another writer has it.

    The system releases the lock when its holder dies, so a killed writer never leaves a folder locked. The lock file
    itself stays: removing it would let two writers each lock a different file.
    """
    try:
        handle = os.open(folder / LOCK_NAME, os.O_RDWR | os.O_CREAT | NO_LINKS, 0o666)
    except OSError as error:
        if error.errno == errno.ELOOP:
            why = "it is a link, and locking it would make or touch a file elsewhere"
            raise SnapshotError(folder / LOCK_NAME, why, "Remove the link") from error
        if error.errno == errno.EISDIR:
            raise SnapshotError(folder / LOCK_NAME, "it is a folder and cannot be locked", "Remove it") from error
        raise
    try:
        if fcntl is None:
            yield
            return
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise WriterError(
                folder, "another writer is saving to this folder", "Wait for it to finish, or save to another folder"
            ) from error
        except OSError as error:
            # A file system without locks: the lock is advisory, so save without it.
            if error.errno not in (errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK):
                raise
        if not _is_there(folder / LOCK_NAME, handle):
            raise SnapshotError(folder, "another process removed this folder just now", "Try again")
        try:
            yield
        finally:
            # Unlocked explicitly, since a child process forked since then would keep a merely closed lock alive.
            with contextlib.suppress(OSError):
                fcntl.flock(handle, fcntl.LOCK_UN)
    finally:
        os.close(handle)


def _is_there(path: Path, handle: int) -> bool:
    """Return whether a path still leads to an open file: who removed it may have made another one since."""
    try:
        return os.path.samestat(os.stat(path), os.fstat(handle))
    except FileNotFoundError:
        return False
