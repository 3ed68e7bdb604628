"""One thread adds, one samples and updates priorities, one saves; nothing tears and nothing locks up."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import gymnasium as gym
import numpy as np
import pytest

from backsweep import EpisodicBackward, Mixture, Prioritized, Replay, Topological

SHAPE = (16, 4)


def look(number: np.ndarray | int) -> np.ndarray:
    """An observation in which every element tells its number: a torn copy would show."""
    return np.broadcast_to(np.asarray(number, np.int32)[..., None, None], (*np.shape(number), *SHAPE)).copy()


def in_threads(enough: Callable[[], bool], *jobs: Callable[[], None]) -> None:
    """Run each job again and again in a thread of its own until it is enough; any error fails the test."""
    stop = threading.Event()
    errors: list[BaseException] = []

    def repeat(job: Callable[[], None]) -> None:
        try:
            while not stop.is_set():
                job()
        except BaseException as error:
            errors.append(error)
            stop.set()

    threads = [threading.Thread(target=repeat, args=(job,), daemon=True) for job in jobs]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + 120
    while not (enough() or stop.wait(0.05)):
        assert time.monotonic() < deadline, "the threads do not get on"
    stop.set()
    for thread in threads:
        thread.join(timeout=60)
        assert not thread.is_alive(), "a thread is stuck"
    if errors:
        raise errors[0]


@pytest.mark.parametrize("num_envs", [1, 4])
def test_adding_sampling_updating_and_saving_at_the_same_time(num_envs: int, tmp_path: Path) -> None:
    sampler = Mixture(
        [(0.4, Topological(shuffle=30)), (0.3, Prioritized()), (0.2, EpisodicBackward()), (0.1, Topological(roots=1))]
    )
    replay = Replay(
        gym.spaces.Box(0, 2**31 - 1, SHAPE, np.int32),
        gym.spaces.Discrete(1000),
        500,
        sampler,
        num_envs=num_envs,
        n_step=2,
        check_autoreset="off",  # these walks end where the next one starts
    )
    lanes = np.arange(num_envs)
    done = {"adds": 0, "batches": 0, "saves": 0}

    def at(t: int) -> np.ndarray:
        """Where the lanes are at time t: they go round 97 states, each from a start of its own."""
        return (t + 17 * lanes) % 97

    def add() -> None:
        t = done["adds"]
        here, there = at(t), at(t + 1)
        arguments = (look(here), here, here * 0.5, look(there), there == 96, there == 50)
        if num_envs == 1:
            arguments = tuple(argument[0] for argument in arguments)  # type: ignore[assignment]
        replay.add(*arguments)
        done["adds"] += 1

    def sample() -> None:
        if not len(replay):
            return
        oldest_before = replay._store.oldest
        batch = replay.sample(32)
        total_after = replay._store.total
        # Live at the moment of sampling, which lies between the two looks.
        assert (batch.row >= oldest_before).all()
        assert (batch.row < total_after).all()
        number = batch.observation[:, 0, 0]
        assert (batch.observation == number[:, None, None]).all()
        after = batch.next_observation[:, 0, 0]
        assert (batch.next_observation == after[:, None, None]).all()
        assert (batch.action == number).all()
        steps = (after - number) % 97
        assert np.isin(steps, [1, 2]).all()
        expected = number * 0.5 + np.where(steps == 2, 0.99 * 0.5 * ((number + 1) % 97), 0.0)
        np.testing.assert_array_equal(batch.reward, expected.astype(np.float32))
        assert (batch.terminated == (after == 96)).all()
        replay.update_priorities(batch.row, batch.reward)
        done["batches"] += 1

    def save() -> None:
        with mock.patch("os.fsync"):
            replay.save(tmp_path)
        loaded = Replay.load(tmp_path)
        if len(loaded):
            loaded.sample(16)
        loaded.stats()
        assert replay.graph.num_vertices <= 97
        replay.nbytes  # noqa: B018
        done["saves"] += 1

    for job in (add, sample, save):  # compiled before the threads meet
        job()
    in_threads(lambda: done["adds"] > 2000 and done["batches"] > 200 and done["saves"] > 10, add, sample, save)
    assert replay.graph.num_vertices == 97


def test_kernels_run_without_the_interpreter_lock() -> None:
    """While one thread is inside a kernel for long, another goes on in Python."""
    replay = Replay(gym.spaces.Box(0, 255, (64, 1024), np.uint8), gym.spaces.Discrete(2), 400)
    frames = np.random.default_rng(0).integers(0, 256, (401, 64, 1024), np.uint8)
    for t in range(400):
        replay.add(frames[t], 0, 0.0, frames[t + 1], False, False)
    rows = np.arange(400)
    replay.read(rows)
    longest_alone = min(_timed(lambda: replay.read(rows)) for _ in range(3))
    ticks: list[float] = []
    stop = threading.Event()

    def tick() -> None:
        while not stop.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0)

    watcher = threading.Thread(target=tick, daemon=True)
    watcher.start()
    inside = 0
    for _ in range(20):
        start = time.perf_counter()
        replay.read(rows)
        end = time.perf_counter()
        middle = [moment for moment in ticks if start + longest_alone / 4 < moment < end - longest_alone / 4]
        inside += bool(middle)
    stop.set()
    watcher.join(timeout=60)
    assert inside > 0


def test_threaded_kernels_leave_torch_the_threads_it_had() -> None:
    pytest.importorskip("torch")
    code = """
import torch
torch.set_num_threads(1)
from backsweep.jit.compilation import most_threads, threads_in_use
assert threads_in_use() == most_threads()
from backsweep.tasks.fleet import FleetEnvironments
FleetEnvironments("nchain-5", {}, [0, 1, 2]).reset()
print(torch.get_num_threads(), threads_in_use() == most_threads())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=False)
    assert done.stdout.split() == ["1", "True"], done.stderr


def _timed(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start
