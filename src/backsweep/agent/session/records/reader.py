"""Reads records as a stream."""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterator
from pathlib import Path

from backsweep.agent.session.records.rows import Record, from_json
from backsweep.run_files import RECORDS


class RecordFile:
    """The records of a run, one after another, from a plain file or a packed one.

    An incomplete last line (of a killed run) is skipped and reported. Iterating reads the file as a stream; after a
    complete pass `torn` says whether the last line was incomplete.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        path = Path(folder)
        if path.is_dir():
            packed = path / f"{RECORDS}.gz"
            path = packed if packed.exists() and not (path / RECORDS).exists() else path / RECORDS
        self.path = path
        self.torn = False

    def __iter__(self) -> Iterator[Record]:
        self.torn = False
        with gzip.open(self.path, "rb") if self.path.suffix == ".gz" else open(self.path, "rb") as file:
            for number, line in enumerate(file, start=1):
                if not line.endswith(b"\n"):
                    self.torn = True
                    return
                try:
                    yield from_json(line)
                except (ValueError, TypeError) as error:
                    raise ValueError(f"{self.path}, line {number}: {error}") from error


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
