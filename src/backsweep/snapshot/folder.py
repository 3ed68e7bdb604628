"""What a snapshot folder may hold, and what in it may be deleted."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from backsweep.snapshot import files
from backsweep.snapshot.errors import LET_READ, SnapshotError
from backsweep.snapshot.lock import LOCK_NAME
from backsweep.snapshot.manifest import MANIFEST_NAME, Manifest, load
from backsweep.snapshot.segment import FILE_NAME

SEGMENTS_NAME = "segments"


def present_state(folder: Path, kind: str) -> tuple[Manifest, str] | None:
    """Return the manifest that a save into `folder` would replace and its checksum, or None for a first save.

    Nothing is touched.

    Raises
    ------
    SnapshotError
        If the folder holds anything but an intact snapshot of this kind: overwriting it could destroy other data.
    """
    elsewhere = "Save to an empty folder, or delete this one if it is not needed"
    if not folder.exists():
        return None
    if not folder.is_dir():
        raise SnapshotError(folder, "it is not a folder", "Save to a folder")
    if (folder / SEGMENTS_NAME).is_symlink():
        raise SnapshotError(folder / SEGMENTS_NAME, "it is a link, and saving would write elsewhere", elsewhere)
    if (folder / MANIFEST_NAME).exists():
        try:
            manifest, checksum = load(folder)
        except SnapshotError as error:
            advice = error.advice if error.advice == LET_READ else elsewhere
            raise SnapshotError(error.path, f"it will not be overwritten: {error.why}", advice) from error
        if manifest.kind != kind:
            raise SnapshotError(folder, f"it holds a snapshot of kind {manifest.kind!r}, not {kind!r}", elsewhere)
        return manifest, checksum
    # No manifest: either not a snapshot, or a first save that was interrupted.
    expected = (LOCK_NAME, SEGMENTS_NAME, files.temporary_name(folder / MANIFEST_NAME).name)
    strangers = [entry for entry in sorted(folder.iterdir()) if entry.name not in expected]
    segments = folder / SEGMENTS_NAME
    if segments.is_dir():
        strangers += [entry for entry in sorted(segments.iterdir()) if not _is_ours(entry.name)]
    elif segments.exists():
        strangers.append(segments)
    if strangers:
        raise SnapshotError(folder, f"it is not a snapshot and holds other things ({strangers[0].name!r})", elsewhere)
    return None


def sweep(folder: Path, referenced: Collection[str]) -> None:
    """Delete unreferenced segments and leftover temporaries; touch no other files."""
    files.remove(files.temporary_name(folder / MANIFEST_NAME))
    for entry in (folder / SEGMENTS_NAME).iterdir():
        if _is_ours(entry.name) and entry.name not in referenced:
            files.remove(entry)


def _is_ours(name: str) -> bool:
    return FILE_NAME.fullmatch(name.removesuffix(files.TEMPORARY)) is not None
