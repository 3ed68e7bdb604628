"""Saving: only changes are written, and a crash at any moment leaves the old state or the new."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from backsweep.snapshot import files
from backsweep.snapshot.change_hints import DirtyHint, RowsChanged, SnapshotMemory, check_hints
from backsweep.snapshot.folder import SEGMENTS_NAME, present_state, sweep
from backsweep.snapshot.json_data import check_json
from backsweep.snapshot.layout import ArraySpec, Piece, plan_segments, spec_of
from backsweep.snapshot.lock import writer_lock
from backsweep.snapshot.manifest import MANIFEST_NAME, Manifest, Segment, encode
from backsweep.snapshot.segment import SegmentBuffer, digest_of, file_name

READ_AGAIN = 4
"""The number of segments, of about 8 MiB, that a save reads again although they seem unchanged."""


@dataclass(frozen=True, slots=True)
class SnapshotReport:
    """What a save did. `bytes_written` counts the new segments and the manifest."""

    bytes_written: int
    segments_written: int
    segments_kept: int


def write_snapshot(
    folder: str | os.PathLike[str],
    arrays: Mapping[str, NDArray[Any]],
    metadata: Mapping[str, Any],
    *,
    kind: str,
    version: int,
    dirty: Mapping[str, DirtyHint] | None = None,
    memory: SnapshotMemory | None = None,
) -> SnapshotReport:
    """Save arrays and metadata to a folder, replacing the snapshot of the same kind that is there.

    Chunks that have not changed keep their files. A crash at any moment leaves the old snapshot or the new one. The
    arrays may be memory-mapped or views; no more than one chunk of them (about 8 MiB, or one row where a row is
    larger) is copied at a time. No other thread may change the arrays during the call.

    Parameters
    ----------
    folder
        A folder that holds a snapshot, is empty, or does not exist yet.
    arrays
        By name; of bool, integers or floats of up to 64 bits. Values are kept in little-endian order.
    metadata
        Plain JSON: None, bool, int (of any usual size), finite float, str, list and dict with string keys.
    kind, version
        What this is a snapshot of and the version of its contents, for `read_snapshot` to check.
    dirty
        For some large arrays: which rows may have changed since the last save or load with the same `memory`. Chunks
        without such rows are kept without reading them. Ignored without a `memory`, or if `memory` is not of this
        folder's present state.
    memory
        Remembers this save for the next one.

    Raises
    ------
    TypeError, ValueError
        For arguments that cannot be saved; nothing is touched.
    SnapshotError
        If the folder holds something else or another writer is saving to it; nothing is touched.
    OSError
        If the disk is full or cannot be written; it names the file, and the previous state still loads.
    """
    if not isinstance(kind, str) or not kind:
        raise ValueError(f"kind is {kind!r}; expected a string that is not empty")
    if type(version) is not int or not 0 <= version < 2**63:
        raise ValueError(f"version is {version!r}; expected an integer of 0 or more")
    specs = {name: spec_of(name, array) for name, array in arrays.items()}
    check_json(dict(metadata), "metadata")
    hints = check_hints(dirty, specs)

    folder = Path(folder)
    present_state(folder, kind)  # check before anything is touched
    files.make_folder(folder / SEGMENTS_NAME)
    with writer_lock(folder):
        state = present_state(folder, kind)  # again, now that no other writer can change it
        old, old_checksum = state if state is not None else (None, None)
        trusted = hints if memory is not None and memory.checksum == old_checksum else {}
        kept_if_broken = {segment.file for segment in old.segments} if old is not None else set()
        try:
            whole = _whole_segments(folder / SEGMENTS_NAME, old, memory)
            segments, written = _write_segments(folder / SEGMENTS_NAME, arrays, specs, old, whole, trusted)
            # The names of the segments must be safe on the disk before a manifest refers to them.
            files.force_folder(folder / SEGMENTS_NAME)
            image, checksum = encode(Manifest(kind, version, specs, segments, dict(metadata)))
            files.stage(folder / MANIFEST_NAME, image)
        except BaseException:
            # Free the disk space again, above all on a full disk. The old state has not been touched.
            with contextlib.suppress(OSError):
                sweep(folder, kept_if_broken)
            raise
        files.publish(folder / MANIFEST_NAME)  # from here on the new state is valid
        files.force_folder(folder)  # the old manifest is gone, so its segments can be deleted
        if old is None:
            files.force_folder(folder.absolute().parent)  # a killed first save may have made only the folder
        if memory is not None:
            memory.checksum = checksum
            places = {segment.file: folder / SEGMENTS_NAME / segment.file for segment in segments}
            memory.known = {name: files.traits(place) for name, place in places.items()}
        with contextlib.suppress(OSError):
            sweep(folder, {segment.file for segment in segments})
    new_bytes = sum(segment.size for segment in written)
    return SnapshotReport(new_bytes + len(image), len(written), len(segments) - len(written))


def _whole_segments(folder: Path, old: Manifest | None, memory: SnapshotMemory | None) -> dict[str, Segment]:
    """Return the segments of the present manifest whose files are intact; the others are written again.

    A file is read again unless this memory knows it and it has not changed since. Disks also corrupt unchanged files,
    so a few of the known ones are read as well, different ones each time.
    """
    if old is None:
        return {}
    known = memory.known if memory is not None else {}
    sure = {segment.file for segment in old.segments if files.traits(folder / segment.file) == known.get(segment.file)}
    if memory is not None and sure:
        order = [segment.file for segment in old.segments if segment.file in sure]
        sure -= {order[(memory.looked_at + place) % len(order)] for place in range(min(READ_AGAIN, len(order)))}
        memory.looked_at += READ_AGAIN
    return {
        segment.file: segment
        for segment in old.segments
        if segment.file in sure or _is_whole(folder / segment.file, segment)
    }


def _is_whole(path: Path, segment: Segment) -> bool:
    try:
        return digest_of(files.read_whole(path)) == segment.digest
    except OSError:
        return False


def _write_segments(
    folder: Path,
    arrays: Mapping[str, NDArray[Any]],
    specs: Mapping[str, ArraySpec],
    old: Manifest | None,
    on_disk: Mapping[str, Segment],
    hints: Mapping[str, RowsChanged],
) -> tuple[tuple[Segment, ...], list[Segment]]:
    """Write every segment that is not on the disk yet; return all segments, and those newly written."""
    # Only files of the present manifest are kept: leftovers of a killed save are written again.
    by_pieces = {segment.pieces: segment for segment in on_disk.values()}
    segments: list[Segment] = []
    written: list[Segment] = []
    buffer = SegmentBuffer()
    for plan in plan_segments(specs):
        previous = by_pieces.get(plan.pieces)
        if previous is not None and old is not None and _unchanged(plan.pieces, specs, old.arrays, hints):
            segments.append(previous)
            continue
        image = buffer.build(plan.pieces, specs, arrays)
        digest = digest_of(image.data)
        segment = Segment(file_name(plan, digest), image.size, digest, plan.pieces)
        segments.append(segment)
        if segment.file not in on_disk:
            files.stage(folder / segment.file, image.data)
            files.publish(folder / segment.file)
            written.append(segment)
    return tuple(segments), written


def _unchanged(
    pieces: tuple[Piece, ...],
    specs: Mapping[str, ArraySpec],
    old_specs: Mapping[str, ArraySpec],
    hints: Mapping[str, RowsChanged],
) -> bool:
    """Whether the hints say that a segment with these pieces is unchanged."""
    return all(
        piece.array in hints
        and specs[piece.array].code == old_specs[piece.array].code
        and specs[piece.array].shape[1:] == old_specs[piece.array].shape[1:]
        and not hints[piece.array](piece.start, piece.stop)
        for piece in pieces
    )
