"""Writing records: whole lines, at once, to one file per run."""

from __future__ import annotations

import os
from pathlib import Path

from backsweep.agent.session.records.rows import Record
from backsweep.agent.session.records.sinks import Sink

FILE_NAME = "records.jsonl"


class RecordWriter:
    """Appends records to a run's file, and passes them on to other places.

    `position` is where the file ends; a run that goes on from a checkpoint cuts the file there, so that what was
    recorded after the checkpoint is recorded again, and only once.
    """

    def __init__(self, folder: str | os.PathLike[str], position: int = 0, sinks: tuple[Sink, ...] = ()) -> None:
        self.path = Path(folder) / FILE_NAME
        self._sinks = sinks
        self._file = open(self.path, "ab")  # noqa: SIM115 - open for as long as the run lasts
        size = self.path.stat().st_size
        if size < position:
            self._file.close()
            raise ValueError(
                f"{self.path}: it has {size} bytes where the checkpoint knows of {position}: records have been lost. "
                "Restore the file from a copy, or start the run again."
            )
        self._file.truncate(position)

    @property
    def position(self) -> int:
        """Where the file ends."""
        return self._file.tell()

    def write(self, record: Record) -> None:
        """Append one record; the system has it when this returns."""
        self._file.write(record.to_json().encode() + b"\n")
        self._file.flush()
        for sink in self._sinks:
            sink.write(record)

    def sync(self) -> int:
        """Make sure that all records are on the disk; return the position."""
        os.fsync(self._file.fileno())
        return self.position

    def close(self) -> None:
        """Close the file and the other places."""
        self._file.close()
        for sink in self._sinks:
            sink.close()
