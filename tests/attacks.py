"""Attacks on a replay and on runs; `torture.py` carries them out until their time is up.

Each attack is a function of a random source and a folder of its own. It does one round, returns how many times it
tried something, and raises an AssertionError when something was lost, let in or changed that should not have been.
"""

from __future__ import annotations

import contextlib
import errno
import os
import random
import resource
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import hypothesis
import numpy as np

import crafted_rounds
import kill_rounds
from backsweep import EpisodicBackward, Mixture, Prioritized, Replay, Topological
from backsweep.snapshot import SnapshotError
from cache_attacks import others_caches
from crafting import SPACES, drive, good_save, observation
from drive import drive as drive_twin
from folder_attacks import at_the_same_time, mixed_folders
from process_attacks import forks_at_once, signals_in_any_call, tight_limits
from random_plans import random_plan
from run_attacks import stopped_fleets, stopped_runs
from states import assert_same_state, state_of
from strategies import Plan, plans

LONGER = int(os.environ.get("TORTURE_LONGER", "1"))
"""How many times longer a round is: a whole campaign has fewer and longer ones, because each one starts a process."""
Attack = Callable[[random.Random, Path], int]
EVERYTHING = list(hypothesis.HealthCheck)
WRONG_CALLS, DAMAGES, FULL_DISKS, LONG_PLANS, LONG_PLAN = 200 * LONGER, 60 * LONGER, 20, 20 * LONGER, 500
WIDE = gym.spaces.Box(0, 255, (4096,), np.uint8)
SAMPLER = Mixture([(0.4, Topological(shuffle=9)), (0.4, Prioritized()), (0.2, EpisodicBackward())])


def new_replay(kind: str, capacity: int = 200, **options: Any) -> Replay:
    """Return an empty replay."""
    return Replay(WIDE if kind == "wide" else SPACES[kind], gym.spaces.Discrete(3), capacity, SAMPLER, **options)


