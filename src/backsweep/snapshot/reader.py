"""Loading: digests are checked before anything is used, and no array is held twice."""

from __future__ import annotations

import os
import stat
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import xxhash
from numpy.typing import NDArray

from backsweep.snapshot import files
from backsweep.snapshot.change_hints import SnapshotMemory
from backsweep.snapshot.errors import RESTORE, ReplacedError, SnapshotError, advice_for
from backsweep.snapshot.folder import SEGMENTS_NAME
from backsweep.snapshot.layout import ArraySpec, rows_of
from backsweep.snapshot.manifest import MANIFEST_NAME, Manifest, Segment, load
from backsweep.snapshot.segment import SegmentBuffer, header_of, views

Destination = Callable[[tuple[int, ...], np.dtype[Any]], NDArray[Any]]
"""Given shape and dtype, returns the array to load into."""


class ReadListener(Protocol):
    """Told what has been read while the rest still is."""

    order: tuple[str, ...]
    """The names of arrays in the order in which they are read; all others follow."""

    def begin(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take all arrays before anything is read into them: their shapes and dtypes are known."""

    def arrived(self, name: str) -> None:
        """Take note that all of an array has been read and matches its digests."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What was saved: the arrays and the metadata, and the version of their contents."""

    arrays: dict[str, NDArray[Any]]
    metadata: dict[str, Any]
    version: int


class Description(NamedTuple):
    """What a snapshot holds: its metadata, the shapes of its arrays, and the checksum that identifies it."""

    metadata: dict[str, Any]
    shapes: dict[str, tuple[int, ...]]
    checksum: str


def read_snapshot(
    folder: str | os.PathLike[str],
    *,
    kind: str,
    versions: Collection[int],
    into: Mapping[str, Destination] | None = None,
    memory: SnapshotMemory | None = None,
    listener: ReadListener | None = None,
    described: Description | None = None,
) -> Snapshot:
    """Load the snapshot in a folder.

    Every file is checked against its size and digest before its contents are used. All sizes are checked before the
    first destination is asked for, so a folder with missing or truncated files is refused early.

    Parameters
    ----------
    folder
        Where `write_snapshot` saved.
    kind, versions
        What it must be a snapshot of, and the versions of the contents that the caller understands.
    into
        For some arrays: a function of shape and dtype that returns the array to fill (a slice of a larger one, or a
        memory-mapped one), chunk by chunk. Functions of unknown names are never called. After an error, the contents of
        these arrays are undefined.
    memory
        Remembers this load, so that hints count from here at the next save to the same folder.
    listener
        Told about each array as soon as all of it has been read.
    described
        What `read_description` returned before: the snapshot must still be that one.

    Raises
    ------
    ReplacedError
        If another process saved to the folder meanwhile; load it again.
    SnapshotError
        If anything is missing, torn, altered, foreign or too new; it names the file, the reason and what to do.
    """
    folder = Path(folder)
    manifest, checksum = load(folder)
    _check_origin(folder / MANIFEST_NAME, manifest, kind, versions)
    if described is not None and described.checksum != checksum:
        raise ReplacedError(folder)
    try:
        for segment in manifest.segments:
            _check_size(folder / SEGMENTS_NAME / segment.file, segment)
        arrays = {name: _destination(name, spec, into or {}) for name, spec in manifest.arrays.items()}
        _load_segments(folder / SEGMENTS_NAME, manifest, arrays, listener)
    except SnapshotError as error:
        # A writer that finished since then has deleted segments that only the old manifest named.
        if load(folder)[1] != checksum:
            raise ReplacedError(folder) from error
        raise
    if memory is not None:
        memory.checksum = checksum
        places = {segment.file: folder / SEGMENTS_NAME / segment.file for segment in manifest.segments}
        memory.known = {name: files.traits(place) for name, place in places.items()}
    return Snapshot(arrays, dict(manifest.metadata), manifest.version)


def read_metadata(folder: str | os.PathLike[str], *, kind: str, versions: Collection[int]) -> dict[str, Any]:
    """Return only the metadata of the snapshot in a folder, with the same checks as `read_snapshot`."""
    return read_description(folder, kind=kind, versions=versions).metadata


def read_description(folder: str | os.PathLike[str], *, kind: str, versions: Collection[int]) -> Description:
    """Return what the snapshot in a folder holds without reading its arrays; see `read_snapshot`."""
    folder = Path(folder)
    manifest, checksum = load(folder)
    _check_origin(folder / MANIFEST_NAME, manifest, kind, versions)
    shapes = {name: spec.shape for name, spec in manifest.arrays.items()}
    return Description(dict(manifest.metadata), shapes, checksum)


def _check_origin(path: Path, manifest: Manifest, kind: str, versions: Collection[int]) -> None:
    if manifest.kind != kind:
        raise SnapshotError(path, f"it is a snapshot of kind {manifest.kind!r}, expected {kind!r}", "Check the path")
    if manifest.version not in versions:
        known = ", ".join(map(str, sorted(versions)))
        newer = all(manifest.version > version for version in versions)
        raise SnapshotError(
            path,
            f"it has version {manifest.version} of {kind!r}, and this release reads {known or 'none'}",
            "Update backsweep" if newer else "Load it with the release that wrote it",
        )


def _check_size(path: Path, segment: Segment) -> None:
    try:
        found = path.stat()
    except OSError as error:
        raise SnapshotError(path, f"it is missing or cannot be read ({error.strerror})", advice_for(error)) from error
    if not stat.S_ISREG(found.st_mode):
        raise SnapshotError(path, "it is not a regular file", RESTORE)
    if (size := found.st_size) != segment.size:
        raise SnapshotError(path, f"it has {size} bytes where {segment.size} were saved", RESTORE)


def _destination(name: str, spec: ArraySpec, into: Mapping[str, Destination]) -> NDArray[Any]:
    if name not in into:
        return np.empty(spec.shape, spec.dtype)
    array = into[name](spec.shape, spec.dtype)
    if not isinstance(array, np.ndarray) or array.shape != spec.shape or array.dtype != spec.dtype:
        given = f"{array.dtype} {array.shape}" if isinstance(array, np.ndarray) else type(array).__name__
        raise ValueError(f"into[{name!r}] returned {given}; expected an array of {spec.dtype} {spec.shape}")
    if not array.flags.writeable:
        raise ValueError(f"into[{name!r}] returned an array that cannot be written to")
    return array


def _load_segments(
    folder: Path, manifest: Manifest, arrays: Mapping[str, NDArray[Any]], listener: ReadListener | None
) -> None:
    buffer = SegmentBuffer()
    rank = {name: place for place, name in enumerate(() if listener is None else listener.order)}
    missing = Counter(piece.array for segment in manifest.segments for piece in segment.pieces)
    if listener is not None:
        listener.begin(arrays)
    for segment in sorted(
        manifest.segments,
        key=lambda segment: min((rank.get(piece.array, len(rank)) for piece in segment.pieces), default=len(rank)),
    ):
        _load_segment(folder / segment.file, segment, manifest.arrays, arrays, buffer)
        for piece in segment.pieces:
            missing[piece.array] -= 1
            if listener is not None and not missing[piece.array]:
                listener.arrived(piece.array)


def _load_segment(
    path: Path,
    segment: Segment,
    specs: Mapping[str, ArraySpec],
    arrays: Mapping[str, NDArray[Any]],
    buffer: SegmentBuffer,
) -> None:
    header, data_bytes = header_of(segment.pieces, specs)
    whole = rows_of(arrays[segment.pieces[0].array], segment.pieces[0]) if len(segment.pieces) == 1 else None
    if whole is not None and whole.flags.c_contiguous and len(header) + data_bytes == segment.size:
        # A chunk of a large array goes straight to its place, without a copy.
        start = np.empty(len(header), np.uint8)
        _read_checked(path, segment, (start, whole.reshape(-1).view(np.uint8)))
        _check_header(path, start, header)
        _check_flags(path, whole)
        return
    image = buffer.take(segment.size)
    _read_checked(path, segment, (image,))
    _check_header(path, image[: len(header)], header)
    for piece, view in zip(segment.pieces, views(image, len(header), segment.pieces, specs), strict=True):
        _check_flags(path, view)
        rows_of(arrays[piece.array], piece)[...] = view


def _read_checked(path: Path, segment: Segment, buffers: tuple[NDArray[np.uint8], ...]) -> None:
    """Read a segment into consecutive buffers and check its size and digest."""
    size, digest = 0, xxhash.xxh3_128()
    try:
        with files.opened(path, "rb", files.regular) as file:
            for buffer in buffers:
                size += file.readinto(buffer.data)
                digest.update(buffer.data)
    except OSError as error:
        raise SnapshotError(path, f"it is missing or cannot be read ({error.strerror})", advice_for(error)) from error
    if size != segment.size:
        raise SnapshotError(path, f"it has {size} bytes where {segment.size} were saved", RESTORE)
    if digest.hexdigest() != segment.digest:
        raise SnapshotError(path, "its contents do not match their digest, so it was altered or damaged", RESTORE)


def _check_header(path: Path, found: NDArray[np.uint8], expected: bytes) -> None:
    if bytes(found) != expected:
        raise SnapshotError(path, "its header is not the one that the manifest describes", RESTORE)


def _check_flags(path: Path, values: NDArray[Any]) -> None:
    """Refuse bools other than 0 and 1: numpy counts them by adding their bytes, and copies by that count."""
    if values.dtype == np.bool_ and values.size and values.view(np.uint8).max() > 1:
        raise SnapshotError(path, "it holds bools that are neither true nor false", RESTORE)
