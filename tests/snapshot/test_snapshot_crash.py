"""A crash at any moment, of the process or of the whole machine, leaves the old state or the new one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import IO, Any

import numpy as np
import pytest
from snapshot_helpers import Arrays, assert_same, listing, load, referenced, save, tiny_chunks

from backsweep.snapshot import SnapshotError, files

HERE = Path(__file__).parent
SOURCES = Path(files.__file__).parents[2]


def run_rounds(task: str, folder: Path) -> dict[str, int]:
    # One thread for the linear algebra library, which would otherwise start its own before the forks.
    environment = {**os.environ, "PYTHONPATH": f"{SOURCES}{os.pathsep}{HERE}", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, str(HERE / "crash_rounds.py"), task, str(folder)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    counts: dict[str, int] = json.loads(done.stdout)
    return counts


def test_killed_at_random_moments(tmp_path: Path) -> None:
    counts = run_rounds("kill", tmp_path / "s")
    assert counts["rounds"] == 100
    # The kills did hit saves half-way, and the rounds did save; how often depends on the machine.
    assert counts["leftovers"] >= 1
    assert counts["saves"] >= 1


def test_stopped_before_every_single_step(tmp_path: Path) -> None:
    counts = run_rounds("step", tmp_path / "s")
    assert counts["steps"] >= 20
    assert counts["old"] >= 10
    assert counts["new"] >= 3
    assert counts["leftovers"] >= 10


class Disk:
    """Watches a save and knows what a power cut at any moment could leave on the disk.

    Contents count once the file was forced, names once their folder was. What was not forced may or may not have
    made it, in any combination; contents that were not forced are gone.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.contents = [(root / name).read_bytes() for name in sorted(listing(root))]
        self.forced = [True] * len(self.contents)
        self.names = {root / name: number for number, name in enumerate(sorted(listing(root)))}
        self.safe = dict(self.names)
        self.pending: list[dict[Path, int | None]] = []  # changes of names since their folder was forced
        self.moments: list[list[dict[str, bytes]]] = []
        self.rng = np.random.default_rng(3)

    def rename(self, changes: dict[Path, int | None]) -> None:
        self.pending.append(changes)
        for path, number in changes.items():
            if number is None:
                self.names.pop(path, None)
            else:
                self.names[path] = number

    def force(self, path: Path) -> None:
        if path in self.names:
            self.forced[self.names[path]] = True
            return
        for changes in self.pending:
            for name in [name for name in changes if name.parent == path]:
                number = changes.pop(name)
                if number is None:
                    self.safe.pop(name, None)
                else:
                    self.safe[name] = number
        self.pending = [changes for changes in self.pending if changes]

    def outcomes(self) -> list[dict[str, bytes]]:
        """None, all, each alone, and some random combinations of the names that are not safe."""
        count = len(self.pending)
        choices = [np.zeros(count, bool), np.ones(count, bool), *np.eye(count, dtype=bool)]
        choices += [self.rng.random(count) < 0.5 for _ in range(8)]
        found = []
        for choice in choices:
            names: dict[Path, int | None] = dict(self.safe)
            for changes, happened in zip(self.pending, choice, strict=True):
                names.update(changes if happened else {})
            found.append(
                {
                    str(path.relative_to(self.root)): self.contents[number] if self.forced[number] else b""
                    for path, number in names.items()
                    if number is not None
                }
            )
        return found

    def watch(self, patch: pytest.MonkeyPatch) -> None:
        """Follow every change that `files` makes, and note the possible outcomes after each."""
        real_open, real_write = open, files.write_all
        real_fsync, real_replace, real_unlink = os.fsync, os.replace, os.unlink

        def note() -> None:
            self.moments.append(self.outcomes())

        def watched_open(path: Path, mode: str, **how: Any) -> IO[Any]:
            if mode == "rb":
                return real_open(path, mode, **how)
            self.contents.append(b"")
            self.forced.append(False)
            self.rename({path: len(self.contents) - 1})
            note()
            return real_open(path, mode, **how)

        def watched_write(file: IO[bytes], data: Any) -> None:
            self.contents[self.names[Path(file.name)]] += bytes(data)
            real_write(file, data)
            note()

        def watched_fsync(handle: int) -> None:
            real_fsync(handle)
            self.force(Path(os.readlink(f"/proc/self/fd/{handle}")))
            note()

        def watched_replace(source: Path, target: Path) -> None:
            real_replace(source, target)
            self.rename({source: None, target: self.names[source]})
            note()

        def watched_unlink(path: Path) -> None:
            real_unlink(path)
            self.rename({path: None})
            note()

        patch.setattr(files, "open", watched_open, raising=False)
        patch.setattr(files, "write_all", watched_write)
        patch.setattr(os, "fsync", watched_fsync)
        patch.setattr(os, "replace", watched_replace)
        patch.setattr(os, "unlink", watched_unlink)


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc to tell which file is forced")
def test_a_power_cut_after_any_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base = np.arange(60).reshape(20, 3)
    old: Arrays = {"a": base, "b": base * 2.0, "c": np.array(1)}
    changed = base.copy()
    changed[[0, 7]] = -1
    new: Arrays = {"a": changed, "b": base * 2.0, "c": np.array(2)}
    folder = tmp_path.resolve() / "s"
    with tiny_chunks(96, 48):
        save(folder, old, {"state": "old"})
        disk = Disk(folder)
        with monkeypatch.context() as patch:
            disk.watch(patch)
            save(folder, new, {"state": "new"})
    assert disk.names.keys() == {folder / name for name in listing(folder)}  # the watcher missed nothing

    seen: list[set[str]] = []
    number = 0
    for outcomes in disk.moments:
        seen.append(set())
        for outcome in outcomes:
            number += 1
            rebuilt = tmp_path / f"cut{number}"
            (rebuilt / "segments").mkdir(parents=True)
            for name, data in outcome.items():
                (rebuilt / name).write_bytes(data)
            snapshot = load(rebuilt)
            assert_same(snapshot.arrays, old if snapshot.metadata["state"] == "old" else new)
            seen[-1].add(snapshot.metadata["state"])
    assert seen[0] == {"old"}
    assert {"old", "new"} in seen
    assert all(outcome == {"new"} for outcome in seen[-3:])  # once it has returned, it is certain


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc to tell which file is forced")
@pytest.mark.parametrize("left_by_a_killed_save", [False, True])
def test_a_first_save_forces_every_new_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left_by_a_killed_save: bool
) -> None:
    """A folder's name is kept in the folder above it, so that one must be forced too."""
    root = tmp_path.resolve()
    folder = root / "runs" / "s"
    if left_by_a_killed_save:
        (folder / "segments").mkdir(parents=True)
    forced: list[Path] = []
    monkeypatch.setattr(os, "fsync", lambda handle: forced.append(Path(os.readlink(f"/proc/self/fd/{handle}"))))
    save(folder, {"x": np.ones(5)})
    assert {folder / "segments", folder, root / "runs"} <= set(forced)
    assert left_by_a_killed_save or root in forced


def test_what_a_killed_first_save_leaves_is_taken_over(tmp_path: Path) -> None:
    """No manifest yet, but nothing of anybody else's either."""
    save(tmp_path / "other", {"x": np.ones(5)})
    segments = tmp_path / "s" / "segments"
    segments.mkdir(parents=True)
    (source,) = (tmp_path / "other" / "segments").iterdir()
    (segments / source.name).write_bytes(b"not what its name says")
    (segments / (source.name + ".tmp")).write_bytes(b"to")
    (tmp_path / "s" / "manifest.json.tmp").write_bytes(b"{")
    (tmp_path / "s" / "writer.lock").touch()
    with pytest.raises(SnapshotError, match="no snapshot was ever completed"):
        load(tmp_path / "s")
    save(tmp_path / "s", {"x": np.ones(5)})
    assert_same(load(tmp_path / "s").arrays, {"x": np.ones(5)})
    assert listing(tmp_path / "s") == referenced(tmp_path / "s")
