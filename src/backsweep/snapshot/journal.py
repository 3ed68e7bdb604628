"""A journal: records that were appended to a file, each of which is there whole or not at all.

A record is some JSON and a few arrays, with a digest over both; there is no pickle. A process that is killed while it
appends leaves the beginning of a record at the end of the file. Readers stop there: whoever appended it was never told
that it is safe. Anything else that does not fit its digest was damaged later, and is refused.

    HEADER     magic, version, bytes of the body, digest of the body, digest of the header up to here
    body       bytes of the text, the text (JSON: data and what arrays follow), the arrays one after another
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import xxhash
from numpy.typing import NDArray

from backsweep.snapshot.errors import RESTORE, SnapshotError
from backsweep.snapshot.files import NO_LINKS
from backsweep.snapshot.json_data import check_json
from backsweep.snapshot.layout import DTYPES, ArraySpec, spec_of

MAGIC = b"backswjr"
VERSION = 1
START = struct.Struct("<8sIQ16s")
HEADER_BYTES = START.size + 16
TEXT_LENGTH = struct.Struct("<I")
BLOCK = 1 << 20


@dataclass(frozen=True, slots=True)
class Record:
    """What was appended at once, and where in the file it ends."""

    data: dict[str, Any]
    arrays: dict[str, NDArray[Any]]
    end: int


class Journal:
    """A journal that is open for appending.

    Parameters
    ----------
    path
        Its file, made if it is not there.
    length
        Where the last whole record ends (`Record.end`); what follows is cut off.
    sync
        Whether a record is forced to the disk before `append` returns. Without it a record outlives its process, and
        with it the machine.
    """

    def __init__(self, path: Path, length: int = 0, *, sync: bool = False) -> None:
        self.path = path
        self._sync = sync
        self._handle = os.open(path, os.O_RDWR | os.O_CREAT | NO_LINKS, 0o666)
        os.ftruncate(self._handle, length)
        self.nbytes = length

    def append(self, data: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Append a record; if that fails (a full disk, say), the journal is as it was."""
        record = encoded(data, arrays)
        try:
            os.lseek(self._handle, self.nbytes, os.SEEK_SET)
            left = memoryview(record)
            while left:
                left = left[os.write(self._handle, left) :]
            if self._sync:
                os.fsync(self._handle)
        except OSError as error:
            os.ftruncate(self._handle, self.nbytes)
            raise OSError(error.errno, f"{error.strerror} (while appending to a journal)", str(self.path)) from error
        self.nbytes += len(record)

    def close(self) -> None:
        """Close the file."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1


def encoded(data: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Return the bytes of a record."""
    check_json(dict(data), "data")
    specs = {name: spec_of(name, array) for name, array in arrays.items()}
    described = [[name, spec.code, list(spec.shape)] for name, spec in specs.items()]
    text = json.dumps({"data": dict(data), "arrays": described}, separators=(",", ":")).encode()
    contents = [TEXT_LENGTH.pack(len(text)), text]
    contents += [np.ascontiguousarray(array, specs[name].dtype).tobytes() for name, array in arrays.items()]
    body = b"".join(contents)
    start = START.pack(MAGIC, VERSION, len(body), xxhash.xxh3_128_digest(body))
    return start + xxhash.xxh3_128_digest(start) + body


def read_journal(path: Path) -> Iterator[Record]:
    """Yield the whole records of a journal in the order in which they were appended.

    Raises
    ------
    SnapshotError
        If a record before the last one is not as it was written, or if the file is no journal.
    """
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        end = 0
        while end < size:
            header = file.read(HEADER_BYTES)
            if len(header) < HEADER_BYTES:
                return
            body_bytes = _body_bytes(path, header, file, end)
            if body_bytes is None or end + HEADER_BYTES + body_bytes > size:
                return
            body = file.read(body_bytes)
            end += HEADER_BYTES + body_bytes
            if xxhash.xxh3_128_digest(body) != START.unpack_from(header)[3]:
                if end == size:  # the machine went down before all of it had reached the disk
                    return
                raise _damaged(path, f"the record that ends at byte {end} is not as it was written")
            yield _decoded(path, body, end)


def _body_bytes(path: Path, header: bytes, file: IO[bytes], at: int) -> int | None:
    """Return how long a record's body is; None if nothing but zeros follows, as after a crash of the machine."""
    start, digest = header[: START.size], header[START.size :]
    magic, version, body_bytes, _ = START.unpack(start)
    if xxhash.xxh3_128_digest(start) != digest:
        if not any(header) and not any(any(block) for block in iter(lambda: file.read(BLOCK), b"")):
            return None
        raise _damaged(path, f"there is no record at byte {at}")
    if magic != MAGIC:
        raise _damaged(path, "it is not a journal of backsweep")
    if version != VERSION:
        raise SnapshotError(path, f"it has version {version}, expected {VERSION}", "Use the release that wrote it")
    return int(body_bytes)


def _decoded(path: Path, body: bytes, end: int) -> Record:
    try:
        (text_bytes,) = TEXT_LENGTH.unpack_from(body)
        at = TEXT_LENGTH.size + text_bytes
        text = json.loads(body[TEXT_LENGTH.size : at])
        arrays: dict[str, NDArray[Any]] = {}
        for name, code, shape in text["arrays"]:
            spec = ArraySpec(code, tuple(shape))
            if code not in DTYPES or any(type(length) is not int or length < 0 for length in shape):
                raise ValueError(f"array {name!r} cannot be {code} {shape}")
            size = int(np.prod(shape, dtype=object)) * spec.dtype.itemsize
            arrays[name] = np.frombuffer(body[at : at + size], spec.dtype).reshape(spec.shape).copy()
            at += size
        if at != len(body):
            raise ValueError("it is longer than its arrays")
        return Record(text["data"], arrays, end)
    except (struct.error, ValueError, KeyError, TypeError, RecursionError) as error:
        raise _damaged(path, f"the record that ends at byte {end} cannot be used ({error})") from error


def _damaged(path: Path, why: str) -> SnapshotError:
    return SnapshotError(path, why, RESTORE)
