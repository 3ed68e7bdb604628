"""A forked process has a replay of its own, or is told why it has none; a full disk is an error and no end."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest

from backsweep import Prioritized, Replay
from backsweep.jit import forks, mapped_file

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here"),
    # Python from 3.12 on, and JAX if another test has imported it, warn of what these tests do on purpose.
    pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:os.fork.. was called:RuntimeWarning"),
]
SPACE = gym.spaces.Box(0, 255, (1024,), np.uint8)


def filled(rows: int, first: int = 0, **options: object) -> Replay:
    replay = Replay(SPACE, gym.spaces.Discrete(2), 100, Prioritized(), **options)  # type: ignore[arg-type]
    add(replay, rows, first)
    return replay


def add(replay: Replay, rows: int, first: int = 0) -> None:
    for number in range(first, first + rows):
        replay.add(np.full(1024, number, np.uint8), 0, 1.0, np.full(1024, number + 1, np.uint8), False, False)


def forked() -> int:
    """Fork; filelock, which torch imports, refuses that while another thread forks, so try again."""
    while True:
        try:
            return os.fork()
        except RuntimeError as error:
            if "filelock" not in str(error):
                raise
            time.sleep(0.001)


def in_child(work: Callable[[], None]) -> None:
    """Run something in a forked process, and fail here if it fails there or does not come back."""
    child = forked()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    killer = threading.Timer(60, os.kill, (child, 9))
    killer.start()
    _, status = os.waitpid(child, 0)
    killer.cancel()
    assert os.waitstatus_to_exitcode(status) == 0


def hold_lock(replay: Replay) -> tuple[threading.Thread, threading.Event]:
    """Return a thread that is inside the replay, and the event that lets it leave."""
    inside, leave = threading.Event(), threading.Event()

    def hold() -> None:
        with replay._lock:
            inside.set()
            leave.wait(30)

    thread = threading.Thread(target=hold)
    thread.start()
    inside.wait()
    return thread, leave


def test_a_child_has_a_copy_of_its_own() -> None:
    replay = filled(20)
    before = replay.read(np.arange(20)).observation.copy()
    in_child(lambda: add(replay, 50, first=100))
    assert len(replay) == 20
    assert np.array_equal(replay.read(np.arange(20)).observation, before)


def test_a_file_is_not_shared_in_silence(tmp_path: Path) -> None:
    replay = filled(20, file=tmp_path)
    before = replay.read(np.arange(20)).observation.copy()

    def use() -> None:
        for call in (lambda: add(replay, 1, first=100), lambda: replay.sample(4), lambda: replay.save(tmp_path / "s")):
            with pytest.raises(RuntimeError, match="shares with the process it was forked from"):
                call()

    in_child(use)
    add(replay, 5, first=20)  # the parent goes on
    assert np.array_equal(replay.read(np.arange(20)).observation, before)


def test_a_fork_waits_until_no_thread_is_inside() -> None:
    replay = filled(5)
    thread, leave = hold_lock(replay)
    threading.Timer(0.2, leave.set).start()
    in_child(lambda: add(replay, 1, first=5))
    assert leave.is_set()
    thread.join()
    add(replay, 1, first=5)


def test_a_fork_does_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forks, "PATIENCE", 0.05)
    replay = filled(5)
    thread, leave = hold_lock(replay)

    def use() -> None:
        with pytest.raises(RuntimeError, match="in use by another thread"):
            replay.sample(2)

    in_child(use)
    leave.set()
    thread.join()
    add(replay, 1, first=5)


def test_a_full_disk_is_an_error_that_names_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mapped_file, "STEP", 8192)
    room = [30 * 1024]

    def allocate(descriptor: int, start: int, length: int) -> None:
        if start + length > room[0]:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", allocate)
    replay = filled(20, file=tmp_path)
    with pytest.raises(OSError, match=r"No space left.*nothing was lost.*backsweep-observations"):
        add(replay, 100, first=20)
    held = len(replay)
    assert 25 <= held <= 29  # each row brings one frame, and two might have been needed
    rows = replay.read(np.arange(held))
    assert (rows.observation[:, 0] == np.arange(held)).all()
    with pytest.raises(OSError, match="No space left"):
        add(replay, 1, first=held)
    assert len(replay) == held
    room[0] *= 2
    add(replay, 10, first=held)
    assert len(replay) == held + 10


def test_loading_into_a_file_takes_its_room_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(20).save(tmp_path / "save")

    def allocate(descriptor: int, start: int, length: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "posix_fallocate", allocate)
        with pytest.raises(OSError, match="No space left"):
            Replay.load(tmp_path / "save", file=tmp_path / "work")
    assert len(Replay.load(tmp_path / "save", file=tmp_path / "work")) == 20


def test_a_really_full_disk(tmp_path: Path) -> None:
    """On a small disk of its own, where this system lets us have one; before, the process ended with SIGBUS."""
    script = f"""
import os, subprocess, sys
import gymnasium as gym, numpy as np
from backsweep import Replay
done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", {str(tmp_path)!r}], capture_output=True)
if done.returncode:
    print("no disk"); sys.exit()
try:
    replay = Replay(gym.spaces.Box(0, 255, (4096,), np.uint8), gym.spaces.Discrete(2), 1000, file={str(tmp_path)!r})
    try:
        for number in range(1000):
            replay.add(np.full(4096, number % 251), 0, 0.0, np.full(4096, (number + 1) % 251), False, False)
    except OSError as error:
        print(len(replay), error)
    del replay
finally:
    subprocess.run(["umount", "-l", {str(tmp_path)!r}])
"""
    script = script.replace("% 251)", "% 251, np.uint8)")
    done = subprocess.run(
        ["unshare", "--mount", sys.executable, "-c", script], capture_output=True, text=True, timeout=300, check=False
    )
    if (done.returncode == 1 and "unshare" in done.stderr) or "no disk" in done.stdout:
        pytest.skip("no disk can be made here")
    assert done.returncode == 0, done.stderr
    assert "No space left on device" in done.stdout
    assert int(done.stdout.split()[0]) > 20


def test_threads_may_fork_at_the_same_time() -> None:
    """Each fork locks every replay; two that mix up what they have locked leave it locked for ever."""
    replays, errors = [filled(5) for _ in range(3)], []

    def use() -> None:
        for replay in replays:
            add(replay, 1, first=5)

    def fork() -> None:
        try:
            for _ in range(5):
                in_child(use)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=fork, daemon=True) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
        assert not thread.is_alive(), "it hangs"
    assert not errors
    for replay in replays:
        add(replay, 1, first=5)


def test_a_fork_may_come_while_a_replay_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    whole, make = filled(5), Replay._make_components

    def make_and_fork(self: Replay, *arguments: object) -> None:
        in_child(lambda: add(whole, 1, first=5))
        make(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(Replay, "_make_components", make_and_fork)
    filled(5)
