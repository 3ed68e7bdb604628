"""The one error that a snapshot folder raises about its own contents."""

from __future__ import annotations

import os


class SnapshotError(ValueError):
    """A snapshot folder cannot be read or written as it stands.

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
        # The three parts go to ``args`` as they are, so that the error survives a trip between processes.
        super().__init__(os.fspath(path), why, advice)
        self.path = os.fspath(path)
        self.why = why
        self.advice = advice

    def __str__(self) -> str:
        """Name the file, the reason and the way out, in that order."""
        return f"{self.path}: {self.why}. {self.advice}."


RESTORE = "Restore the folder from a copy, or load another snapshot"
"""The advice for everything that was once whole and is no longer."""
