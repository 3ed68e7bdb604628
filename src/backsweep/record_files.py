"""The files with records of runs: finding them, reading their lines, and checking that they are what the run wrote.

A finished run notes the size and digest of its records in `finished.json`. Packed files have a checksum of their own.
They are renamed into place when they are complete, so a truncated one is as damaged as an altered one.
"""

from __future__ import annotations

import gzip
import io
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import xxhash

from backsweep.run_files import FINISHED, RECORDS
from backsweep.snapshot import files

PIECE = 1 << 20
PACKED = (".xz", ".gz")
"""How the names of packed files end."""
MOST_UNPACKED = 1 << 30
"""The most bytes that a packed file may hold: a few kilobytes can be packed so that they would fill any memory."""
MOST_DICTIONARY = 1 << 28
"""The most memory for unpacking an .xz file, which names its own need; ours need less than 16 MiB."""
DIGESTED = "records"
"""The entry of `finished.json` with the size and digest of the records; runs of older releases have none."""
ADVICE = "Restore the file from a copy, or move the run's folder away and train it again"
PACKED_ADVICE = "Restore the file from a copy, or move it away and pack its runs again"


class RecordsError(ValueError):
    """Records are not those that the run wrote."""


def json_object(text: bytes) -> dict[str, Any]:
    """Return the object that JSON text describes; anything else is a ValueError."""
    try:
        data = json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(data, dict):
        raise ValueError(f"it holds a {type(data).__name__}, not an object")
    return data


def record_file(folder: Path) -> Path | None:
    """Return the file with a run's records, plain or packed; None if there is none."""
    return next((folder / name for name in (RECORDS, f"{RECORDS}.gz") if (folder / name).exists()), None)


def record_lines(path: Path) -> Iterator[tuple[bytes, bool]]:
    """Yield each line and whether it is complete; the last line of a plain file may not be, if its run was killed.

    A packed file is checked in full before its first line is used, because its checksum is at its end.
    """
    if path.suffix in PACKED:
        lines = _unpacked(path).splitlines(keepends=True)
        yield from ((line, line.endswith(b"\n")) for line in lines)
        return
    with files.opened(path, "rb", files.regular) as file:
        for line in file:
            yield line, line.endswith(b"\n")


def described(size: int, digest: str) -> dict[str, Any]:
    """Return the entry of `finished.json` for records of this size and digest."""
    return {DIGESTED: {"bytes": size, "xxh3_128": digest}}


def without_digest(finished: dict[str, Any]) -> dict[str, Any]:
    """Return the contents of `finished.json` without the size and digest of the records."""
    return {name: value for name, value in finished.items() if name != DIGESTED}


def check_finished_records(folder: Path) -> None:
    """Raise a RecordsError if the records of a finished run are not those that it wrote.

    The records of a run that is not finished still change, and those of older releases have no digest.
    """
    end, path = folder / FINISHED, record_file(folder)
    if path is None or not end.exists():
        return
    try:
        expected = json_object(files.read_whole(end)).get(DIGESTED)
        if expected is None:
            return
        size, digest = int(expected["bytes"]), str(expected["xxh3_128"])
    except (OSError, ValueError, TypeError, KeyError, OverflowError) as error:
        raise RecordsError(f"{end}: it cannot be read ({error!r}). {ADVICE}") from error
    try:
        found_size, found_digest = _measured(path)
    except OSError as error:
        raise RecordsError(f"{path}: it cannot be read ({error.strerror}). {ADVICE}") from error
    if found_size != size:
        raise RecordsError(f"{path}: it holds {found_size} bytes, the finished run wrote {size}. {ADVICE}")
    if found_digest != digest:
        raise RecordsError(f"{path}: its contents are not what the finished run wrote: it was altered. {ADVICE}")


def update(digest: xxhash.xxh3_128, file: IO[bytes], most: int) -> int:
    """Add at most the next `most` bytes of a file to a digest; return how many there were."""
    left = most
    while left and (chunk := file.read(min(left, PIECE))):
        digest.update(chunk)
        left -= len(chunk)
    return most - left


def _measured(path: Path) -> tuple[int, str]:
    """Return the size and digest of records; of packed ones, those of the unpacked records."""
    digest = xxhash.xxh3_128()
    if path.suffix in PACKED:
        contents = _unpacked(path)
        digest.update(contents)
        return len(contents), str(digest.hexdigest())
    with files.opened(path, "rb", files.regular) as file:
        size = update(digest, file, path.stat().st_size)
    return size, str(digest.hexdigest())


def _unpacked(path: Path) -> bytes:
    packed = files.read_whole(path)
    contents = _unpacked_xz(path, packed) if path.suffix == ".xz" else _unpacked_gzip(path, packed)
    if len(contents) > MOST_UNPACKED:
        raise RecordsError(f"{path}: it unpacks to more than {MOST_UNPACKED} bytes, which no file of records does")
    return contents


def _unpacked_gzip(path: Path, packed: bytes) -> bytes:
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(packed)) as file:
            return file.read(MOST_UNPACKED + 1)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise _damaged(path, error) from error


def _unpacked_xz(path: Path, packed: bytes) -> bytes:
    lzma = lzma_module()
    unpacking = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=MOST_DICTIONARY)
    try:
        contents: bytes = unpacking.decompress(packed, MOST_UNPACKED + 1)
    except lzma.LZMAError as error:
        raise _damaged(path, error) from error
    if len(contents) <= MOST_UNPACKED and not unpacking.eof:
        raise _damaged(path, "its end is missing")
    if unpacking.unused_data:
        raise _damaged(path, "something follows its end")
    return contents


def lzma_module() -> Any:
    """Return Python's `lzma`, which only archives of runs need; some builds of Python lack it."""
    try:
        import lzma
    except ImportError as error:
        raise RecordsError(
            "this Python was built without lzma, which archives of runs (.xz) need: use one that has it"
        ) from error
    return lzma


def _damaged(path: Path, why: object) -> RecordsError:
    return RecordsError(f"{path}: it is damaged or incomplete ({why}). {PACKED_ADVICE}")
