"""Runs' folders that somebody made up: good checksums over contents that no run writes, or other kinds of files.

Resuming, evaluating or reading such a folder is refused with a `RunError`, or it works. Nothing outside of it changes.
"""

from __future__ import annotations

import contextlib
import copy
import os
import random
import resource
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch
import xxhash

from backsweep.agent import RunConfig, RunError, resume, train_fleet
from backsweep.agent.fleet.run import run_environments
from backsweep.agent.session import checkpoint
from backsweep.agent.session.session import Session
from backsweep.agent.session.watch import Agent
from backsweep.snapshot import SnapshotError, read_snapshot, write_snapshot
from crafting import crafted, random_change
from trainer_helpers import chain, grid, paper_config

PATIENCE = 300
"""Seconds after which a call counts as hung."""
MOST_MEMORY = 8 << 30
"""What a folder may ask for in vain."""
STOPPED_AT, STEPS_MORE = 300, 30
SHORT: dict[str, Any] = {"steps": 100_000, "warmup_steps": 250, "evaluation_interval": 50_000, "record_interval": 100}
WORDS: tuple[Any, ...] = (None, True, -1, 0.5, -1.5, "x", "../x", [], {}, [1, 2])
NUMBERS: tuple[Any, ...] = (*WORDS, 0, 1, 7, 10**6, 10**15, 2**70, 1e300)


def runs_of(kind: str) -> dict[str, RunConfig]:
    """Return the runs of one kind of folder, by name."""
    small: dict[str, Any] = {**SHORT, "capacity": 400}
    if kind == "chain":
        return {".": chain(**small)}
    if kind == "fleet":
        return {name: chain(method=name, **small) for name in ("ter", "uer")}
    if kind == "backward":
        return {".": chain(method="ebu", **small)}
    if kind == "grid":
        return {".": grid(method="graph", **small)}
    if kind == "sokoban":
        small |= {"task_options": {"max_steps": 60}, "convolutions": ((4, 8, 4),), "linear": (8,)}
        return {".": paper_config("sokoban/5x5-1", **small)}
    return {".": paper_config(env="CartPole-v1", method="uer", num_envs=2, linear=(8,), **small)}


KINDS = ("chain", "fleet", "backward", "grid", "sokoban", "foreign")


@contextlib.contextmanager
def stopping_after(steps: int) -> Iterator[None]:
    """Stop every session by a signal some steps after it began."""
    look_around = Session._after_turn
    began: dict[int, int] = {}

    def look_and_stop(self: Session) -> None:
        look_around(self)
        if self.fleet.step >= began.setdefault(id(self), self.fleet.step) + steps:
            signal.raise_signal(signal.SIGTERM)

    with mock.patch.object(Session, "_after_turn", look_and_stop):
        yield


@contextlib.contextmanager
def in_time() -> Iterator[None]:
    """Raise if the block hangs."""

    def ring(*_: Any) -> None:
        raise AssertionError("it hung")

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(PATIENCE)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def good_run(folder: Path, kind: str) -> None:
    """Train until there are checkpoints, and stop."""
    with stopping_after(STOPPED_AT):
        train_fleet(runs_of(kind), folder, quiet=True, checkpoint_interval=200)


def change_snapshot(folder: Path, kind: str, change: Callable[[dict[str, Any], dict[str, Any]], None]) -> None:
    """Change the arrays or the metadata of a snapshot, with good checksums."""
    found = read_snapshot(folder, kind=kind, versions={checkpoint.VERSION})
    arrays, metadata = dict(found.arrays), copy.deepcopy(found.metadata)
    change(arrays, metadata)
    shutil.rmtree(folder)
    write_snapshot(folder, arrays, metadata, kind=kind, version=checkpoint.VERSION)


def change_values(draw: random.Random, values: Any) -> None:
    """Change or remove one entry of nested JSON. Configurations get no large numbers: sizes are the author's choice."""
    place, inside_config = values, False
    while True:
        key = draw.choice(sorted(place) if isinstance(place, dict) else range(len(place)))
        inside_config = inside_config or key == "config"
        if isinstance(place[key], (dict, list)) and place[key] and draw.random() < 0.85:
            place = place[key]
            continue
        if isinstance(place, dict) and draw.random() < 0.2:
            del place[key]
        else:
            place[key] = draw.choice(WORDS if inside_config else NUMBERS)
        return


def change_bools(draw: random.Random, arrays: dict[str, Any]) -> None:
    """Give an array of bools bytes that are neither 0 nor 1."""
    names = [name for name in sorted(arrays) if arrays[name].dtype == np.bool_ and arrays[name].size]
    if names:
        name = draw.choice(names)
        arrays[name] = np.full(arrays[name].shape, draw.choice([2, 128, 255]), np.uint8).view(np.bool_)


def craft_state(draw: random.Random, slot: Path) -> None:
    """Change the state of a checkpoint: its arrays, or its values."""
    numbers = random_change(draw)

    def change(arrays: dict[str, Any], metadata: dict[str, Any]) -> None:
        how = draw.random()
        if how < 0.4:
            change_values(draw, metadata)
        elif how < 0.5:
            change_bools(draw, arrays)
        else:
            numbers(arrays, copy.deepcopy(metadata))

    change_snapshot(slot / "state", checkpoint.KIND, change)


