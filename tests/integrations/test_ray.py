"""A shared replay on a real Ray cluster of two nodes."""

from __future__ import annotations

import itertools
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

pytest.importorskip("ray", reason="needs ray: make test-integrations installs it")

import ray

from backsweep import GraphValues, Mixture, Prioritized, Replay, Topological, Uniform
from backsweep.integrations.ray import RateLimiter, SharedReplay, SharedReplayError
from backsweep.snapshot import SnapshotError

pytestmark = pytest.mark.filterwarnings("ignore")  # Ray's own
SPACE, ACTIONS = gym.spaces.Box(-1e6, 1e6, (2,), np.float32), gym.spaces.Discrete(3)
SHARD = {"num_cpus": 0}
ON = np.array([1, 0], np.float32)
ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])  # nodes know nothing of the tests


def collect(shared: Any, number: int, steps: int, **options: Any) -> int:
    """Count upwards in two environments, in episodes of seven; return how many rows were acknowledged."""
    with shared.writer(2, name=f"collector {number}", chunk=10, **options) as writer:
        for time in range(steps):
            now = np.array([[time, 2 * number], [time, 2 * number + 1]], np.float32)
            ended = np.array([time % 7 == 6] * 2)
            writer.add(now, [0, 1], [float(time)] * 2, now + ON, ended, ~ended & False)
    return int(writer.acknowledged)


def check(replay: Replay, collectors: int, steps: int) -> None:
    """Every step of every environment is there, once."""
    batch = replay.read(np.arange(replay.oldest, replay.total))
    found = sorted((int(lane), int(time)) for time, lane in batch.observation)
    assert found == sorted(itertools.product(range(2 * collectors), range(steps)))
    assert (batch.reward == batch.observation[:, 0]).all()
    assert (batch.next_observation == batch.observation + ON).all()
    assert (batch.terminated == (batch.observation[:, 0] % 7 == 6)).all()
    assert replay.stats()["episodes_broken_off"] == 0


def test_collectors_on_both_nodes_and_a_learner(cluster: Any, tmp_path: Path) -> None:
    shared = SharedReplay(
        SPACE, ACTIONS, 5_000, Prioritized(), lanes=8, limiter=RateLimiter(min_size=100), actor_options=SHARD
    )
    task = ray.remote(num_cpus=1)(collect)
    running = [task.options(resources={"second": 1} if n % 2 else {}).remote(shared, n, 300) for n in range(4)]
    batches = shared.batches(32, prefetch=2, group=2, timeout=60)
    for _ in range(20):
        batch = next(batches)
        assert (batch.reward == batch.observation[:, 0]).all()
        assert not batch.observation.flags.writeable  # it lies in the object store
        shared.update_priorities(batch.row, np.full(32, 50.0), wait=True)
    batches.close()
    assert ray.get(running) == [600] * 4
    assert len(shared) == 2_400
    (numbers,) = shared.stats()
    assert numbers["largest_priority"] > 10
    assert numbers["writers"] == 0
    shared.save(tmp_path / "save")
    check(Replay.load(tmp_path / "save" / "shard-000" / "replay"), 4, 300)
    shared.close()


@pytest.mark.parametrize("sampler", [Uniform(), Mixture([(0.5, Topological()), (0.5, Prioritized())])], ids=str)
def test_a_killed_shard_comes_back_with_every_acknowledged_row(cluster: Any, tmp_path: Path, sampler: Any) -> None:
    shared = SharedReplay(
        SPACE, ACTIONS, 20_000, sampler, lanes=8, journal=tmp_path / "journal", journal_bytes=100_000,
        actor_options=SHARD,
    )  # fmt: skip
    task = ray.remote(num_cpus=1)(collect)
    running = [task.remote(shared, n, 1_000, in_flight=2) for n in range(2)]
    killed = []
    for rows in (200, 1_000, 2_000):
        while (numbers := shared.stats()[0])["rows_ever"] < rows:
            pass
        killed.append(int(numbers["process"]))
        os.kill(killed[-1], signal.SIGKILL)
    assert ray.get(running) == [2_000, 2_000]
    (numbers,) = shared.stats()
    assert len({*killed, int(numbers["process"])}) == 4
    assert numbers["rows"] == 4_000
    assert len(shared.sample(64, timeout=60)) == 64
    shared.save(tmp_path / "save")
    shared.close()
    check(Replay.load(tmp_path / "save" / "shard-000" / "replay"), 2, 1_000)
    again = SharedReplay.load(tmp_path / "journal", journal=tmp_path / "journal", actor_options=SHARD)
    assert len(again) == 4_000
    again.close()


