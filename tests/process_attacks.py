"""Attacks on the process of a replay: forks from several threads, signals in any call, and limits of the system."""

from __future__ import annotations

import errno
import os
import random
import resource
import signal
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from backsweep import Replay
from backsweep.snapshot import SnapshotError
from crafting import SPACES, drive, filled_replay, good_save
from states import assert_same_state, state_of

LONGER = int(os.environ.get("TORTURE_LONGER", "1"))
FORKS, INTERRUPTS, LIMITS = 20 * LONGER, 60 * LONGER, 40 * LONGER
PATIENCE = 60
KIND = "discrete"


def _child_uses(replays: list[Replay]) -> None:
    """Fork a process that uses the replays; raise if it fails or hangs."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            for replay in replays:
                drive(replay, KIND, 3, 1, plans=False)
            code = 0
        finally:
            os._exit(code)
    killer = threading.Timer(PATIENCE, os.kill, (child, signal.SIGKILL))
    killer.start()
    status = os.waitpid(child, 0)[1]
    killer.cancel()
    assert status == 0, "a forked child could not use its copies"


def forks_at_once(draw: random.Random, folder: Path) -> int:
    """Three threads fork while others use replays and make new ones: every child has whole copies, and nobody hangs."""
    replays = [filled_replay(KIND, seed=draw.randrange(1000)) for _ in range(2)]
    stop, errors = threading.Event(), []

    def repeat(work: Callable[[], Any], times: int | None) -> None:
        try:
            while times != 0 and not stop.is_set():
                work()
                times = None if times is None else times - 1
        except BaseException as error:
            errors.append(error)
            stop.set()

    def use(replay: Replay) -> None:
        drive(replay, KIND, 5, draw.randrange(2**31), plans=False)

    def make() -> None:
        _ = [Replay(SPACES[KIND], replays[0].action_space, 100) for _ in range(10)]
        time.sleep(0.01)

    uses = [partial(use, replay) for replay in replays]
    forking = [threading.Thread(target=repeat, args=(lambda: _child_uses(replays), FORKS)) for _ in range(3)]
    others = [threading.Thread(target=repeat, args=(work, None), daemon=True) for work in (*uses, make)]
    for thread in [*forking, *others]:
        thread.start()
    for thread in forking:
        thread.join(FORKS * PATIENCE)
        assert not thread.is_alive(), "a thread that forked is stuck"
    stop.set()
    for thread in others:
        thread.join(PATIENCE)
        assert not thread.is_alive(), "a thread is stuck"
    assert not errors, errors
    return 3 * FORKS


def signals_in_any_call(draw: random.Random, folder: Path) -> int:
    """Ctrl-C at random moments of clearing, loading, saving and planning: whole, and nothing is left behind."""
    good_save(folder / "good", KIND, seed=draw.randrange(1000))
    expected = state_of(Replay.load(folder / "good"))
    replay = Replay.load(folder / "good")
    calls: dict[str, Callable[[], Any]] = {
        "load": lambda: Replay.load(folder / "good"),
        "save": lambda: replay.save(folder / "save"),
        "clear": lambda: replay.clear(),
        "plan": lambda: replay.renew_values(lambda seen: np.zeros((len(seen), 3))),
        "extend": lambda: replay.extend(np.arange(4), np.arange(3), np.zeros(3), terminated=True),
    }
    for call in calls.values():
        call()  # compiles

    armed = False

    def ring(*_: Any) -> None:
        nonlocal armed
        if armed:
            armed = False
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, ring)
    files = len(os.listdir("/proc/self/fd"))
    try:
        for _ in range(INTERRUPTS):
            call = calls[draw.choice(sorted(calls))]
            began = time.monotonic()
            call()
            takes = time.monotonic() - began
            try:
                armed = True
                signal.setitimer(signal.ITIMER_REAL, draw.uniform(1e-6, 1.2 * takes))
                call()
                armed = False
            except KeyboardInterrupt:
                pass
            signal.setitimer(signal.ITIMER_REAL, 0)
            drive(replay, KIND, 10, draw.randrange(2**31))
            replay.save(folder / "save")
            Replay.load(folder / "save")  # which checks that all parts agree
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert_same_state(state_of(Replay.load(folder / "good")), expected)
    assert threading.active_count() == 1, threading.enumerate()
    # Python itself can lose a handle between two of its steps.
    assert len(os.listdir("/proc/self/fd")) <= files + 1 + INTERRUPTS // 500
    return INTERRUPTS


def tight_limits(draw: random.Random, folder: Path) -> int:
    """Few open files, little memory: an error that says so, and what was saved before is still there."""
    replay = filled_replay(KIND, seed=draw.randrange(1000))
    replay.save(folder / "save")
    Replay.load(folder / "save", file=folder)
    for _ in range(LIMITS):
        before = state_of(replay)
        drive(replay, KIND, 10, draw.randrange(2**31))
        what = draw.choice([resource.RLIMIT_NOFILE, resource.RLIMIT_AS])
        if what == resource.RLIMIT_NOFILE:
            limit = len(os.listdir("/proc/self/fd")) - 1 + draw.randrange(4)
        else:
            pages = int(Path("/proc/self/statm").read_text().split()[0])
            limit = pages * resource.getpagesize() + draw.randrange(1 << 20)
        limits, saved = resource.getrlimit(what), False
        resource.setrlimit(what, (limit, limits[1]))
        try:
            replay.save(folder / "save")
            saved = True
            Replay.load(folder / "save", file=folder if draw.random() < 0.5 else None)
        except MemoryError:
            pass
        except SnapshotError as error:
            if "delete" in str(error) or not ("Too many open files" in str(error) or "memory" in str(error)):
                raise
        except OSError as error:
            if error.errno not in (errno.EMFILE, errno.ENOMEM):
                raise
        finally:
            resource.setrlimit(what, limits)
        assert_same_state(state_of(Replay.load(folder / "save")), state_of(replay) if saved else before)
        replay.save(folder / "save")
    return LIMITS
