"""Folders that another process saves to, or that this one may not read; and paths that are none."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from backsweep import Prioritized, Replay, saving
from backsweep.jit import memory
from backsweep.snapshot import ReplacedError, SnapshotError, files
from crafting import crafted, good_save

SPACE = gym.spaces.Discrete(30)


def filled(capacity: int, rows: int) -> Replay:
    replay = Replay(SPACE, gym.spaces.Discrete(2), capacity, Prioritized())
    for step in range(rows):
        replay.add(step % 29, 0, 0.0, step % 29 + 1, False, False)
    return replay


@pytest.mark.parametrize("saves", [1, 10**6])
def test_a_folder_that_is_saved_while_it_is_loaded(saves: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other replay has another size, so nothing that was read before the save fits what is read after it."""
    filled(20, 10).save(tmp_path)
    read, done = saving.read_snapshot, 0

    def save_and_read(*arguments: Any, **options: Any) -> Any:
        nonlocal done
        if done < saves:
            done += 1
            filled(40 + done % 2, 30).save(tmp_path)
        return read(*arguments, **options)

    monkeypatch.setattr(saving, "read_snapshot", save_and_read)
    if saves == 1:
        assert len(Replay.load(tmp_path)) == 30
    else:
        with pytest.raises(ReplacedError, match=r"replaced by a newer save while it was being read\. Load it again"):
            Replay.load(tmp_path)
        assert done == saving.TRIES


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENOMEM, errno.EACCES, errno.EIO])
def test_a_file_that_cannot_be_read_need_not_be_damaged(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replay = filled(20, 10)
    replay.save(tmp_path)

    def fail(path: str, flags: int) -> int:
        raise OSError(number, os.strerror(number), path)

    with monkeypatch.context() as patch:
        patch.setattr(files, "regular", fail)
        for work in (lambda: Replay.load(tmp_path), lambda: replay.save(tmp_path)):
            with pytest.raises(SnapshotError, match="cannot be read") as found:
                work()
            assert ("Nothing is known to be wrong with it" in str(found.value)) == (number != errno.EIO)
    assert len(Replay.load(tmp_path)) == 10


def test_a_replay_that_does_not_fit_into_memory_is_not_called_malicious(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(20, 10).save(tmp_path)

    def no_pages(*_: Any, **__: Any) -> Any:
        raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))

    monkeypatch.setattr(memory, "_SMALL", 0)
    monkeypatch.setattr(memory.mmap, "mmap", no_pages)
    with pytest.raises(MemoryError, match="bytes of memory cannot be reserved: Cannot allocate memory"):
        filled(20, 0)
    with pytest.raises(SnapshotError, match=r"cannot be reserved.*Load it on a machine, or with a limit"):
        Replay.load(tmp_path)


def test_bools_that_are_neither_true_nor_false_are_refused(tmp_path: Path) -> None:
    good_save(tmp_path / "good", "bytes")

    def change(arrays: dict[str, Any], _: dict[str, Any]) -> None:
        arrays["ended"] = np.full(arrays["ended"].shape, 128, np.uint8).view(np.bool_)

    crafted(tmp_path / "good", tmp_path / "crafted", change)
    with pytest.raises(SnapshotError, match="bools that are neither true nor false"):
        Replay.load(tmp_path / "crafted")


@pytest.mark.parametrize("path", [None, 5, b"bytes", "", "with\0zero"])
def test_what_is_no_path_is_refused(path: Any) -> None:
    replay = filled(20, 3)
    for work in (lambda: replay.save(path), lambda: Replay.load(path)):
        with pytest.raises((TypeError, ValueError), match="folder must be"):
            work()
    if path is not None:
        with pytest.raises((TypeError, ValueError), match="file must be"):
            Replay(SPACE, gym.spaces.Discrete(2), 20, file=path)
