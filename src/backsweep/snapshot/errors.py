"""The error about the contents of a snapshot folder."""

from __future__ import annotations

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


RESTORE = "Restore the folder from a copy, or load another snapshot"
"""The advice for damaged files."""
