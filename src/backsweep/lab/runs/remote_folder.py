"""A results folder behind an fsspec URL, such as s3://bucket/results; parts of it are copied here and back.

The remote folder can be resumed from at every moment: records are sent before the checkpoint that belongs to them, and
only the newest checkpoint slot is sent, from a copy made at one instant. The other slot, with the previous checkpoint,
is left alone.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path, PurePosixPath
from typing import Any

from backsweep.run_files import CHECKPOINTS, FINISHED, MANIFEST, STATE
from backsweep.snapshot.files import TEMPORARY, traits
from backsweep.snapshot.lock import LOCK_NAME

NEWEST = PurePosixPath(STATE, MANIFEST)
"""Of a slot: written last, so it tells the age of a checkpoint."""


def is_url(place: object) -> bool:
    """Return whether a results folder is a URL."""
    return "://" in str(place)


class RemoteFolder:
    """A folder behind a URL and a local folder with parts of it."""

    def __init__(self, url: str, local: Path) -> None:
        try:
            import fsspec
        except ImportError as error:
            raise ImportError(f"the results folder {url} needs fsspec: pip install fsspec") from error
        self._files, root = fsspec.core.url_to_fs(url)
        self._root = str(root).rstrip("/")
        self.local = local
        self._same: dict[str, tuple[int, ...]] = {}
        """Files that are equal on both sides, with the traits of the local one."""

    def pull(self, folder: str, *, checkpoints: bool) -> None:
        """Copy a folder here; without `checkpoints`, only their manifests, which say what could be resumed."""
        for path in self._found(folder):
            name = path.removeprefix(f"{self._root}/")
            here = self.local / name
            here.parent.mkdir(parents=True, exist_ok=True)
            if checkpoints or CHECKPOINTS not in here.parts or here.name == MANIFEST:
                self._files.get_file(path, str(here))
                self._same[name] = traits(here)

    def _found(self, folder: str) -> list[str]:
        place = f"{self._root}/{folder}" if folder else self._root
        return [str(path) for path in self._files.find(place)] if self._files.exists(place) else []

    def push(self, folder: str) -> None:
        """Copy a run's or fleet's folder back, records first, then a new checkpoint."""
        place = self.local / folder
        with tempfile.TemporaryDirectory(dir=self.local, prefix=".checkpoint-") as scratch:
            slot = _newest_slot(place)
            frozen = None if slot is None else _frozen(slot, Path(scratch) / slot.name)
            kept = [path for path in _files_below(place) if CHECKPOINTS not in path.relative_to(place).parts]
            for path in sorted(kept, key=lambda each: (each.name == FINISHED, str(each))):
                self._send(path, path.relative_to(self.local).as_posix())
            if slot is not None and frozen is not None:
                name = slot.relative_to(self.local).as_posix()
                for path in sorted(_files_below(frozen), key=_state_last):
                    self._send(path, f"{name}/{path.relative_to(frozen).as_posix()}")
                self._delete_others(f"{name}/", {path.relative_to(frozen).as_posix() for path in _files_below(frozen)})
            elif not (place / CHECKPOINTS).exists():
                self._delete_others(f"{folder}/{CHECKPOINTS}/", set())

    def push_file(self, name: str) -> None:
        """Copy one file back."""
        self._send(self.local / name, name)

    def remove(self, folder: str) -> None:
        """Delete a folder on both sides."""
        shutil.rmtree(self.local / folder, ignore_errors=True)
        if self._files.exists(f"{self._root}/{folder}"):
            self._files.rm(f"{self._root}/{folder}", recursive=True)

    def _send(self, path: Path, name: str) -> None:
        now = traits(path)
        if not now or self._same.get(name) == now:
            return
        target = f"{self._root}/{name}"
        self._files.makedirs(target.rpartition("/")[0], exist_ok=True)
        self._files.put_file(str(path), target)
        self._same[name] = now

    def _delete_others(self, prefix: str, wanted: set[str]) -> None:
        """Delete remote files below a folder that do not exist here."""
        for path in self._found(prefix.rstrip("/")):
            name = path.removeprefix(f"{self._root}/")
            if name.removeprefix(prefix) not in wanted:
                self._files.rm_file(path)
                self._same.pop(name, None)


def newest_state(folder: Path) -> tuple[int, ...]:
    """Return a value that changes with each new checkpoint of a run or fleet."""
    slot = _newest_slot(folder)
    return () if slot is None else traits(slot / NEWEST)


def _newest_slot(folder: Path) -> Path | None:
    states = [(traits(slot / NEWEST), slot) for slot in (folder / CHECKPOINTS).glob("*")]
    whole = [(found[3], slot) for found, slot in states if found]
    return max(whole)[1] if whole else None


def _frozen(slot: Path, copy: Path) -> Path | None:
    """Return a copy of a slot at one instant, None if it was being written; files are replaced, never modified."""
    before = traits(slot / NEWEST)
    try:
        shutil.copytree(slot, copy, copy_function=os.link)
    except (OSError, shutil.Error):
        return None
    # A hard link changes a file's link count and ctime, but not its contents.
    return copy if traits(slot / NEWEST)[:4] == before[:4] else None


def _files_below(folder: Path) -> list[Path]:
    unwanted: tuple[Any, ...] = (LOCK_NAME,)
    return [
        path
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in unwanted and path.suffix != TEMPORARY
    ]


def _state_last(path: Path) -> tuple[bool, bool, str]:
    return path.parent.name == STATE, path.name == MANIFEST, str(path)
