"""The error about the contents of a snapshot folder."""

from __future__ import annotations

import errno
import os


class SnapshotError(ValueError):
    """A snapshot folder cannot be read or written.

    Parameters
    ----------
    path
        The file or folder at fault.
    why
        What is wrong with it.
    advice
        What to do next.
    """

    def __init__(self, path: str | os.PathLike[str], why: str, advice: str) -> None:
        # The three parts go to ``args`` unchanged, so that the error can be pickled.
        super().__init__(os.fspath(path), why, advice)
        self.path = os.fspath(path)
        self.why = why
        self.advice = advice

    def __str__(self) -> str:
        """Name the file, the reason and the advice, in that order."""
        return f"{self.path}: {self.why}. {self.advice}."


class ReplacedError(SnapshotError):
    """Another process has saved to a folder while it was being read; loading it again will do.

    Parameters
    ----------
    folder
        The folder.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        super().__init__(folder, "it was replaced by a newer save while it was being read", "Load it again")

    def __reduce__(self) -> tuple[type[ReplacedError], tuple[str]]:
        return ReplacedError, (self.path,)


class WriterError(SnapshotError):
    """Another process is writing to a folder."""


RESTORE = "Restore the folder from a copy, or load another snapshot"
"""The advice for damaged files."""
LET_READ = "Nothing is known to be wrong with it: let this process read it, and try again"
"""The advice for files that may be whole."""
NOT_THE_FILES_FAULT = (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EACCES, errno.EPERM)


def advice_for(error: OSError) -> str:
    """Return what to do about a file that could not be read."""
    return LET_READ if error.errno in NOT_THE_FILES_FAULT else RESTORE