def small_plans(draw: random.Random, folder: Path) -> int:
    """Random calls on tiny replays, compared with a plain-Python model after each; hypothesis shrinks what fails."""
    calls = 0

    @hypothesis.seed(draw.randrange(2**32))
    @hypothesis.settings(
        max_examples=40,
        database=None,
        deadline=None,
        derandomize=False,
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(plans())
    def compare(plan: Plan) -> None:
        nonlocal calls
        calls += len(plan.commands)
        drive_twin(plan)

    compare()
    return calls


def long_plans(draw: random.Random, folder: Path) -> int:
    """Long random streams of calls, with saves, on replays of all sizes and settings, compared with the model."""
    calls = 0
    for _ in range(LONG_PLANS):
        plan = random_plan(draw, LONG_PLAN)
        calls += len(plan.commands)
        bounds = draw.choice([None, (1, 0), (3, 5), (8, 40)])
        drive_twin(plan, folder=folder / "save", check_every=draw.choice([50, 200]), bounds=bounds)
    return calls


BAD: tuple[Any, ...] = (
    *(None, "x", b"x", object(), [], {}, (), -1, 2**63, 10**30, np.nan, np.inf, 1e300, 1j, True, [[1]], [np.nan]),
    *(np.zeros((3, 3)), np.array(["a"]), np.ma.masked, np.zeros(0), np.full(8, 300), np.zeros(8, np.float16)),
)


def wrong_calls(draw: random.Random, folder: Path) -> int:
    """Calls with arguments that make no sense: an error, and nothing has changed, or the call was good after all."""
    kind = draw.choice(["bytes", "floats", "discrete"])
    replay = new_replay(kind, 60)
    drive(replay, kind, 80, draw.randrange(2**31), plans=False)
    good = [observation(kind, 3), 1, 0.5, observation(kind, 4), False, False]
    for _ in range(WRONG_CALLS):
        before = state_of(replay)
        name = draw.choice(["add", "sample", "update_priorities", "read", "episode"])
        arguments = list(good) if name == "add" else [[5], [1.0]][: 2 if name == "update_priorities" else 1]
        arguments[draw.randrange(len(arguments))] = draw.choice(BAD)
        try:
            getattr(replay, name)(*arguments)
        except (TypeError, ValueError, OverflowError):
            assert_same_state(state_of(replay), before)
        else:
            replay.save(folder / "save")
            Replay.load(folder / "save")  # which checks all of it
    return WRONG_CALLS


def kills_while_saving(draw: random.Random, folder: Path) -> int:
    """SIGKILL at random moments of a save: the old state or the new one is there. Late kills are not counted."""
    return kill_rounds.killed_at_random(folder / "save", 20 * LONGER, draw.randrange(2**31))["in a save"]


def damaged_files(draw: random.Random, folder: Path) -> int:
    """A byte flipped, a file cut off, emptied, removed or doubled: refused, or nothing is different."""
    kind = draw.choice(sorted(SPACES))
    good_save(folder / "good", kind, seed=draw.randrange(1000))
    expected = state_of(Replay.load(folder / "good"))
    files = [path for path in sorted((folder / "good").rglob("*")) if path.is_file()]
    for _ in range(DAMAGES):
        shutil.rmtree(folder / "bad", ignore_errors=True)
        shutil.copytree(folder / "good", folder / "bad")
        path = folder / "bad" / draw.choice(files).relative_to(folder / "good")
        image = bytearray(path.read_bytes())
        how = draw.choice(["flip", "flip", "flip", "cut", "empty", "remove", "double", "zeros"])
        if how == "flip" and image:
            image[draw.randrange(len(image))] ^= 1 << draw.randrange(8)
        elif how == "zeros" and image:
            start = draw.randrange(len(image))
            image[start : start + 16] = bytes(len(image[start : start + 16]))
        else:
            image = {"cut": image[: draw.randrange(len(image) + 1)], "double": image * 2}.get(how, bytearray())
        path.write_bytes(image)
        if how == "remove":
            path.unlink()
        try:
            found = Replay.load(folder / "bad")
        except SnapshotError:
            continue
        assert_same_state(state_of(found), expected)
    return DAMAGES


def crafted_folders(draw: random.Random, folder: Path) -> int:
    """Folders with good checksums and made-up contents: refused, or good for any use."""
    with open(os.devnull, "w") as nothing, contextlib.redirect_stderr(nothing):
        return sum(crafted_rounds.rounds(folder, 10 * LONGER, draw.randrange(2**31)))


def crafted_run_folders(draw: random.Random, folder: Path) -> int:
    """Folders of runs with good checksums and made-up contents: refused, or good for any use."""
    from crafted_runs import rounds  # needs torch

    with open(os.devnull, "w") as nothing, contextlib.redirect_stderr(nothing), contextlib.redirect_stdout(nothing):
        return rounds(draw, folder, LONGER)


@contextlib.contextmanager
def small_disk(folder: Path) -> Iterator[bool]:
    """Put a file system of its own, with little room, at `folder`; say whether that is allowed here."""
    folder.mkdir(exist_ok=True)
    command = ["mount", "-t", "tmpfs", "-o", "size=192k", "tmpfs", str(folder)]
    try:
        done = subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        done = False
    try:
        yield done
    finally:
        if done:
            subprocess.run(["umount", "--lazy", str(folder)], capture_output=True, check=True)


def full_disks(draw: random.Random, folder: Path) -> int:
    """Saves that the system cuts short: an error that says so, and the save before loads."""
    with small_disk(folder / "disk") as mounted:
        tried = _really_full(draw, folder / "disk") if mounted else 0
    return tried + _limited_files(draw, folder)


def _really_full(draw: random.Random, disk: Path) -> int:
    """A disk of its own that other files fill up, with saves and with observations kept in a file."""
    kind = "bytes"
    replay = new_replay(kind, 2_000)
    drive(replay, kind, 50, 1, plans=False)
    replay.save(disk / "save")
    before = state_of(replay)
    for _ in range(FULL_DISKS):
        replay = Replay.load(disk / "save")
        assert_same_state(state_of(replay), before)
        drive(replay, kind, 40, draw.randrange(2**31), plans=False)
        room = os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize
        (disk / "other").write_bytes(bytes(max(room - draw.randrange(1, 40_000), 0)))
        try:
            replay.save(disk / "save")
            before = state_of(replay)
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
        in_file = new_replay("wide", 500, file=disk) if draw.random() < 0.5 else None
        try:
            for number in range(100 if in_file is not None else 0):
                in_file.add(_wide(number), 0, 0.0, _wide(number + 1), False, False)
        except OSError as error:
            if error.errno != errno.ENOSPC or in_file is None:
                raise
            for row in range(in_file.oldest, in_file.total):
                assert (in_file.read([row]).observation == _wide(row)).all()
        del in_file
        (disk / "other").unlink()
    return FULL_DISKS


def _wide(number: int) -> Any:
    return np.random.default_rng(number).integers(0, 255, 4096, np.uint8)


def _limited_files(draw: random.Random, folder: Path) -> int:
    kind = "bytes"
    replay = new_replay(kind, 20_000)
    drive(replay, kind, 50, 1, plans=False)
    replay.save(folder / "save")
    before = state_of(replay)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    for _ in range(FULL_DISKS):
        replay = Replay.load(folder / "save")
        assert_same_state(state_of(replay), before)
        drive(replay, kind, 40, draw.randrange(2**31), plans=False)
        resource.setrlimit(resource.RLIMIT_FSIZE, (draw.randrange(1, 20_000), limits[1]))
        try:
            replay.save(folder / "save")
            before = state_of(replay)
        except OSError as error:
            if error.errno not in (errno.EFBIG, errno.ENOSPC):
                raise
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    return FULL_DISKS


def threads(draw: random.Random, folder: Path) -> int:
    """Threads that add, sample, update and save at the same time, and a fork amid them."""
    replay, stop, errors, calls = new_replay("bytes"), threading.Event(), [], [0] * 4
    drive(replay, "bytes", 30, 1, plans=False)

    def repeat(place: int, work: Callable[[], Any]) -> None:
        try:
            while not stop.is_set():
                work()
                calls[place] += 1
        except BaseException as error:
            errors.append(error)

    def update() -> None:
        batch = replay.sample(8)
        replay.update_priorities(batch.row, batch.reward)

    works = [lambda: drive(replay, "bytes", 5, calls[0], plans=False), update]
    works += [lambda: replay.save(folder / "save"), lambda: replay.stats()]
    workers = [threading.Thread(target=repeat, args=pair, daemon=True) for pair in enumerate(works)]
    for worker in workers:
        worker.start()
    for _ in range(5):
        time.sleep(draw.uniform(0.05, 0.3))
        child = os.fork()
        if child == 0:
            code = 1
            with contextlib.suppress(BaseException):
                drive(replay, "bytes", 20, 1, plans=False)
                code = 0
            os._exit(code)
        killer = threading.Timer(60, os.kill, (child, signal.SIGKILL))
        killer.start()
        assert os.waitpid(child, 0)[1] == 0, "a forked child could not use its copy"
        killer.cancel()
    stop.set()
    for worker in workers:
        worker.join(60)
        assert not worker.is_alive(), "a thread is stuck"
    assert not errors, errors
    Replay.load(folder / "save")
    return sum(calls)


def interrupts(draw: random.Random, folder: Path) -> int:
    """Ctrl-C at random moments of adding: all parts agree afterwards."""

    def ring(*_: Any) -> None:
        raise KeyboardInterrupt

    kind = draw.choice(["bytes", "floats"])
    replay = new_replay(kind, 60)
    before = signal.signal(signal.SIGALRM, ring)
    try:
        for number in range(300):
            with contextlib.suppress(KeyboardInterrupt):  # on a fast machine it may come while the alarm is turned off
                try:
                    signal.setitimer(signal.ITIMER_REAL, draw.uniform(1e-6, 3e-3))
                    drive(replay, kind, 200, draw.randrange(2**31), plans=False)
                finally:
                    signal.setitimer(signal.ITIMER_REAL, 0)
            if number % 20 == 0:
                replay.save(folder / "save")
                Replay.load(folder / "save")  # which checks that all parts agree
    finally:
        signal.signal(signal.SIGALRM, before)
    return number + 1


def many_adds(draw: random.Random, folder: Path) -> int:
    """Adds far beyond the capacity in one process: memory stays where it was once the ring is full."""
    lanes, calls, most = 100, 2_000, int(os.environ.get("TORTURE_ADDS", "400000"))
    replay = Replay(gym.spaces.Discrete(5_000), gym.spaces.Discrete(3), 20_000, SAMPLER, num_envs=lanes)
    rng = np.random.default_rng(draw.randrange(2**32))

    def fill() -> None:
        state = rng.integers(0, 5_000, lanes)
        for _ in range(calls):
            following, ends = rng.integers(0, 5_000, lanes), rng.random(lanes) < 0.05
            replay.add(state, rng.integers(0, 3, lanes), rng.random(lanes), following, ends, np.zeros(lanes, np.bool_))
            state = np.where(ends, rng.integers(0, 5_000, lanes), following)
        replay.sample(32)

    fill()
    before = _resident()
    while replay.total < most:
        fill()
        assert _resident() < 1.02 * before + (4 << 20), f"memory grows: {before} to {_resident()}"
    return replay.total


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


ATTACKS: dict[str, Attack] = {
    "calls compared with a plain model, small": small_plans,
    "calls compared with a plain model, long": long_plans,
    "calls that make no sense": wrong_calls,
    "kill -9 while saving": kills_while_saving,
    "runs stopped and resumed, the same records": stopped_runs,
    "fleets stopped and resumed, the same records": stopped_fleets,
    "damaged files": damaged_files,
    "crafted folders": crafted_folders,
    "saves on a full disk": full_disks,
    "calls from four threads, with forks": threads,
    "interrupts while adding": interrupts,
    "adds, memory flat": many_adds,
    "made-up runs": crafted_run_folders,
    "saves, loads and copies at the same time": at_the_same_time,
    "folders mixed from two saves": mixed_folders,
    "forks from three threads": forks_at_once,
    "interrupts of other calls": signals_in_any_call,
    "saves and loads at the limits of the system": tight_limits,
}
if os.name == "posix" and os.getuid() == 0:
    ATTACKS["kernel caches that another user got to first"] = others_caches
