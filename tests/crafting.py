"""Saves that somebody made up: whole folders with good checksums and contents that backsweep never writes."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from backsweep import EpisodicBackward, GraphValues, Mixture, Prioritized, Replay, Topological
from backsweep.saving import KIND, VERSION
from backsweep.snapshot import read_snapshot, write_snapshot

Arrays = dict[str, NDArray[Any]]
Craft = Callable[[Arrays, dict[str, Any]], None]
CAPACITY = 60
STATES = 40  # so many that most come and go
SPACES: dict[str, gym.Space[Any]] = {
    "bytes": gym.spaces.Box(0, 255, (8,), np.uint8),
    "floats": gym.spaces.Box(-50.0, 50.0, (2,), np.float32),
    "discrete": gym.spaces.Discrete(STATES),
    "stacks": gym.spaces.Box(0, 255, (2, 8), np.uint8),
}


def observation(kind: str, number: int) -> Any:
    """Return one of the observations."""
    if kind == "discrete":
        return number % STATES
    if kind == "floats":
        return np.array([number % STATES, (number % STATES) / 4], np.float32)
    if kind == "stacks":
        return np.stack([np.full(8, number % STATES, np.uint8), np.full(8, (number + 1) % STATES, np.uint8)])
    return np.full(8, number % STATES, np.uint8)


def drive(replay: Replay, kind: str, rows: int, seed: int, plans: bool = True) -> None:
    """Add rows, sample and update: enough for everything that is stored to be used and overwritten."""
    draw = random.Random(seed)
    number = draw.randrange(STATES)
    for step in range(rows):
        following = number + draw.choice([1, 1, 1, 5])
        ends = draw.random() < 0.15
        terminated = ends and draw.random() < 0.6
        replay.add(
            observation(kind, number),
            draw.randrange(3),
            float(step % 5),
            observation(kind, following),
            terminated,
            ends and not terminated,
        )
        number = draw.randrange(STATES) if ends else following
        if step % 4 == 3:
            batch = replay.sample(8)
            replay.update_priorities(batch.row, batch.reward - 1.0)
            replay.episode(int(batch.row[0]))
        if plans and step % 3 == 2:
            assert 0 <= replay.explore(observation(kind, number), step / rows) < 3
        if plans and step % 16 == 15:
            replay.renew_values(
                lambda seen: np.zeros((len(next(iter(seen.values())) if isinstance(seen, dict) else seen), 3))
            )


def good_save(folder: Path, kind: str, rows: int = 150, seed: int = 0) -> None:
    """Save a replay with something in every one of its arrays."""
    filled_replay(kind, rows, seed).save(folder)


def filled_replay(kind: str, rows: int = 150, seed: int = 0) -> Replay:
    """Return a replay with something in every one of its arrays."""
    sampler = Mixture(
        [
            (0.4, Topological(shuffle=9)),
            (0.3, Prioritized()),
            (0.2, EpisodicBackward()),
            (0.1, Topological(stitch=False)),
        ]
    )
    replay = Replay(
        SPACES[kind],
        gym.spaces.Discrete(3),
        CAPACITY,
        sampler,
        values=GraphValues(),
        frame_stack=2 if kind == "stacks" else 1,
        seed=seed,
    )
    drive(replay, kind, rows, seed)
    return replay


def crafted(source: Path, target: Path, change: Craft) -> None:
    """Write a save to `target` that is the one in `source` but for a change, with good checksums."""
    snapshot = read_snapshot(source, kind=KIND, versions={VERSION})
    arrays, metadata = dict(snapshot.arrays), copy.deepcopy(snapshot.metadata)
    change(arrays, metadata)
    write_snapshot(target, arrays, metadata, kind=KIND, version=VERSION)


def random_change(draw: random.Random) -> Craft:
    """Return a change to one or a few numbers of an array, to its length, or to the settings."""

    def change(arrays: Arrays, metadata: dict[str, Any]) -> None:
        how = draw.random()
        if how < 0.1:
            _change_metadata(draw, metadata)
            return
        name = draw.choice(sorted(arrays))
        array = arrays[name] = arrays[name].copy()
        if how < 0.2 or not array.size:
            length = draw.choice([0, 1, len(array) // 2, len(array) + 1, 2 * len(array) + 3])
            arrays[name] = np.resize(array, (length, *array.shape[1:]))
            return
        if how < 0.23:
            arrays[name] = array.astype(draw.choice([np.int8, np.int32, np.int64, np.float32, np.float64, np.uint64]))
            return
        flat = array.reshape(-1)
        if how < 0.3:
            draw_from = np.random.default_rng(draw.randrange(2**32))
            draw_from.shuffle(flat)
            return
        if how < 0.45 and len(array) > 1 and array.dtype.kind in "iu":
            change_two(draw, array.reshape(len(array), -1))
            return
        for _ in range(draw.choice([1, 1, 1, 2, 5])):
            place = draw.randrange(flat.size)
            flat[place] = _number(draw, flat[place])

    return change


def change_two(draw: random.Random, table: NDArray[Any]) -> None:
    """Change two numbers of one column so that their sum stays: one more and one less, or swapped."""
    column = table[:, draw.randrange(table.shape[1])]
    first, second = draw.sample(range(len(column)), 2)
    if draw.random() < 0.5:
        column[[first, second]] = column[[second, first]]
        return
    with np.errstate(over="ignore"):
        column[first] += column.dtype.type(1)
        column[second] -= column.dtype.type(1)


def _number(draw: random.Random, was: Any) -> Any:
    kind = was.dtype.kind
    if kind == "b":
        return not was
    if kind == "f":
        return was.dtype.type(draw.choice([np.nan, np.inf, -np.inf, 0.0, -1.0, 1e300, 1e-300, float(was) + 1.0]))
    limits = np.iinfo(was.dtype)
    number = draw.choice(
        [-1, 0, 1, int(was) + 1, int(was) - 1, 2 * int(was) + 1, limits.max, limits.min, 59, 60, 61, 1000]
    )
    return was.dtype.type(min(max(number, limits.min), limits.max))


def _change_metadata(draw: random.Random, metadata: dict[str, Any]) -> None:
    place: Any = metadata
    while True:
        key = draw.choice(sorted(place) if isinstance(place, dict) else range(len(place)))
        if isinstance(place[key], (dict, list)) and place[key] and draw.random() < 0.8:
            place = place[key]
            continue
        if isinstance(place, dict) and draw.random() < 0.3:
            del place[key]
        else:
            place[key] = draw.choice(
                [None, True, -1, 0, 1, 7, 10**6, 10**15, 2**70, 0.5, -1.5, 1e300, "x", [], {}, [1, 2]]
            )
        return
