"""The manifest: what the snapshot holds and in which files, with a checksum over itself.

It is the root of the snapshot. It holds the digest of every segment, so its own checksum identifies the complete state:
two folders with the same manifest hold the same state.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from backsweep.snapshot.errors import RESTORE, SnapshotError, advice_for
from backsweep.snapshot.files import read_whole
from backsweep.snapshot.layout import DTYPES, ArraySpec, Piece
from backsweep.snapshot.segment import FILE_NAME, digest_of, header_of

MANIFEST_NAME = "manifest.json"
FORMAT = "backsweep-snapshot"
FORMAT_VERSION = 1


@dataclass(frozen=True, slots=True)
class Segment:
    """One file of the snapshot: its name, its size and digest in full, and what it holds in this order."""

    file: str
    size: int
    digest: str
    pieces: tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class Manifest:
    """The description of a snapshot, without the contents of its arrays."""

    kind: str
    version: int
    arrays: Mapping[str, ArraySpec]
    segments: tuple[Segment, ...]
    metadata: Mapping[str, Any]


def encode(manifest: Manifest) -> tuple[bytes, str]:
    """Return the manifest as the bytes of its file, and its checksum."""
    body = json.dumps(
        {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "kind": manifest.kind,
            "version": manifest.version,
            "arrays": {name: {"dtype": spec.code, "shape": spec.shape} for name, spec in manifest.arrays.items()},
            "segments": [
                {
                    "file": segment.file,
                    "size": segment.size,
                    "digest": segment.digest,
                    "pieces": [[piece.array, piece.start, piece.stop] for piece in segment.pieces],
                }
                for segment in manifest.segments
            ],
            "metadata": manifest.metadata,
        },
        separators=(",", ":"),
        allow_nan=False,
    ).encode()
    checksum = digest_of(body)
    return body[:-1] + _tail(checksum), checksum


def _tail(checksum: str) -> bytes:
    """End the file with the checksum of all that comes before it."""
    return f',"checksum":"{checksum}"}}\n'.encode()


def load(folder: Path) -> tuple[Manifest, str]:
    """Read the folder's manifest and check it against its checksum; return it with that checksum.

    Raises
    ------
    SnapshotError
        If there is none, if it is torn or altered, or if it is not a manifest that this release understands.
    """
    path = folder / MANIFEST_NAME
    try:
        raw = read_whole(path)
    except (FileNotFoundError, NotADirectoryError) as error:
        if folder.is_dir():
            why = "there is no such file, so no snapshot was ever completed here"
            raise SnapshotError(path, why, "Check the path") from error
        why = "it is a file, expected a folder" if folder.exists() else "no such folder"
        raise SnapshotError(folder, why, "Check the path") from error
    except IsADirectoryError as error:
        raise SnapshotError(path, "it is a folder, not a file", RESTORE) from error
    except OSError as error:
        raise SnapshotError(path, f"it cannot be read ({error.strerror})", advice_for(error)) from error
    try:
        data = json.loads(raw.decode("ascii"))
    except (ValueError, RecursionError) as error:
        raise SnapshotError(path, "it is torn, altered or no manifest at all (not valid JSON)", RESTORE) from error
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise SnapshotError(path, "it is not the manifest of a backsweep snapshot", "Check the path")
    if data.get("format_version") != FORMAT_VERSION:
        raise SnapshotError(
            path,
            f"it has format version {data.get('format_version')!r}, and this release reads {FORMAT_VERSION}",
            "Update backsweep",
        )
    checksum = data.get("checksum")
    tail = _tail(checksum) if isinstance(checksum, str) else b""
    if not tail or not raw.endswith(tail) or digest_of(raw[: -len(tail)] + b"}") != checksum:
        raise SnapshotError(path, "it does not match its own checksum, so it is torn or was altered", RESTORE)
    return _decode(data, path), checksum


def _decode(data: dict[str, Any], path: Path) -> Manifest:
    """Turn JSON into a manifest. The checksum detects accidents; these checks detect malicious files."""

    def need(condition: bool, why: str) -> None:
        if not condition:
            raise SnapshotError(path, why, "Do not use this folder: this release of backsweep writes no such manifest")

    need(isinstance(data.get("kind"), str) and _is_count(data.get("version")), "its kind or version is malformed")
    for name, kind in (("arrays", dict), ("segments", list), ("metadata", dict)):
        need(isinstance(data.get(name), kind), f"its entry {name!r} is malformed")

    arrays: dict[str, ArraySpec] = {}
    for name, entry in data["arrays"].items():
        good = isinstance(entry, dict) and isinstance(entry.get("dtype"), str) and entry["dtype"] in DTYPES
        good = good and isinstance(entry.get("shape"), list) and all(map(_is_count, entry["shape"]))
        good = good and len(entry["shape"]) <= 64  # as many axes as numpy can have
        need(good, f"its entry for array {name!r} is malformed")
        arrays[name] = ArraySpec(entry["dtype"], tuple(entry["shape"]))

    segments: list[Segment] = []
    for entry in data["segments"]:
        need(isinstance(entry, dict), "a segment's entry is malformed")
        file = entry.get("file")
        # A name of our own form: no separators, no '..', not absolute, so nothing outside the folder.
        need(isinstance(file, str) and FILE_NAME.fullmatch(file) is not None, f"it names the segment file {file!r}")
        good = _is_count(entry.get("size")) and isinstance(entry.get("digest"), str)
        good = good and isinstance(entry.get("pieces"), list) and all(_is_piece(piece) for piece in entry["pieces"])
        need(good, f"its entry for segment {file!r} is malformed")
        pieces = tuple(Piece(*piece) for piece in entry["pieces"])
        need(all(piece.array in arrays for piece in pieces), f"segment {file!r} holds an array that is not listed")
        need(len({piece.array for piece in pieces}) == len(pieces), f"segment {file!r} holds an array twice")
        header, data_bytes = header_of(pieces, arrays)
        need(len(header) + data_bytes == entry["size"], f"the size of segment {file!r} does not fit its contents")
        segments.append(Segment(file, entry["size"], entry["digest"], pieces))

    # Every row of every array exactly once, in order.
    reached: dict[str, int] = {}
    for segment in segments:
        for piece in segment.pieces:
            follows = reached.get(piece.array, 0) == piece.start <= piece.stop
            need(follows, f"the chunks of array {piece.array!r} leave gaps or overlap")
            reached[piece.array] = piece.stop
    for name, spec in arrays.items():
        need(reached.get(name) == spec.rows, f"the chunks of array {name!r} do not cover it")
    return Manifest(data["kind"], data["version"], arrays, tuple(segments), data["metadata"])


def _is_count(value: object) -> bool:
    return type(value) is int and 0 <= value < 2**63


def _is_piece(value: object) -> bool:
    return isinstance(value, list) and len(value) == 3 and isinstance(value[0], str) and all(map(_is_count, value[1:]))