def test_several_shards_and_a_node_that_dies(cluster: Any, tmp_path: Path) -> None:
    node = cluster.add_node(num_cpus=1, object_store_memory=80 << 20, resources={"third": 10})
    cluster.wait_for_nodes()
    shared = SharedReplay(
        SPACE, ACTIONS, 9_000, Prioritized(), shards=2, lanes=8, journal=tmp_path / "journal",
        actor_options={"num_cpus": 0},
    )  # fmt: skip
    # A shard on the node that is going to die; Ray starts it again on one of the others.
    strategy = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(node.node_id, soft=True)
    moved = SharedReplay(
        SPACE, ACTIONS, 9_000, journal=tmp_path / "moved", actor_options={**SHARD, "scheduling_strategy": strategy}
    )
    writers = [shared.writer(1, chunk=5) for _ in range(4)]
    for writer, time in itertools.product(writers, range(20)):
        now = np.array([time, 0], np.float32)
        writer.add(now, 0, float(time), now + 1, False, False)
    for writer in writers:
        writer.close()
    assert [numbers["rows"] for numbers in shared.stats()] == [40, 40]
    first, second = shared.sample(8), shared.sample(8)
    assert set((first.row % 2).tolist()) == {0}
    assert set((second.row % 2).tolist()) == {1}
    rows = np.concatenate([first.row, second.row])
    shared.update_priorities(rows, np.full(16, 100.0), wait=True)
    assert all(numbers["largest_priority"] > 10 for numbers in shared.stats())
    shared.close()

    with moved.writer(1, name="it", chunk=5, in_flight=1) as writer:
        for time in range(200):
            now = np.array([time, 0], np.float32)
            writer.add(now, 0, float(time), now + 1, False, False)
            if time == 100:
                cluster.remove_node(node)
    assert writer.acknowledged == 200
    assert moved.stats()[0]["rows"] == 200
    moved.close()


def test_rows_come_from_the_whole_and_planning_reaches_every_shard(cluster: Any) -> None:
    space = gym.spaces.Discrete(10)
    shared = SharedReplay(space, ACTIONS, 100, Uniform(), values=GraphValues(), shards=2, lanes=2, actor_options=SHARD)
    for shard in range(2):
        with shared.writer(shard=shard) as writer:
            for state in range(9):
                writer.add(state, 0, float(state == 8), state + 1, state == 8, False)
    renewals = shared.renew_values(lambda states: np.zeros((len(states), 3)))
    assert len(renewals) == 2
    for _ in range(2):
        batch = shared.sample(9)
        assert batch.target == pytest.approx(0.99 ** (8 - batch.observation.astype(float)))
    shared.close()


def test_a_vector_environment_says_how_it_resets(cluster: Any) -> None:
    envs = gym.make_vec("CartPole-v1", num_envs=3, vectorization_mode="sync")
    shared = SharedReplay(
        envs.single_observation_space, envs.single_action_space, 1_000, Topological(), actor_options=SHARD
    )
    observation, _ = envs.reset(seed=0)
    envs.action_space.seed(0)
    with shared.writer_for(envs, check_autoreset="refuse") as writer:
        for _ in range(100):
            action = envs.action_space.sample()
            following, reward, terminated, truncated, _ = envs.step(action)
            writer.add(observation, action, reward, following, terminated, truncated)
            observation = following
    envs.close()
    batch = shared.sample(200)
    outside = (np.abs(batch.next_observation[:, [0, 2]]) > [2.4, 0.2095]).any(axis=1)
    assert (outside == batch.terminated).all()
    assert not (np.abs(batch.observation[:, [0, 2]]) > [2.4, 0.2095]).any()
    shared.close()


def test_errors_say_what_to_do(cluster: Any, tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="autoreset belongs to a writer"):
        SharedReplay(SPACE, ACTIONS, autoreset="next_step")
    with pytest.raises(ValueError, match="capacity must be 1 or more, got 0"):
        SharedReplay(SPACE, ACTIONS, 0)
    with pytest.raises(ValueError, match="min_size must be at most the capacity, 10, got 20"):
        SharedReplay(SPACE, ACTIONS, 10, lanes=2, limiter=RateLimiter(min_size=20))
    with pytest.raises(ValueError, match=r"capacity must be at least shards \* lanes = 4 \* 64.*, got 100"):
        SharedReplay(SPACE, ACTIONS, 100, shards=4)
    with pytest.raises(SnapshotError, match="Name a folder that SharedReplay saved to"):
        SharedReplay.load(tmp_path / "nothing")
    shared = SharedReplay(SPACE, ACTIONS, 100, lanes=2, journal=tmp_path / "journal", actor_options=SHARD)
    with pytest.raises(ValueError, match=r"already holds a shared replay; continue it with SharedReplay\.load"):
        SharedReplay(SPACE, ACTIONS, 100, journal=tmp_path / "journal")
    with pytest.raises(TimeoutError, match="0 rows are stored"):
        shared.sample(4, timeout=0.1)
    writer = shared.writer(2)
    with pytest.raises(ValueError, match="reward must be finite"):
        writer.add([[0, 0]] * 2, [0, 0], [np.nan, 0.0], [[0, 0]] * 2, [False] * 2, [False] * 2)
    with pytest.raises(ValueError, match="at most the 0 lanes of this shard that are free"):
        shared.writer()
    with pytest.raises(TypeError, match="either td_error or priority"):
        shared.update_priorities([0])
    with pytest.raises(ValueError, match="td_error must have an entry for each of 2 rows"):
        shared.update_priorities([0, 1], [1.0])
    with pytest.raises(ValueError, match="row must hold serial numbers"):
        shared.update_priorities([5], [1.0], wait=True)
    writer.close()
    with pytest.raises(SharedReplayError, match="is closed"):
        writer.add(
            np.zeros((2, 2), np.float32), [0, 0], [0.0, 0.0], np.zeros((2, 2), np.float32), [False] * 2, [False] * 2
        )
    shared.close()
    with pytest.raises(SharedReplayError, match="the shared replay was closed"):
        shared.sample(4)
    bare = SharedReplay(SPACE, ACTIONS, 100, actor_options=SHARD)
    os.kill(int(bare.stats()[0]["process"]), signal.SIGKILL)
    with pytest.raises(SharedReplayError, match="its rows were only in memory"):
        all(bare.stats() for _ in range(1_000))


