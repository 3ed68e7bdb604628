"""A shard on disk: the last save of its replay, and a journal of the rows added since.

    FOLDER/shard-000/replay/                 as `Replay.save` writes it
    FOLDER/shard-000/journal-00000001        chunks that were added after that save
    FOLDER/shard-000/writer.lock             held by the process that has the shard

Each record of a journal has the number of rows before it, so records that the save already contains are skipped, and a
crash between the two steps of a save (write the replay, start a new journal) does no harm.
"""

from __future__ import annotations

import contextlib
import os
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backsweep.replay import Replay
from backsweep.replay.chunks import add_chunk, chunk_from_arrays
from backsweep.snapshot import SnapshotError, files
from backsweep.snapshot.contents import ContentsError, need
from backsweep.snapshot.errors import RESTORE
from backsweep.snapshot.journal import Journal, Record, read_journal
from backsweep.snapshot.lock import writer_lock

REPLAY = "replay"
JOURNAL = "journal-"
PATIENCE = 20.0
"""Seconds that a restarted shard waits for the previous process to release the folder."""


class ShardFolder:
    """The folder of one shard, locked by this process."""

    def __init__(self, folder: Path, *, sync: bool) -> None:
        self.folder = folder
        self._sync = sync
        self._journal: Journal | None = None
        self._number = 0
        self._held = contextlib.ExitStack()
        files.make_folder(folder)
        self._lock()

    def _lock(self) -> None:
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                self._held.enter_context(writer_lock(self.folder))
                return
            except SnapshotError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)

    @property
    def nbytes(self) -> int:
        """Bytes of the journal that a restart would read."""
        return 0 if self._journal is None else self._journal.nbytes

    def journals(self) -> list[Path]:
        """Return the journals, oldest first."""
        return journals_in(self.folder)

    def begin(self, replay: Replay, state: dict[str, Any]) -> None:
        """Save the replay and start a new journal, whose first record holds `state`."""
        replay.save(self.folder / REPLAY)
        before = self.journals()
        self._number = 1 + max([self._number, *(_number(path) for path in before)])
        path = self.folder / f"{JOURNAL}{self._number:08d}"
        journal = Journal(path, sync=True)
        journal.append({"kind": "state", "before": replay.total, **state}, {})
        files.force_folder(self.folder)
        self.close_journal()
        journal.close()
        self._journal = Journal(path, journal.nbytes, sync=self._sync)
        for old in before:
            files.remove(old)

    def append(self, data: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        """Append a record to the journal."""
        assert self._journal is not None
        self._journal.append(data, arrays)

    def resume(self) -> None:
        """Continue the newest journal after its last complete record."""
        newest = self.journals()[-1]
        end = max((record.end for record in read_journal(newest)), default=0)
        if newest.stat().st_size > end:
            warnings.warn(f"{newest}: an incomplete record was removed", UserWarning, stacklevel=2)
        self._number = _number(newest)
        self._journal = Journal(newest, end, sync=self._sync)

    def close_journal(self) -> None:
        """Close the journal."""
        if self._journal is not None:
            self._journal.close()
            self._journal = None

    def close(self) -> None:
        """Release the folder."""
        self.close_journal()
        self._held.close()


def journals_in(folder: Path) -> list[Path]:
    """Return a shard's journals, oldest first."""
    found = [path for path in folder.glob(f"{JOURNAL}*") if path.name.removeprefix(JOURNAL).isdecimal()]
    return sorted(found, key=_number)


def _number(path: Path) -> int:
    return int(path.name.removeprefix(JOURNAL))


def restored(folder: Path, **configurations: Any) -> tuple[Replay, Iterator[Record]]:
    """Return the replay saved in a shard's folder, and the records of its journals, which are added when read."""
    replay = Replay.load(folder / REPLAY, **configurations)
    return replay, _follow(replay, folder)


def _follow(replay: Replay, folder: Path) -> Iterator[Record]:
    for path in journals_in(folder):
        for record in read_journal(path):
            try:
                if record.data["kind"] == "chunk":
                    _add(replay, record)
                yield record
            except (ContentsError, KeyError, TypeError, ValueError) as error:
                why = f"the record that ends at byte {record.end} cannot be used ({error})"
                raise SnapshotError(path, why, RESTORE) from error


def _add(replay: Replay, record: Record) -> None:
    before, lanes = record.data["before"], np.asarray(record.data["lanes"])
    need(type(before) is int and before <= replay.total, f"rows are missing before row {before}")
    chunk = chunk_from_arrays(record.arrays, replay)
    need(lanes.dtype == np.int64 and lanes.shape == chunk.flags.shape[1:], "its lanes do not fit")
    need(len(set(lanes.tolist())) == len(lanes), "it names a lane twice")
    need(bool(((lanes >= 0) & (lanes < replay.num_envs)).all()), "its lanes are out of range")
    if before == replay.total:
        add_chunk(replay, chunk, lanes)
    else:
        need(before + chunk.rows <= replay.total, f"it holds a part of its rows from {before} on")


def holds_a_shard(folder: str | os.PathLike[str]) -> bool:
    """Return whether a folder holds a saved shard."""
    return (Path(folder) / REPLAY / "manifest.json").exists()
