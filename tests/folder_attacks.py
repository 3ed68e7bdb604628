"""Attacks on saved folders by other processes: saves, loads and copies at the same time, and mixtures of two saves."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import random
import shutil
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import gymnasium as gym
import numpy as np

from backsweep import Prioritized, Replay, Topological
from backsweep.snapshot import ReplacedError, SnapshotError, layout
from crafting import SPACES, drive
from states import assert_same_state, state_of

SECONDS = 3.0 * int(os.environ.get("TORTURE_LONGER", "1"))
MIXTURES = 40 * int(os.environ.get("TORTURE_LONGER", "1"))
CAPACITIES, SAMPLERS = (60, 200), (Topological(), Prioritized())
KIND = "discrete"


def _replay(number: int) -> Replay:
    """Return one of two replays of different sizes and samplers; its seed says which."""
    return Replay(SPACES[KIND], gym.spaces.Discrete(3), CAPACITIES[number], SAMPLERS[number], seed=number)


def _use(replay: Replay) -> None:
    """Check that a loaded replay is one of the two as a whole, and good for any use."""
    settings = replay.settings()
    number = settings["seed"]
    assert (settings["capacity"], settings["sampler"]) == (CAPACITIES[number], SAMPLERS[number])
    replay.read(np.arange(replay.oldest, replay.total))
    drive(replay, KIND, 5, 1, plans=False)


def _save(folder: Path, seed: int) -> bool:
    """Save one of the two replays, unless another process is saving."""
    replay, draw = _replay(seed % 2), random.Random(seed)
    drive(replay, KIND, draw.randrange(1, 100), seed, plans=False)
    try:
        replay.save(folder)
        return True
    except SnapshotError as error:
        if "another writer is saving" not in str(error):
            raise
        return False


def _load(folder: Path, seed: int) -> bool:
    try:
        _use(Replay.load(folder))
        return True
    except ReplacedError:
        return False


def _copy(folder: Path, seed: int) -> bool:
    """Copy the folder file by file, as backups do: the copy is whole or refused."""
    target = folder.with_name("copy")
    shutil.rmtree(target, ignore_errors=True)
    with contextlib.suppress(shutil.Error):  # files that were there when it looked
        shutil.copytree(folder, target)
    try:
        _use(Replay.load(target))
        return True
    except SnapshotError:
        return False


def _again_and_again(work: Callable[[Path, int], bool], folder: Path, seed: int, answer: Any) -> None:
    done, end = 0, time.monotonic() + SECONDS
    try:
        while time.monotonic() < end:
            done += work(folder, seed + 2 * done)
        answer.send(done)
    except BaseException:
        answer.send(traceback.format_exc())


def at_the_same_time(draw: random.Random, folder: Path) -> int:
    """Two processes save different replays to one folder, two load it and one copies it: what loads is one of them."""
    place, context = folder / "save", multiprocessing.get_context("fork")
    for number in range(2):
        drive(_replay(number), KIND, 30, 1, plans=False)  # compiles
    _replay(0).save(place)
    _use(Replay.load(place))
    answers, processes = [], []
    for index, work in enumerate((_save, _save, _load, _load, _copy)):
        ours, theirs = context.Pipe(duplex=False)
        seed = 2 * draw.randrange(2**30) + index
        processes.append(context.Process(target=_again_and_again, args=(work, place, seed, theirs)))
        processes[-1].start()
        answers.append(ours)
    done = 0
    for ours, process in zip(answers, processes, strict=True):
        found = ours.recv()
        process.join()
        assert isinstance(found, int), found
        done += found
    _use(Replay.load(place))
    return done


def mixed_folders(draw: random.Random, folder: Path) -> int:
    """Files of a save and of a later one, as an interrupted synchronisation leaves them: one of the two, or refused."""
    with mock.patch.multiple(layout, CHUNK_BYTES=512, SMALL_BYTES=64):  # many small files
        return _mixed(draw, folder)


def _mixed(draw: random.Random, folder: Path) -> int:
    replay = _replay(draw.randrange(2))
    drive(replay, KIND, draw.randrange(20, 150), draw.randrange(2**31), plans=False)
    replay.save(folder / "old")
    states = [state_of(replay)]
    shutil.copytree(folder / "old", folder / "new")
    replay = Replay.load(folder / "new")
    drive(replay, KIND, draw.randrange(1, 60), draw.randrange(2**31), plans=False)
    replay.save(folder / "new")
    states.append(state_of(replay))
    files = sorted({path.relative_to(place) for place in (folder / "old", folder / "new") for path in place.rglob("*")})
    for _ in range(MIXTURES):
        target = folder / "mixed"
        shutil.rmtree(target, ignore_errors=True)
        (target / "segments").mkdir(parents=True)
        for name in files:
            source = folder / draw.choice(["old", "new"]) / name
            if source.is_file() and draw.random() < 0.95:
                shutil.copy(source, target / name)
        try:
            found = state_of(Replay.load(target))
        except SnapshotError:
            continue
        counters = "store/counters"  # have the number of rows ever added, which tells the two apart
        assert_same_state(found, states[int(np.array_equal(found[counters], states[1][counters]))])
    return MIXTURES