def craft_replay(draw: random.Random, slot: Path, others: list[Path]) -> None:
    """Exchange a replay of a checkpoint for one of another run, or change it; the state names its new digest."""
    own = draw.choice(sorted(slot.glob("replay-*")))
    if draw.random() < 0.6:
        shutil.rmtree(own)
        shutil.copytree(draw.choice(others), own)
    else:
        crafted(own, slot / "new", random_change(draw))
        shutil.rmtree(own)
        (slot / "new").rename(own)

    def note(arrays: dict[str, Any], metadata: dict[str, Any]) -> None:
        index = int(own.name.removeprefix("replay-"))
        metadata["replays"][index] = xxhash.xxh3_128_hexdigest((own / "manifest.json").read_bytes())

    change_snapshot(slot / "state", checkpoint.KIND, note)


def craft_agent(draw: random.Random, folder: Path) -> None:
    """Change the network that `evaluate` reads."""
    agent = draw.choice(sorted(path.parent for path in folder.rglob("agent/manifest.json")))
    numbers = random_change(draw)

    def change(arrays: dict[str, Any], metadata: dict[str, Any]) -> None:
        if draw.random() < 0.5:
            change_values(draw, metadata)
        else:
            numbers(arrays, copy.deepcopy(metadata))

    change_snapshot(agent, checkpoint.AGENT_KIND, change)


def craft_file(draw: random.Random, folder: Path, victim: Path) -> None:
    """Put something else in the place of a file: a pipe, a folder, a link to a file elsewhere, nonsense."""
    path = draw.choice([path for path in sorted(folder.rglob("*")) if path.is_file()])
    how = draw.choice(["pipe", "folder", "link", "dangling", "empty", "nonsense", "nested"])
    contents = path.read_bytes()
    path.unlink()
    if how == "pipe":
        os.mkfifo(path)
    elif how == "folder":
        path.mkdir()
    elif how in ("link", "dangling"):
        target = victim / f"{draw.randrange(10**9)}"
        if how == "link":
            target.write_bytes(contents)
        path.symlink_to(target)
    else:
        path.write_bytes({"empty": b"", "nonsense": draw.randbytes(200), "nested": b"[" * 100_000}[how])


def contents_of(folder: Path) -> dict[str, bytes]:
    """Return the contents of all files below a folder."""
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def use(draw: random.Random, folder: Path) -> int:
    """Read the folder in every way; return how often it was refused."""
    refused = 0
    run = next(path.parent for path in sorted(folder.rglob("config.json")) or [folder / "config.json"])

    def go_on() -> None:
        with stopping_after(STEPS_MORE), np.errstate(all="ignore"):
            resume(folder, quiet=True, engine=draw.choice(["plain", "auto"]), checkpoint_interval=20)

    def look() -> None:
        agent = Agent(run)
        agent.values(run_environments(agent.config, "look", 2).reset())

    for work in (lambda: checkpoint.newest_replay(folder), look, go_on):
        try:
            with in_time():
                work()
        except (RunError, SnapshotError, FileNotFoundError):
            refused += 1
        except ValueError as error:
            if "finite" not in str(error):  # networks of huge numbers
                raise
    return refused


@contextlib.contextmanager
def limited_memory() -> Iterator[None]:
    """Limit the memory of this process for a while, so that a crafted size does not use up the machine's."""
    limits = resource.getrlimit(resource.RLIMIT_AS)
    in_use = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (in_use + MOST_MEMORY, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)


@limited_memory()
def rounds(draw: random.Random, folder: Path, count: int) -> int:
    """Craft and use `count` folders of each kind; return how many."""
    torch.set_num_threads(1)
    for kind in KINDS:
        good_run(folder / kind, kind)
    replays = [path for kind in KINDS for path in sorted((folder / kind / "checkpoints").glob("*/replay-*"))]
    victim, tried = folder / "victim", 0
    victim.mkdir()
    for _ in range(count):
        for kind in KINDS:
            target = folder / "crafted"
            shutil.rmtree(target, ignore_errors=True)
            shutil.copytree(folder / kind, target)
            slots = sorted((target / "checkpoints").iterdir())
            how = draw.choice(["state", "state", "state", "replay", "agent", "file"])
            try:
                with np.errstate(invalid="ignore"):
                    for slot in slots if how in ("state", "replay") else slots[:1]:
                        if how == "state":
                            craft_state(draw, slot)
                        elif how == "replay":
                            craft_replay(draw, slot, replays)
                        elif how == "agent":
                            craft_agent(draw, target)
                        else:
                            craft_file(draw, target, victim)
            except (TypeError, ValueError):
                continue  # not even a folder can be made of it
            before = contents_of(victim)
            use(draw, target)
            assert contents_of(victim) == before, "a file elsewhere was changed"
            tried += 1
    return tried
