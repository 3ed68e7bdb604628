"""Crash-safe, incremental snapshot folders.

    memory = SnapshotMemory()
    write_snapshot(folder, {"reward": reward}, {"step": 7}, kind="example", version=1, memory=memory)
    snapshot = read_snapshot(folder, kind="example", versions={1})

A folder holds `manifest.json`, `segments/*.safetensors` and `writer.lock`. Segments are named after the digest of
their contents, so what has not changed keeps its file. The manifest is renamed into place last. There is no pickle.
"""

from backsweep.snapshot.change_hints import DirtyHint, SnapshotMemory
from backsweep.snapshot.errors import ReplacedError, SnapshotError
from backsweep.snapshot.reader import Description, Destination, Snapshot, read_description, read_metadata, read_snapshot
from backsweep.snapshot.writer import SnapshotReport, write_snapshot

__all__ = [
    "Description",
    "Destination",
    "DirtyHint",
    "ReplacedError",
    "Snapshot",
    "SnapshotError",
    "SnapshotMemory",
    "SnapshotReport",
    "read_description",
    "read_metadata",
    "read_snapshot",
    "write_snapshot",
]
