"""Kill a process that adds, samples and saves, again and again; run as a script by test_kills.py.

A process of its own, because it forks: the tests' process has threads. It prints one JSON object with counts, and
fails with an assertion as soon as a kill leaves anything but the old state or the new one.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path

import numpy as np

from backsweep import EpisodicBackward, Mixture, Prioritized, Replay, Topological
from states import assert_same_batch, assert_same_state, state_of
from strategies import long_stream
from twins.replay import Twin
from worlds import WORLDS

CALLS = 20  # between two saves
SAVED, SAVING = 0, 1
SAMPLER = Mixture([(0.4, Topological(shuffle=20)), (0.35, Prioritized()), (0.25, EpisodicBackward())])


class Life:
    """A replay whose every state follows from the number of saves before it."""

    def __init__(self, replay: Replay, version: int) -> None:
        self.replay = replay
        self.version = version
        self.world = WORLDS["uint8"]

    def live_on(self) -> None:
        """Add, sample and update until the next save is due."""
        steps = [steps[0] for steps in long_stream(self.version, CALLS, 1, states=60, terminals=5)]
        for step in steps:
            if step is not None:
                self.replay.add(
                    self.world.observe(step.observation),  # type: ignore[arg-type]
                    step.action % 7,
                    step.reward,
                    self.world.observe(step.next_observation),  # type: ignore[arg-type]
                    step.terminated,
                    step.truncated,
                )
            if len(self.replay):
                batch = self.replay.sample(5)
                self.replay.update_priorities(batch.row, batch.reward)
        self.version += 1


def in_child(folder: Path, life: Life, writing: int) -> int:
    """Fork a child that lives on and saves until it is killed; return its process id."""
    child = os.fork()
    if child != 0:
        return child
    try:
        life.replay = Replay.load(folder)
        while True:
            tell(writing, life.version, SAVED)
            life.live_on()
            tell(writing, life.version - 1, SAVING)
            life.replay.save(folder)
    finally:
        os._exit(1)


def tell(writing: int, version: int, state: int) -> None:
    """Tell the parent up to which version everything is safely saved, and whether the next save has begun."""
    os.write(writing, (2 * version + state).to_bytes(8, "little"))


def hear(reading: int) -> tuple[int, int] | None:
    """Return what the child told, None if it has told everything and is dead."""
    data = os.read(reading, 8)
    return divmod(int.from_bytes(data, "little"), 2) if data else None


def killed_at_random(folder: Path, rounds: int, seed: int = 3) -> dict[str, int]:
    """SIGKILL a child `rounds` times and compare what it leaves with a replay that was never saved."""
    rng = np.random.default_rng(seed)
    counts = {"rounds": 0, "old": 0, "new": 0, "saves": 0, "in a save": 0}
    mirror = Life(Twin(sampler=SAMPLER, capacity=150, world=WORLDS["uint8"]).replay, 0)
    mirror.live_on()
    mirror.replay.save(folder)
    takes = 0.01  # how long a save takes: learnt on the way, so that kills meet every moment of it
    for _ in range(rounds):
        reading, writing = os.pipe()
        child = in_child(folder, mirror, writing)
        os.close(writing)
        told = hear(reading)
        for _ in range(int(rng.integers(0, 2))):  # a whole turn
            told = hear(reading)
            start = time.perf_counter()
            told = hear(reading)
            takes += 0.2 * (time.perf_counter() - start - takes)
        told = hear(reading)  # the next save begins
        time.sleep(rng.uniform(0, 1.2 * takes))
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        assert os.WTERMSIG(status) == signal.SIGKILL, status
        assert told is not None, "it ended before it was killed"
        done, state = told
        while (told := hear(reading)) is not None:
            done, state = told
        os.close(reading)
        found = Replay.load(folder)
        started_at = mirror.version
        while mirror.version < done:
            mirror.live_on()
        if found._store.total != mirror.replay._store.total:
            mirror.live_on()  # the last save had come through, and the child was killed before it could say so
        assert_same_state(state_of(found), state_of(mirror.replay))
        counts["rounds"] += 1
        counts["in a save"] += state == SAVING
        counts["old" if mirror.version == done else "new"] += 1
        counts["saves"] += mirror.version - started_at
    for _ in range(20):
        assert_same_batch(found.sample(10), mirror.replay.sample(10))
    return counts


if __name__ == "__main__":
    print(json.dumps(killed_at_random(Path(sys.argv[1]), int(sys.argv[2]))))
