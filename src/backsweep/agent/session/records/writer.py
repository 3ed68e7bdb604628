"""Writes the records of a run to one file, one complete line at a time."""

from __future__ import annotations

import os
from pathlib import Path

import xxhash

from backsweep.agent.session.records.record_types import Record
from backsweep.agent.session.records.sinks import Sink
from backsweep.record_files import RecordsError, update
from backsweep.run_files import FINISHED, RECORDS
from backsweep.snapshot import files

ADVICE = "Restore the file from a copy, or start the run again"


def checked_digest(folder: str | os.PathLike[str], position: int, expected: str | None) -> xxhash.xxh3_128:
    """Return the digest of the first `position` bytes of a run's records, after checking them."""
    path, digest = Path(folder) / RECORDS, xxhash.xxh3_128()
    size = path.stat().st_size if path.exists() else 0
    if size < position:
        raise RecordsError(
            f"{path}: it has {size} bytes, the checkpoint expects {position}: records have been lost. {ADVICE}"
        )
    if position:
        with open(path, "rb", opener=files.regular) as file:
            update(digest, file, position)
    if expected is not None and digest.hexdigest() != expected:
        raise RecordsError(
            f"{path}: its first {position} bytes are not what the run wrote: the file was altered. {ADVICE}"
        )
    return digest


class RecordWriter:
    """Appends records to a run's file, and passes them to other destinations.

    `position` is the end of the file and `digest` covers all of it. A run that resumes from a checkpoint truncates the
    file there, so that records after the checkpoint are written again, and only once.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        position: int = 0,
        sinks: tuple[Sink, ...] = (),
        digest: str | None = None,
    ) -> None:
        self.path = Path(folder) / RECORDS
        self._sinks = sinks
        self._digest = checked_digest(folder, position, digest)
        # A fleet may continue from a checkpoint from before this run was finished.
        files.remove(self.path.with_name(FINISHED))
        try:
            # Open for as long as the run lasts.
            self._file = open(self.path, "ab", opener=files.regular_and_no_link)  # noqa: SIM115
        except OSError as error:
            raise RecordsError(f"{self.path}: {error.strerror}. Remove it, or start the run again") from error
        self._file.truncate(position)
        self._position = position

    @property
    def position(self) -> int:
        """The size of the file."""
        return self._position

    @property
    def digest(self) -> str:
        """The digest of the whole file."""
        return str(self._digest.hexdigest())

    def write(self, record: Record) -> None:
        """Append one record and flush it to the operating system."""
        line = record.to_json().encode() + b"\n"
        self._file.write(line)
        self._file.flush()
        self._digest.update(line)
        self._position += len(line)
        for sink in self._sinks:
            sink.write(record)

    def sync(self) -> int:
        """Force all records to the disk; return the position."""
        os.fsync(self._file.fileno())
        return self.position

    def close(self) -> None:
        """Close the file and the other destinations."""
        self._file.close()
        for sink in self._sinks:
            sink.close()
