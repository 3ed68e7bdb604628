"""An array in a file whose disk space is allocated before it is written to.

Writing to a mapped page on a full disk kills the process (SIGBUS). So disk space is allocated ahead, in steps, by a
call that can fail.
"""

from __future__ import annotations

import errno
import math
import mmap
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

STEP = 64 << 20


class MappedFile:
    """A zeroed array in a new file at `path`; the first `allocate`d bytes of it may be written to.

    The file is temporary: it is unlinked at once where the system allows that, so that nothing is left behind
    however the process ends.
    """

    def __init__(self, path: Path, shape: tuple[int, ...], dtype: DTypeLike) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self._size = math.prod(shape) * np.dtype(dtype).itemsize
        self._allocated = 0
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0), 0o600)
        try:
            os.truncate(self._descriptor, self._size)
            block = mmap.mmap(self._descriptor, self._size)
        except OSError as error:
            os.close(self._descriptor)
            del self._descriptor  # the number may soon be that of another file
            path.unlink()
            raise OSError(
                error.errno, f"no file of {self._size} bytes can be made: {error.strerror}", str(path)
            ) from None
        if os.name == "posix":
            path.unlink()
        # A plain array: kernels are compiled once for both kinds of memory.
        self.array: NDArray[Any] = np.frombuffer(block, dtype).reshape(shape)

    def allocate(self, size: int) -> None:
        """Make sure that the first `size` bytes may be written to; raise OSError, with nothing changed, if not."""
        if size <= self._allocated:
            return
        goal = min(-(-size // STEP) * STEP, self._size)
        try:
            self._take(goal)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG) or goal == size:
                raise self._full(error) from None
            try:
                self._take(size)  # a whole step does not fit, but the required part may
            except OSError as last:
                raise self._full(last) from None

    def _take(self, size: int) -> None:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(self._descriptor, self._allocated, size - self._allocated)
        else:
            for start in range(self._allocated, size, 1 << 20):  # still zero: nothing was written yet
                os.pwrite(self._descriptor, bytes(min(1 << 20, size - start)), start)
        self._allocated = size

    def _full(self, error: OSError) -> OSError:
        return OSError(
            error.errno,
            f"{error.strerror}: the file with the observations cannot grow beyond {self._allocated} bytes; "
            "nothing was lost, and nothing was added. Free disk space, or use a smaller capacity",
            str(self.path),
        )

    def __del__(self) -> None:
        if hasattr(self, "_descriptor"):
            os.close(self._descriptor)
