"""One writer at a time, and no lock that outlives its holder."""

from __future__ import annotations

import contextlib
import errno
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from snapshot_helpers import assert_same, contents, load, save

from backsweep.snapshot import SnapshotError, SnapshotMemory
from backsweep.snapshot.lock import LOCK_NAME

OLD = {"big": np.zeros((3, 1 << 20), np.uint8), "small": np.arange(5)}
NEW = {"big": np.ones((3, 1 << 20), np.uint8), "small": np.arange(9)}

HOLDER = """
import fcntl, sys
file = open(sys.argv[1])
fcntl.flock(file, fcntl.LOCK_EX)
print("locked", flush=True)
sys.stdin.read()
"""


def test_a_second_writer_is_refused_while_the_first_one_writes(tmp_path: Path) -> None:
    save(tmp_path, OLD)
    before = contents(tmp_path)
    command = [sys.executable, "-I", "-S", "-c", HOLDER, str(tmp_path / LOCK_NAME)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"locked\n"
        with pytest.raises(SnapshotError, match="another writer") as caught:
            save(tmp_path, NEW)
        assert str(tmp_path) in str(caught.value)
        assert contents(tmp_path) == before
        load(tmp_path)  # readers need no lock
        holder.communicate()
    save(tmp_path, NEW)
    assert_same(load(tmp_path).arrays, NEW)


def test_a_lock_that_was_removed_before_it_was_held_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who removed it may hold another one of its name by now."""
    fcntl = pytest.importorskip("fcntl")
    original = fcntl.flock

    def late(handle: int, how: int) -> None:
        (tmp_path / LOCK_NAME).unlink()
        monkeypatch.setattr(fcntl, "flock", original)
        original(handle, how)

    monkeypatch.setattr(fcntl, "flock", late)
    with pytest.raises(SnapshotError, match="another process removed this folder"):
        save(tmp_path, NEW)
    save(tmp_path, NEW)


def test_a_save_inside_a_save_is_refused_and_the_outer_one_succeeds(tmp_path: Path) -> None:
    refused = []

    def meddle(start: int, stop: int) -> bool:
        with pytest.raises(SnapshotError, match="another writer") as caught:
            save(tmp_path, OLD)
        refused.append(caught.value)
        return True

    memory = SnapshotMemory()
    save(tmp_path, OLD, memory=memory)
    save(tmp_path, NEW, memory=memory, dirty={"big": meddle})
    assert refused
    assert_same(load(tmp_path).arrays, NEW)


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc to find the lock's handle")
def test_a_child_forked_during_a_save_does_not_keep_the_lock(tmp_path: Path) -> None:
    """Such a child holds a duplicate of the lock's handle; here the duplicate is made by hand."""
    duplicates: list[int] = []

    def duplicate(start: int, stop: int) -> bool:
        for entry in os.listdir("/proc/self/fd"):
            with contextlib.suppress(OSError):
                if os.readlink(f"/proc/self/fd/{entry}").endswith(LOCK_NAME):
                    duplicates.append(os.dup(int(entry)))
        return True

    memory = SnapshotMemory()
    save(tmp_path, OLD, memory=memory)
    save(tmp_path, NEW, memory=memory, dirty={"big": duplicate})
    assert duplicates
    try:
        save(tmp_path, OLD)
    finally:
        for handle in duplicates:
            os.close(handle)


def test_a_file_system_without_locks_can_still_be_saved_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unsupported(*arguments: Any) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("fcntl.flock", unsupported)
    save(tmp_path, NEW)
    assert_same(load(tmp_path).arrays, NEW)


def test_without_advisory_locks_saving_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("backsweep.snapshot.lock.fcntl", None)
    save(tmp_path, NEW)
    assert_same(load(tmp_path).arrays, NEW)
