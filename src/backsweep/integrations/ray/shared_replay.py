"""A replay that many processes fill and sample, on one machine or several."""

from __future__ import annotations

import contextlib
import os
import shutil
import uuid
import zlib
from collections import deque
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import ray
from numpy.typing import ArrayLike

from backsweep.integrations.ray.limiter import RateLimiter
from backsweep.integrations.ray.shard import Shard
from backsweep.integrations.ray.shared_folder import (
    BUILDER_OPTIONS,
    DESCRIPTION,
    describe,
    described,
    settings_of,
    shard_folder,
)
from backsweep.integrations.ray.writer import Writer, answer, answers
from backsweep.replay import Replay
from backsweep.replay.argument_checks import checked_rows, positive_int
from backsweep.replay.autoreset import Check, Mode, options_of_envs
from backsweep.replay.chunks import ChunkBuilder
from backsweep.samplers import Sampler
from backsweep.store.layout import host_array
from backsweep.types import Batch

NOT_FOR_SHARDS = ("num_envs", "autoreset", "check_autoreset")


class SharedReplay:
    """A replay in one or more Ray actors (shards). It can be passed to other tasks and actors.

    Parameters
    ----------
    observation_space, action_space, capacity, sampler
        As for `Replay`; the shards share the capacity.
    shards
        Number of actors. Each writer uses one of them, and each batch comes from one of them.
    lanes
        Number of environments that may write to a shard at the same time.
    limiter
        How many rows must be stored before the first batch, and how often each is sampled.
    journal
        Folder to which shards write acknowledged rows, so that a killed shard restarts with all of them. With several
        machines it must be a shared folder. None: rows are only in memory.
    sync
        Whether rows are forced to the disk before they are acknowledged: they then survive a crash of the machine,
        and otherwise only of the process.
    journal_bytes
        Size of a journal at which a shard saves its replay and starts a new one.
    actor_options
        Ray's options for the shards, such as ``{"num_cpus": 1}`` or ``{"scheduling_strategy": "SPREAD"}``.
    seed
        Each shard derives its own stream from it.
    options
        Other arguments of `Replay`.

    Examples
    --------
    >>> shared = SharedReplay(env.observation_space, env.action_space, 100_000)  # doctest: +SKIP
    >>> with shared.writer(num_envs=8) as writer:  # doctest: +SKIP
    ...     writer.add(observation, action, reward, next_observation, terminated, truncated)
    >>> batch = shared.sample(64)  # doctest: +SKIP
    """

    def __init__(
        self,
        observation_space: gym.Space[Any],
        action_space: gym.Space[Any],
        capacity: int = 1_000_000,
        sampler: Sampler | None = None,
        *,
        shards: int = 1,
        lanes: int = 64,
        limiter: RateLimiter | None = None,
        journal: str | os.PathLike[str] | None = None,
        sync: bool = False,
        journal_bytes: int = 256 << 20,
        actor_options: dict[str, Any] | None = None,
        seed: int = 0,
        **options: Any,
    ) -> None:
        count = positive_int("shards", shards)
        for name in NOT_FOR_SHARDS:
            if name in options:
                raise TypeError(f"{name} belongs to a writer: shared.writer({name}=...)")
        whole: dict[str, Any] = {
            **options,
            "observation_space": observation_space,
            "action_space": action_space,
            "capacity": -(-positive_int("capacity", capacity) // count),
            "sampler": sampler,
            "num_envs": positive_int("lanes", lanes),
            "check_autoreset": "off",
        }
        if whole["capacity"] < lanes:
            raise ValueError(
                f"capacity must be at least shards * lanes = {count} * {lanes}, since each shard has a part of it and "
                f"each lane a row, got {capacity}"
            )
        Replay(**{**whole, "file": None})  # invalid options raise here rather than in the shards
        if limiter is not None and limiter.min_size > capacity:
            raise ValueError(f"limiter: min_size must be at most the capacity, {capacity}, got {limiter.min_size}")
        folder = None if journal is None else Path(journal)
        if folder is not None and (folder / DESCRIPTION).exists():
            raise ValueError(
                f"journal: {folder} already holds a shared replay; continue it with "
                f"SharedReplay.load({str(folder)!r}, journal={str(folder)!r}), or name an empty folder"
            )
        each = [{**whole, "seed": seed * count + shard} for shard in range(count)]
        self._start(each, limiter, folder, None, sync, journal_bytes, actor_options)

    @classmethod
    def load(
        cls,
        folder: str | os.PathLike[str],
        *,
        journal: str | os.PathLike[str] | None = None,
        limiter: RateLimiter | None = None,
        sampler: Sampler | None = None,
        encoder: Any = None,
        sync: bool = False,
        journal_bytes: int = 256 << 20,
        actor_options: dict[str, Any] | None = None,
    ) -> SharedReplay:
        """Return the shared replay that was saved in a folder, or whose journal is there.

        Parameters
        ----------
        folder
            Not changed, unless it is also the `journal`.
        journal
            Folder of the journal, as for a new shared replay.
        sampler, encoder
            Needed only for user-defined classes.
        limiter
            By default the one that it was saved with.
        sync, journal_bytes, actor_options
            As for a new shared replay.
        """
        source = Path(folder)
        count, saved_limiter = described(source)
        limiter = saved_limiter if limiter is None else limiter
        goes_on = journal is not None and Path(journal).resolve() == source.resolve()
        if journal is not None and not goes_on and (Path(journal) / DESCRIPTION).exists():
            raise ValueError(f"journal: {journal} already holds a shared replay; name an empty folder")
        each = [settings_of(source, shard, sampler, encoder) for shard in range(count)]
        shared = cls.__new__(cls)
        place = None if journal is None else Path(journal)
        shared._start(each, limiter, place, source, sync, journal_bytes, actor_options)
        return shared

    def _start(
        self,
        each: list[dict[str, Any]],
        limiter: RateLimiter | None,
        folder: Path | None,
        source: Path | None,
        sync: bool,
        journal_bytes: int,
        actor_options: dict[str, Any] | None,
    ) -> None:
        self.observation_space, self.action_space = each[0]["observation_space"], each[0]["action_space"]
        self._builder_options = {name: each[0][name] for name in BUILDER_OPTIONS if name in each[0]}
        self._next_shard = 0
        self._limiter = limiter or RateLimiter()
        self._reported: dict[int, Any] = {}  # the last update of priorities of each shard
        places = [] if folder is None else [shard_folder(folder.absolute(), shard) for shard in range(len(each))]
        new = [place for place in places if not place.exists()]
        if folder is not None and len(new) < len(places) and not (folder / DESCRIPTION).exists():
            raise ValueError(
                f"journal: {folder} holds parts of a shared replay that never started; remove them, or name an "
                "empty folder"
            )
        # Without a journal a restarted shard would silently be empty.
        restarts = {"max_restarts": -1, "max_task_retries": -1} if folder is not None else {"max_restarts": 0}
        actor: Any = ray.remote(Shard).options(**{"max_concurrency": 10_000, **restarts, **(actor_options or {})})
        self._shards = [
            actor.remote(
                options,
                self._limiter,
                len(each),
                str(places[shard]) if places else None,
                None if source is None else str(shard_folder(source.absolute(), shard)),
                sync,
                positive_int("journal_bytes", journal_bytes),
            )
            for shard, options in enumerate(each)
        ]
        try:
            self.stats()  # raises the error of a shard that failed to start
            if folder is not None:
                describe(folder, len(each), self._limiter)
        except BaseException:
            self.close()
            for place in new:
                shutil.rmtree(place, ignore_errors=True)
            raise

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what was reported here: another process has nothing to wait for."""
        return {**self.__dict__, "_reported": {}}

    @property
    def shards(self) -> list[Any]:
        """The actors."""
        return list(self._shards)

    # -- writing --------------------------------------------------------------------------------------------------

    def writer(
        self,
        num_envs: int = 1,
        *,
        name: str | None = None,
        shard: int | None = None,
        chunk: int = 64,
        in_flight: int = 4,
        autoreset: Mode | None = None,
        check_autoreset: Check = "warn",
    ) -> Writer:
        """Return a writer, to which a collector adds its steps.

        Parameters
        ----------
        num_envs, autoreset, check_autoreset
            As for `Replay`, for this collector's environments.
        name
            A collector that restarts with its old name gets its lanes back. By default a new name.
        shard
            The shard to write to. By default derived from `name` if given, or the one with the fewest writers.
        chunk
            Steps per message.
        in_flight
            Unacknowledged chunks before `add` waits.
        """
        builder = ChunkBuilder(
            self.observation_space,
            self.action_space,
            num_envs,
            autoreset=autoreset,
            check_autoreset=check_autoreset,
            steps=chunk,
            **self._builder_options,
        )
        if shard is None:
            shard = self._least_used_shard() if name is None else zlib.crc32(name.encode())
        chosen = self._shards[shard % len(self._shards)]
        return Writer(chosen, uuid.uuid4().hex if name is None else name, builder, in_flight=in_flight)

    def _least_used_shard(self) -> int:
        """Return a shard with the fewest writers."""
        count = len(self._shards)
        writers = [numbers["writers"] for numbers in self.stats()] if count > 1 else [0]
        begin = uuid.uuid4().int % count
        return min(range(count), key=lambda shard: (writers[shard], (shard - begin) % count))

    def writer_for(self, envs: Any, **options: Any) -> Writer:
        """Return a writer for a vector environment, with its number of environments and autoreset mode."""
        read = options_of_envs(envs)
        return self.writer(**{"num_envs": read["num_envs"], "autoreset": read.get("autoreset"), **options})

    # -- sampling -------------------------------------------------------------------------------------------------

    def sample(self, batch_size: int, *, timeout: float | None = None) -> Batch:
        """Return a batch when the rate limiter allows it; shards take turns.

        Its arrays are in Ray's object store and read-only. After `timeout` seconds a TimeoutError says what the
        limiter waits for.
        """
        return self._received(*self._ask(batch_size, 1, timeout))[0]

    def batches(
        self, batch_size: int, *, prefetch: int = 4, group: int = 1, timeout: float | None = None
    ) -> Generator[Batch, None, None]:
        """Yield batches endlessly, requesting the next ones ahead of time.

        Parameters
        ----------
        batch_size, timeout
            As for `sample`.
        prefetch
            Number of requests ahead. Batches are sampled before the priorities of earlier ones are updated.
        group
            Batches per request. A request costs about a millisecond, so larger groups are faster for small batches.
        """
        asked: deque[tuple[Any, int]] = deque()
        prefetch, group = positive_int("prefetch", prefetch), positive_int("group", group)
        try:
            while True:
                while len(asked) < prefetch:
                    asked.append(self._ask(batch_size, group, timeout))
                yield from self._received(*asked.popleft())
        finally:
            # The rate limiter counts only what somebody received. The shards may be gone before this iterator is, and
            # Ray too, which a call would start again.
            with contextlib.suppress(Exception):
                for reference, shard in asked if ray.is_initialized() else ():
                    self._shards[shard].not_used.remote(reference)

    def _ask(self, batch_size: int, group: int, timeout: float | None) -> tuple[Any, int]:
        shard, self._next_shard = self._next_shard, (self._next_shard + 1) % len(self._shards)
        size = positive_int("batch_size", batch_size)
        return self._shards[shard].sample_many.remote(size, group, timeout), shard

    def _received(self, reference: Any, shard: int) -> list[Batch]:
        found: list[Batch] = answer(reference)
        count = len(self._shards)
        return found if count == 1 else [replace(batch, row=batch.row * count + shard) for batch in found]

    def update_priorities(
        self,
        row: ArrayLike,
        td_error: ArrayLike | None = None,
        *,
        priority: ArrayLike | None = None,
        wait: bool = False,
    ) -> None:
        """Report TD errors or priorities of ``batch.row``, as to `Replay`.

        Parameters
        ----------
        row, td_error, priority
            As for `Replay`.
        wait
            Whether to wait for the update and raise its errors.
        """
        if (td_error is None) == (priority is None):
            raise TypeError("update_priorities takes either td_error or priority")
        name, given = ("td_error", td_error) if priority is None else ("priority", priority)
        rows, values = checked_rows(row), host_array(given)
        if len(values) != len(rows):
            raise ValueError(f"{name} must have an entry for each of {len(rows)} rows, got shape {values.shape}")
        count = len(self._shards)
        sent = []
        for shard in np.unique(rows % count).tolist():
            here = rows % count == shard
            sent.append(self._shards[shard].update_priorities.remote(rows[here] // count, values[here], name))
            self._reported[shard] = sent[-1]
        if wait:
            answers(sent)

    def renew_values(self, q_values: Any, **options: Any) -> list[Any]:
        """Let every shard plan on its own graph; the function `q_values` is sent to all of them."""
        sent = ray.put(q_values)
        return answers([shard.renew_values.remote(sent, options) for shard in self._shards])

    # -- all shards -----------------------------------------------------------------------------------------------

    def stats(self) -> list[dict[str, float]]:
        """Return each shard's statistics: `Replay.stats`, and those of its limiter, writers and journal."""
        return answers([shard.stats.remote() for shard in self._shards])

    def __len__(self) -> int:
        return int(sum(numbers["rows"] for numbers in self.stats()))

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Save all shards to a shared folder; `Replay.load` also reads a shard's part, FOLDER/shard-000/replay.

        Each part is a consistent snapshot, but the parts are not from the same moment while writers add rows.
        """
        place = Path(folder).absolute()
        answers([actor.save.remote(str(shard_folder(place, shard))) for shard, actor in enumerate(self._shards)])
        describe(place, len(self._shards), self._limiter)

    def checkpoint(self) -> None:
        """Let the shards save their replays and clear their journals."""
        answers([shard.checkpoint.remote() for shard in self._shards])

    def close(self) -> None:
        """Stop the shards; their journals remain. Priorities that were reported here before are updated first."""
        with contextlib.suppress(Exception):  # one that is lost has nothing left to do
            ray.get([*self._reported.values(), *(shard.stats.remote() for shard in self._shards)], timeout=5)
        for shard in self._shards:
            ray.kill(shard)