def test_a_limiter_holds_writers_back_until_somebody_samples(cluster: Any) -> None:
    limiter = RateLimiter(min_size=50, samples_per_insert=2.0, error_buffer=100.0)
    shared = SharedReplay(SPACE, ACTIONS, 5_000, limiter=limiter, actor_options=SHARD)
    done: list[int] = []
    writing = threading.Thread(target=lambda: done.append(collect(shared, 0, 500, in_flight=1)))
    writing.start()
    batches = shared.batches(50, prefetch=1, timeout=60)
    while writing.is_alive():
        next(batches)
    writing.join()
    batches.close()
    (numbers,) = shared.stats()
    assert done == [1_000]
    # Off by no more than the buffer, a chunk and the batches that were asked for when it ended.
    assert numbers["rows_drawn"] == pytest.approx(2.0 * (1_000 - 50), abs=100 + 2 * 20 + 100)
    shared.close()


def test_a_start_that_fails_says_why_and_leaves_nothing(cluster: Any, tmp_path: Path) -> None:
    limiter = RateLimiter(min_size=5, samples_per_insert=4.0)
    shared = SharedReplay(SPACE, ACTIONS, 100, shards=2, lanes=4, limiter=limiter, actor_options=SHARD)
    shared.save(tmp_path / "good")
    shared.save(tmp_path / "bad")
    shared.close()
    for path in (tmp_path / "bad" / "shard-001").rglob("*"):
        if path.is_file() and path.name != "manifest.json":  # which is read before the shards start
            path.write_bytes(b"damaged")
    journal = tmp_path / "journal"
    with pytest.raises(SharedReplayError, match=r"a shard could not start: .*SnapshotError"):
        SharedReplay.load(tmp_path / "bad", journal=journal, actor_options=SHARD)
    assert not list(journal.glob("*"))
    again = SharedReplay.load(tmp_path / "good", journal=journal, actor_options=SHARD)
    again.close()
    assert SharedReplay.load(journal, journal=journal, actor_options=SHARD)._limiter == limiter
    (journal / "shared.json").unlink()
    with pytest.raises(ValueError, match="holds parts of a shared replay that never started"):
        SharedReplay(SPACE, ACTIONS, 100, shards=2, lanes=4, journal=journal, actor_options=SHARD)


def test_priorities_reported_before_the_end_are_updated(cluster: Any, tmp_path: Path) -> None:
    shared = SharedReplay(SPACE, ACTIONS, 100, Prioritized(), lanes=2, journal=tmp_path, actor_options=SHARD)
    collect(shared, 0, 20)
    shared.update_priorities(np.arange(8), np.full(8, 50.0))
    reported = list(shared._reported.values())
    shared.close()
    assert ray.get(reported) == [None]


def test_an_error_next_to_the_environments_frees_the_lanes(cluster: Any) -> None:
    shared = SharedReplay(SPACE, ACTIONS, 100, lanes=2, actor_options=SHARD)
    for _ in range(3):
        with pytest.raises(ZeroDivisionError), shared.writer(2):
            raise ZeroDivisionError
    (numbers,) = shared.stats()
    assert numbers["writers"] == 0
    shared.close()


def test_batches_that_nobody_received_do_not_count(cluster: Any) -> None:
    limiter = RateLimiter(min_size=10, samples_per_insert=1.0, error_buffer=1_000.0)
    shared = SharedReplay(SPACE, ACTIONS, 1_000, lanes=2, limiter=limiter, actor_options=SHARD)
    collect(shared, 0, 50)
    for _ in range(3):
        batches = shared.batches(10, prefetch=4, timeout=60)
        next(batches)
        batches.close()
    for _ in range(100):
        (numbers,) = shared.stats()
        if numbers["rows_drawn"] == 30:
            break
    assert numbers["rows_drawn"] == 30
    shared.close()
