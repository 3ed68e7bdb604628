"""Reads records as a stream."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from backsweep.agent.session.records.record_types import Record, from_json
from backsweep.record_files import check_finished_records, record_file, record_lines
from backsweep.run_files import RECORDS


class RecordFile:
    """The records of a run, one after another, from a plain file or a packed one.

    An incomplete last line (of a killed run) is skipped and reported. Iterating reads the file as a stream; after a
    complete pass `torn` says whether the last line was incomplete. The records of a finished run are checked first: a
    RecordsError says that they are not what the run wrote.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        path = Path(folder)
        if path.is_dir():
            path = record_file(path) or path / RECORDS
        self.path = path
        self.torn = False

    def __iter__(self) -> Iterator[Record]:
        self.torn = False
        if self.path == record_file(self.path.parent):
            check_finished_records(self.path.parent)
        for number, (line, whole) in enumerate(record_lines(self.path), start=1):
            if not whole:
                self.torn = True
                return
            try:
                record = from_json(line)
            except (ValueError, TypeError) as error:
                raise ValueError(f"{self.path}, line {number}: {error}") from error
            yield record


def read_records(folder: str | os.PathLike[str], kind: str | None = None) -> list[Record]:
    """Return a run's records, or those of one kind.

    Parameters
    ----------
    folder
        The run's folder.
    kind
        "evaluation", "training", "replay" or "timing"; None for all.

    Examples
    --------
    >>> for record in read_records("runs/chain", "evaluation"):  # doctest: +SKIP
    ...     print(record.step, record.mean_return)
    """
    return [record for record in RecordFile(folder) if kind is None or record.kind == kind]
