"""Writing files of records, and archives that hold many finished runs in one file.

An archive has a line for each run: its configuration and its `finished.json` as the run wrote them, and its records by
kind. Records of one kind nearly always have the same fields, so they are stored as a list for each field; otherwise
they are stored one by one.
"""

from __future__ import annotations

import gzip
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from backsweep.record_files import json_object, lzma_module, record_lines
from backsweep.snapshot import files

ARCHIVE = ".runs.jsonl.xz"
"""How the names of archives end."""
OLD_ARCHIVE = ".runs.jsonl.gz"
"""How they ended in earlier releases."""
STEP = re.compile(rb'"step":(\d+)')


def last_step(path: Path) -> int:
    """Return the step of the last record in a file, 0 if there is none."""
    try:
        with open(path, "rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - 4096))
            steps = STEP.findall(file.read())
    except OSError:
        return 0
    return int(steps[-1]) if steps else 0


def write_lines(path: Path, records: Iterable[dict[str, Any]]) -> int:
    """Write records to a file that appears when it is complete, packed if its name says so; return their number.

    Several processes may write the same file at once, since nothing locks a study's seed while it is worked on. Packed
    files carry no time and no name, so the same records give the same bytes.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    count = 0
    with files.replacing(path) as raw, _packer(path.suffix, raw) as target:
        for record in records:
            target.write(json.dumps(record, separators=(",", ":")).encode() + b"\n")
            count += 1
    return count


def _packer(suffix: str, raw: IO[bytes]) -> AbstractContextManager[Any]:
    """Return a file to write to, which packs into `raw` as a name's ending asks; `raw` stays open."""
    if suffix == ".gz":
        return gzip.GzipFile("", "wb", fileobj=raw, mtime=0)
    if suffix == ".xz":
        packed: AbstractContextManager[Any] = lzma_module().LZMAFile(raw, "wb")
        return packed
    return nullcontext(raw)


@dataclass(frozen=True)
class ArchivedRun:
    """A finished run in an archive."""

    config: dict[str, Any]
    finished: dict[str, Any]
    columns: Mapping[str, Any]
    """By kind of record: a list for each field, or a list of records."""

    @classmethod
    def of(
        cls, config: dict[str, Any], finished: dict[str, Any], records: Mapping[str, Sequence[dict[str, Any]]]
    ) -> ArchivedRun:
        """Return the run with these records, by kind."""
        return cls(config, finished, {kind: _columns(rows) for kind, rows in records.items()})

    @classmethod
    def from_line(cls, line: bytes) -> ArchivedRun:
        """Return the run that a line describes; raise ValueError if it is invalid."""
        data = json_object(line)
        fields: list[Any] = [data.get(name) for name in ("config", "finished", "records")]
        if not all(isinstance(value, dict) for value in fields):
            raise ValueError("not a run: configuration, end and records must be objects")
        config, finished, records = fields
        check_config(config)
        for kind, held in records.items():
            _check_columns(kind, held)
        return cls(config, finished, _renamed(records))

    def to_json(self) -> dict[str, Any]:
        """Return the contents of its line."""
        return {"config": self.config, "finished": self.finished, "records": self.columns}

    def records(self, kind: str) -> list[dict[str, Any]]:
        """Return its records of one kind, without their kind."""
        held = self.columns.get(kind, [])
        if isinstance(held, list):
            return [dict(record) for record in held]
        return [dict(zip(held, values, strict=True)) for values in zip(*held.values(), strict=True)]

    def column(self, kind: str, field: str) -> list[Any]:
        """Return one field of its records of one kind, None for records without it."""
        held = self.columns.get(kind, [])
        if isinstance(held, list):
            return [record.get(field) for record in held]
        count = len(next(iter(held.values()), ()))
        return list(held.get(field, [None] * count))


def check_config(config: Any) -> None:
    """Raise a ValueError if a run's configuration is not an object, or its seed not a whole number."""
    if not isinstance(config, dict):
        raise ValueError(f"a configuration must be an object, got a {type(config).__name__}")
    if type(seed := config.get("seed", 0)) is not int:
        raise ValueError(f"seed must be a whole number, got {seed!r:.40}")


def _check_columns(kind: str, held: Any) -> None:
    """Raise a ValueError unless records are a list of objects, or lists of the same length by field."""
    if isinstance(held, dict):
        lists = list(held.values())
        good = all(isinstance(values, list) and len(values) == len(lists[0]) for values in lists)
    else:
        good = isinstance(held, list) and all(isinstance(record, dict) for record in held)
    if not good:
        raise ValueError(f"not a run: its records of kind {kind!r:.40} are malformed")


def archives_below(folder: Path) -> list[Path]:
    """Return all archives of a folder and of those in it.

    An old one next to its successor is left out: packing was interrupted before it removed the old one.
    """
    old = (path for path in folder.rglob(f"*{OLD_ARCHIVE}") if not path.with_suffix(".xz").exists())
    return sorted((*folder.rglob(f"*{ARCHIVE}"), *old))


def read_archive(path: Path) -> Iterator[ArchivedRun | None]:
    """Yield the runs of an archive one by one, None for a line that cannot be read.

    A damaged archive is a RecordsError before the first run.
    """
    for line, whole in record_lines(path):
        try:
            yield ArchivedRun.from_line(line) if whole else None
        except ValueError:
            yield None


def _renamed(columns: Any) -> Any:
    """Return columns with the name `runs` for the runs that shared a timing; older archives call them lanes."""
    timing = columns.get("timing")
    if isinstance(timing, dict) and "lanes" in timing:
        columns["timing"] = {"runs" if name == "lanes" else name: values for name, values in timing.items()}
    return columns


def _columns(records: Sequence[dict[str, Any]]) -> Any:
    fields = list(records[0]) if records else []
    if not fields or any(list(record) != fields for record in records):
        return [dict(record) for record in records]
    return {field: [record[field] for record in records] for field in fields}
