"""A shard of a shared replay by itself: its limiter, its writers, and what is left of it after a crash."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("ray", reason="needs ray: make test-integrations installs it")

from backsweep import Prioritized, Replay
from backsweep.integrations.ray import RateLimiter
from backsweep.integrations.ray.limiter import LiveLimiter
from backsweep.integrations.ray.shard import Shard
from backsweep.integrations.ray.storage import REPLAY, journals_in
from backsweep.replay.chunks import ChunkBuilder
from backsweep.snapshot import SnapshotError

SPACE, ACTIONS = gym.spaces.Box(-1e6, 1e6, (2,), np.float32), gym.spaces.Discrete(3)
LONG = 1 << 30


def shard_in(folder: Path | None, limiter: RateLimiter | None = None, **more: Any) -> Shard:
    given: dict[str, Any] = {"source": None, "sync": False, "journal_bytes": LONG, "lanes": 4, **more}
    options = {
        "observation_space": SPACE,
        "action_space": ACTIONS,
        "capacity": 500,
        "sampler": Prioritized(),
        "num_envs": given.pop("lanes"),
        "check_autoreset": "off",
    }
    place = None if folder is None else str(folder)
    return Shard(options, limiter or RateLimiter(), 1, place, **given)


def chunks(first: int, count: int, steps: int = 5) -> Iterator[dict[str, Any]]:
    """Steps of one environment that counts, in episodes of seven."""
    builder = ChunkBuilder(SPACE, ACTIONS, steps=steps)
    for time in range(first, first + count * steps):
        now, following = np.array([time, 0], np.float32), np.array([time + 1, 0], np.float32)
        builder.add(now, time % 3, float(time), following, time % 7 == 6, False)
        if builder.full:
            chunk = builder.take()
            assert chunk is not None
            yield chunk.arrays()


def now(call: Coroutine[Any, Any, Any]) -> Any:
    """Carry out a call that has nothing to wait for."""
    return asyncio.run(asyncio.wait_for(call, 30))


def fill(shard: Shard, count: int, name: str = "one", first: int = 0) -> None:
    _, turn = shard.register(name, 1)
    for sequence, arrays in enumerate(chunks(first, count), 1):
        now(shard.add(name, turn, sequence, arrays))


def rewards(shard: Shard) -> list[float]:
    replay = shard._replay
    return replay.read(np.arange(replay.oldest, replay.total)).reward.tolist()


def crashed(shard: Shard) -> None:
    """Let go of the folder as a killed process does: nothing else is written."""
    assert shard._folder is not None
    shard._folder.close()


# -- what is left after a crash -----------------------------------------------------------------------------------


def test_a_restarted_shard_has_every_acknowledged_row_and_knows_its_writers(tmp_path: Path) -> None:
    shard = shard_in(tmp_path / "shard")
    lanes, turn = shard.register("one", 1)
    sent = list(chunks(0, 4))
    for sequence, arrays in enumerate(sent[:3], 1):
        assert now(shard.add("one", turn, sequence, arrays)) == 5 * sequence
    now(shard.sample(10, None))
    now(shard.add("one", turn, 4, sent[3]))
    crashed(shard)
    again = shard_in(tmp_path / "shard")
    assert rewards(again) == list(range(20))
    assert again._replay.stats()["episodes"] == 3
    assert again.stats()["rows_drawn"] == 10
    # A call that was carried out and not answered comes again, and is not carried out again.
    assert now(again.add("one", turn, 4, sent[3])) == 20
    assert now(again.add("one", turn, 5, next(chunks(20, 1)))) == 25
    assert again._senders["one"].lanes.tolist() == lanes
    assert rewards(again) == list(range(25))
    assert again._replay.stats()["episodes"] == 4  # the fourth goes on where it was


@given(cut=st.integers(0, 3_000), saves=st.sets(st.integers(1, 6), max_size=2))
def test_a_crash_at_any_byte_loses_only_what_was_not_acknowledged(cut: int, saves: set[int]) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr("warnings.warn", lambda *_, **__: None)
        place = Path(folder) / "shard"
        shard = shard_in(place)
        _, turn = shard.register("one", 1)
        ends = {0: 0}  # acknowledged rows by the length of the newest journal
        for sequence, arrays in enumerate(chunks(0, 6), 1):
            now(shard.add("one", turn, sequence, arrays))
            if sequence in saves:
                shard.checkpoint()
                ends = {0: shard._replay.total}
            ends[shard.stats()["journal_bytes"]] = shard._replay.total  # type: ignore[index]
        crashed(shard)
        (journal,) = journals_in(place)
        data = journal.read_bytes()
        journal.write_bytes(data[: min(cut, len(data))])
        expected = max(rows for end, rows in ends.items() if end <= min(cut, len(data)))
        again = shard_in(place)
        assert rewards(again) == list(range(expected))
        again.checkpoint()
        fill(again, 1, "two", first=expected)
        crashed(again)
        assert rewards(shard_in(place)) == list(range(expected + 5))


def test_a_crash_between_the_steps_of_a_save_does_no_harm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shard = shard_in(tmp_path / "shard")
    fill(shard, 3)
    shutil.copytree(tmp_path / "shard", tmp_path / "copy")
    shard.checkpoint()
    fill(shard, 1, "two", first=15)
    crashed(shard)
    # The new save with the old journal: as if killed before a new one was begun.
    for path in journals_in(tmp_path / "shard"):
        path.unlink()
    for path in journals_in(tmp_path / "copy"):
        shutil.copy(path, tmp_path / "shard")
    again = shard_in(tmp_path / "shard")
    assert rewards(again) == list(range(15))
    assert again._senders["one"].sequence == 3


def test_a_long_journal_is_begun_anew(tmp_path: Path) -> None:
    shard = shard_in(tmp_path / "shard", journal_bytes=2_000)
    fill(shard, 30)
    assert shard.stats()["journal_bytes"] <= 2_000
    assert len(journals_in(tmp_path / "shard")) == 1
    crashed(shard)
    assert rewards(shard_in(tmp_path / "shard")) == list(range(150))
    assert Replay.load(tmp_path / "shard" / REPLAY).total > 100


def test_damage_is_refused_and_said(tmp_path: Path) -> None:
    shard = shard_in(tmp_path / "shard")
    fill(shard, 3)
    crashed(shard)
    (journal,) = journals_in(tmp_path / "shard")
    data = bytearray(journal.read_bytes())
    data[len(data) // 2] ^= 1
    journal.write_bytes(data)
    with pytest.raises(SnapshotError, match="not as it was written"):
        shard_in(tmp_path / "shard")


def test_only_one_process_has_a_shard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shard = shard_in(tmp_path / "shard")
    monkeypatch.setattr("backsweep.integrations.ray.storage.PATIENCE", 0.3)
    with pytest.raises(SnapshotError, match="another writer"):
        shard_in(tmp_path / "shard")
    crashed(shard)
    shard_in(tmp_path / "shard")


def test_a_full_disk_is_said_and_a_save_brings_it_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shard = shard_in(tmp_path / "shard")
    _, turn = shard.register("one", 1)
    first, second, third = chunks(0, 3)
    now(shard.add("one", turn, 1, first))

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("backsweep.snapshot.journal.Journal.append", full)
    with pytest.raises(OSError, match="No space left"):
        now(shard.add("one", turn, 2, second))
    with pytest.raises(OSError, match="No space left"):
        now(shard.add("one", turn, 3, third))
    assert len(now(shard.sample(4, None))) == 4
    monkeypatch.undo()
    shard.checkpoint()
    now(shard.add("one", turn, 3, third))
    crashed(shard)
    assert rewards(shard_in(tmp_path / "shard")) == list(range(15))


def test_a_save_elsewhere_is_whole(tmp_path: Path) -> None:
    shard = shard_in(None)
    fill(shard, 4)
    now(shard.sample(12, None))
    shard.save(str(tmp_path / "save"))
    fill(shard, 1, "two", first=20)
    again = shard_in(None, source=str(tmp_path / "save"))
    assert rewards(again) == list(range(20))
    assert again.stats()["rows_drawn"] == 12
    assert again.stats()["writers"] == 0
    assert rewards(shard) == list(range(25))


# -- writers ------------------------------------------------------------------------------------------------------


def test_chunks_wait_for_the_ones_before_them() -> None:
    shard = shard_in(None)
    _, turn = shard.register("one", 1)
    first, second, third = chunks(0, 3)

    async def out_of_order() -> None:
        calls = [shard.add("one", turn, number, arrays) for number, arrays in ((3, third), (2, second), (1, first))]
        await asyncio.gather(*calls)

    now(out_of_order())
    assert rewards(shard) == list(range(15))


def test_lanes_run_out_and_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    shard = shard_in(None)
    _, turn = shard.register("one", 3)
    with pytest.raises(ValueError, match="num_envs must be at most the 1 lanes of this shard that are free, got 2"):
        shard.register("two", 2)
    shard.unregister("one", turn + 1)  # of another turn: nothing of its
    assert shard.stats()["writers"] == 1
    shard.unregister("one", turn)
    assert shard.register("two", 4)[0] == [0, 1, 2, 3]
    monkeypatch.setattr("backsweep.integrations.ray.shard.FORGET_AFTER", 0.0)
    assert shard.register("three", 2)[0] == [0, 1]
    with pytest.raises(ValueError, match="the writer 'two' has lost its lanes"):
        now(shard.add("two", 1, 1, next(chunks(0, 1))))


def test_a_writer_of_the_same_name_takes_over() -> None:
    shard = shard_in(None)
    fill(shard, 2)
    before = shard._senders["one"]
    lanes, turn = shard.register("one", 1)
    assert (lanes, turn) == (before.lanes.tolist(), 2)
    with pytest.raises(ValueError, match="has lost its lanes"):
        now(shard.add("one", 1, 3, next(chunks(10, 1))))
    now(shard.add("one", 2, 1, next(chunks(10, 1))))
    assert rewards(shard) == list(range(15))


def test_late_chunks_of_a_writer_that_left_are_recognised(tmp_path: Path) -> None:
    shard = shard_in(tmp_path / "shard")
    for expected in (1, 2):
        _, turn = shard.register("one", 1)
        assert turn == expected
        shard.unregister("one", turn)
    crashed(shard)
    again = shard_in(tmp_path / "shard")
    assert again.register("one", 1)[1] == 3
    with pytest.raises(ValueError, match="has lost its lanes"):
        now(again.add("one", 2, 1, next(chunks(0, 1))))


def test_a_writer_that_waits_keeps_its_lanes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("backsweep.integrations.ray.shard.FORGET_AFTER", 0.0)
    shard = shard_in(None, RateLimiter(min_size=5, samples_per_insert=1.0, error_buffer=1.0), lanes=1)
    _, turn = shard.register("one", 1)

    async def play() -> None:
        sent = list(chunks(0, 3))
        waiting = [asyncio.create_task(shard.add("one", turn, n, arrays)) for n, arrays in enumerate(sent, 1)]
        await asyncio.sleep(0.01)
        assert not waiting[-1].done()
        with pytest.raises(ValueError, match="num_envs must be at most the 0 lanes"):
            shard.register("two", 1)
        while not waiting[-1].done():
            await shard.sample(10, None)
            await asyncio.sleep(0)

    now(play())
    assert shard.register("two", 1)[0] == [0]


# -- the limiter --------------------------------------------------------------------------------------------------


@given(
    min_size=st.integers(1, 50),
    ratio=st.floats(0.1, 20),
    buffer=st.floats(0.5, 100),
    chunk=st.integers(1, 30),
    batch=st.integers(1, 60),
    choices=st.lists(st.booleans(), min_size=50, max_size=200),
)
def test_the_limiter_keeps_the_ratio_and_never_stops_both(
    min_size: int, ratio: float, buffer: float, chunk: int, batch: int, choices: list[bool]
) -> None:
    limiter = RateLimiter(min_size, ratio, buffer).share(1)
    for insert in choices:
        may_insert, may_sample = limiter.may_insert(), limiter.may_sample(limiter.inserted)
        assert may_insert or may_sample
        if (insert or not may_sample) and may_insert:
            limiter.inserted += chunk
        else:
            limiter.sampled += batch
            assert limiter.inserted >= min_size
        # Off by no more than the buffer and the one chunk or batch that crossed its edge.
        if limiter.inserted > min_size + chunk:
            assert -buffer - batch <= limiter.surplus <= buffer + ratio * chunk


def test_shards_share_a_limiter() -> None:
    whole = RateLimiter(min_size=1_000, samples_per_insert=4.0, error_buffer=100.0)
    assert whole.share(4) == LiveLimiter(250, 4.0, 25.0)
    assert RateLimiter(min_size=1_000, samples_per_insert=4.0).share(1).buffer == 400.0
    assert RateLimiter(min_size=1, samples_per_insert=4.0).share(1).buffer == 40.0
    assert RateLimiter(min_size=7).share(2) == LiveLimiter(4, 0.0, float("inf"))


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"min_size": 0}, "min_size must be an int of 1 or more, got 0"),
        ({"samples_per_insert": -1.0}, "samples_per_insert must be above 0, got -1.0"),
        ({"samples_per_insert": 1.0, "error_buffer": float("nan")}, "error_buffer must be above 0, got nan"),
        ({"error_buffer": 2.0}, "error_buffer needs samples_per_insert"),
    ],
)
def test_a_limiter_refuses_what_makes_no_sense(options: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        RateLimiter(**options)


def test_sampling_waits_for_rows_and_writing_for_samples() -> None:
    shard = shard_in(None, RateLimiter(min_size=10, samples_per_insert=2.0, error_buffer=10.0))
    _, turn = shard.register("one", 1)
    sent = list(chunks(0, 8))

    async def play() -> list[str]:
        done: list[str] = []

        async def sample(label: str) -> None:
            await shard.sample(10, None)
            done.append(label)

        async def add() -> None:
            for sequence, arrays in enumerate(sent, 1):
                await shard.add("one", turn, sequence, arrays)
                done.append(f"chunk {sequence}")

        early = asyncio.create_task(sample("first"))
        await asyncio.sleep(0)
        adding = asyncio.create_task(add())
        await early
        while shard._limiter.may_insert():
            await asyncio.sleep(0)
        assert not adding.done()
        while not adding.done():
            await sample("later")
            await asyncio.sleep(0)
        return done

    done = now(play())
    assert "first" not in done[:2]  # which take two chunks to be allowed
    assert shard.stats()["rows_ever"] == 40
    assert shard.stats()["rows_drawn"] >= 2 * (40 - 10) - 10 - 10


def test_waiting_for_too_long_says_what_for() -> None:
    shard = shard_in(None, RateLimiter(min_size=20, samples_per_insert=1.0, error_buffer=5.0))
    with pytest.raises(TimeoutError, match=r"no batch within 0\.05 s: 0 rows are stored and min_size=20 are needed"):
        now(shard.sample(4, 0.05))
    fill(shard, 4)
    now(shard.sample(20, 0.05))
    with pytest.raises(TimeoutError, match=r"20 rows were sampled and 20 inserted.*collectors are behind"):
        now(shard.sample(4, 0.05))


def test_batches_that_nobody_received_do_not_count() -> None:
    shard = shard_in(None)
    fill(shard, 4)
    batches = [now(shard.sample(8, None)) for _ in range(3)]
    shard.not_used(batches[1:])
    assert shard.stats()["rows_drawn"] == 8
    other = shard_in(None)  # as after a restart, which forgets what was sampled since the last chunk
    other.not_used(batches)
    assert other.stats()["rows_drawn"] == 0
