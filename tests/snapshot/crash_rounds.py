"""Crash a saving process again and again and check what it leaves behind; run as a script by test_snapshot_crash.py.

A process of its own, because it forks: the tests' process has threads. It prints one JSON object with counts, and
fails with an assertion as soon as a crash leaves anything but the old state or the new one.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from snapshot_helpers import assert_same, listing, load, referenced, save, tiny_chunks

from backsweep.snapshot import SnapshotMemory, files

BLOCKS, ROWS = 8, 16  # "ring" has 8 blocks of 16 rows; each version overwrites the next block
CHUNK = ROWS * 64 * 8  # so that one block is one chunk


def state(version: int) -> dict[str, np.ndarray]:
    """All arrays as of a version, computed from its number alone."""
    last = [version - (version - block) % BLOCKS for block in range(BLOCKS)]
    ring = np.repeat(np.maximum(last, 0), ROWS)[:, None] + np.zeros(64, np.int64)
    return {"ring": ring, "whole": np.full((CHUNK // 8, 2), version), "step": np.array(version)}


def save_version(folder: Path, version: int, memory: SnapshotMemory | None) -> None:
    """Save a version; with a memory, say which block is another one than in the version before."""
    first = version % BLOCKS * ROWS
    hints = {"ring": lambda start, stop: start < first + ROWS and first < stop}
    save(folder, state(version), {"version": version}, memory=memory, dirty=hints if memory is not None else {})


def checked_version(folder: Path) -> int:
    """Load, and demand that everything in the snapshot belongs to one and the same version."""
    snapshot = load(folder)
    version = snapshot.metadata["version"]
    assert_same(snapshot.arrays, state(version))
    assert isinstance(version, int)
    return version


def tidy_after(folder: Path, version: int) -> bool:
    """Save once more and demand that leftovers are gone; return whether there were any."""
    leftovers = listing(folder) != referenced(folder)
    save_version(folder, version, None)
    assert listing(folder) == referenced(folder), listing(folder) ^ referenced(folder)
    return leftovers


def in_child(work: Callable[[], None]) -> int:
    """Fork a child that does the work; return its process id."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    return child


def killed_at_random(folder: Path, rounds: int) -> dict[str, int]:
    """SIGKILL a child that saves version after version."""
    rng = np.random.default_rng(1)
    counts = {"rounds": 0, "old": 0, "new": 0, "leftovers": 0, "saves": 0}
    began = time.perf_counter()
    for version in range(5):
        save_version(folder, version, None)
    one_save = min((time.perf_counter() - began) / 5, 0.1)  # so that a slow disk is not killed before its first save
    for _ in range(rounds):
        reading, writing = os.pipe()

        def keep_saving(start: int = version, writing: int = writing) -> None:
            memory = SnapshotMemory()
            load(folder, memory=memory)
            number = start
            while True:
                os.write(writing, number.to_bytes(8, "little"))  # everything up to this version is safely saved
                number += 1
                save_version(folder, number, memory)

        child = in_child(keep_saving)
        os.close(writing)
        done = int.from_bytes(os.read(reading, 8), "little")  # it is up and running
        time.sleep(rng.uniform(0, 2.5 * one_save))
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        assert os.WTERMSIG(status) == signal.SIGKILL, status
        while data := os.read(reading, 8):
            done = int.from_bytes(data, "little")
        os.close(reading)
        found = checked_version(folder)
        assert found in (done, done + 1), (found, done)
        counts["rounds"] += 1
        counts["old" if found == done else "new"] += 1
        counts["saves"] += done - version
        version = found + 1
        counts["leftovers"] += tidy_after(folder, version)
    return counts


def stopped_at_every_step(folder: Path) -> dict[str, int]:
    """Let a child die just before its first change to the disk, its second, and so on until it comes through.

    A write dies half-way instead.
    """
    counts = {"steps": 0, "old": 0, "new": 0, "leftovers": 0}
    version = 0
    save_version(folder, version, None)
    while True:
        fatal = counts["steps"] + 1

        def dying(fatal: int = fatal, version: int = version) -> None:
            seen = 0

            def counted(real: Callable[..., Any], half: bool = False) -> Callable[..., Any]:
                def call(*arguments: Any, **options: Any) -> Any:
                    nonlocal seen
                    seen += 1
                    if seen == fatal:
                        if half:
                            file, data = arguments
                            file.write(memoryview(data)[: len(data) // 2])
                            file.flush()
                        os._exit(9)
                    return real(*arguments, **options)

                return call

            files.open = counted(open)  # type: ignore[attr-defined]
            files.write_all = counted(files.write_all, half=True)
            for name in ("fsync", "replace", "unlink"):
                setattr(os, name, counted(getattr(os, name)))
            save_version(folder, version + 1, None)

        _, status = os.waitpid(in_child(dying), 0)
        found = checked_version(folder)
        if os.WEXITSTATUS(status) == 0:
            assert found == version + 1
            return counts
        assert os.WEXITSTATUS(status) == 9, status
        assert found in (version, version + 1)
        counts["steps"] += 1
        counts["old" if found == version else "new"] += 1
        version = found + 1
        counts["leftovers"] += tidy_after(folder, version)


if __name__ == "__main__":
    task, where = sys.argv[1], Path(sys.argv[2])
    with tiny_chunks(CHUNK, CHUNK // 2):
        print(json.dumps(killed_at_random(where, 100) if task == "kill" else stopped_at_every_step(where)))
