"""One part of a shared replay: a `Replay`, its writers and its limiter, as an actor with one event loop.

Calls that change the replay run to their end before the next one; they only wait at the limiter.
"""

from __future__ import annotations

import asyncio
import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backsweep.integrations.ray.limiter import RateLimiter
from backsweep.integrations.ray.storage import ShardFolder, holds_a_shard, restored
from backsweep.replay import Replay
from backsweep.replay.chunks import Chunk, add_chunk
from backsweep.types import Batch

FORGET_AFTER = 600.0
"""Seconds after which a writer that has sent nothing may lose its lanes to a new one."""


@dataclass
class Sender:
    """A registered writer."""

    lanes: NDArray[np.int64]
    turn: int
    """The number of its registration, so that late chunks of an earlier writer of its name are recognised."""
    sequence: int = 0
    """The number of its last chunk that was added."""
    seen: float = field(default_factory=time.monotonic)
    waiting: int = 0
    """The number of its chunks that wait for the limiter or for an earlier chunk."""


class Shard:
    """An actor that holds one shard.

    Parameters
    ----------
    options
        Of its `Replay`.
    limiter
        The shard's part is computed from the number of `shards`.
    folder
        Folder of the acknowledged rows, whose contents are loaded; None keeps rows in memory only.
    source
        Folder of a saved shard to start from, if `folder` is empty.
    sync
        Whether rows are forced to the disk before they are acknowledged.
    journal_bytes
        Size of the journal at which the replay is saved and a new journal started.
    """

    def __init__(
        self,
        options: dict[str, Any],
        limiter: RateLimiter,
        shards: int,
        folder: str | None,
        source: str | None,
        sync: bool,
        journal_bytes: int,
    ) -> None:
        self._senders: dict[str, Sender] = {}
        self._turns = 0
        self._waiting: list[asyncio.Future[None]] = []
        self._limiter = limiter.share(shards)
        self._journal_bytes = journal_bytes
        self._disk_error: OSError | None = None
        self._folder = None if folder is None else ShardFolder(Path(folder), sync=sync)
        begins_with = folder if folder is not None and holds_a_shard(folder) else source
        configurations = {name: options.get(name) for name in ("sampler", "encoder", "file")}
        if begins_with is None:
            self._replay = Replay(**options)
        else:
            self._replay, records = restored(Path(begins_with), **configurations)
            for record in records:
                self._apply(record.data)
        self._limiter.inserted = self._replay.total
        if self._folder is None:
            return
        if begins_with == folder and self._folder.journals():
            self._folder.resume()
        else:
            self._save_here()

    # -- writers --------------------------------------------------------------------------------------------------

    def register(self, name: str, num_envs: int) -> tuple[list[int], int]:
        """Assign lanes to a writer, which replaces one of the same name; return the lanes and its turn."""
        before = self._senders.pop(name, None)
        taken = {lane for sender in self._senders.values() for lane in sender.lanes.tolist()}
        free = [lane for lane in range(self._replay.num_envs) if lane not in taken]
        silent = [each for each, sender in self._senders.items() if not sender.waiting]
        for other in sorted(silent, key=lambda each: self._senders[each].seen):
            if len(free) >= num_envs or time.monotonic() - self._senders[other].seen < FORGET_AFTER:
                break
            free += self._senders.pop(other).lanes.tolist()
        if len(free) < num_envs:
            if before is not None:
                self._senders[name] = before
            raise ValueError(
                f"num_envs must be at most the {len(free)} lanes of this shard that are free, got {num_envs}: close "
                f"writers that are done, or make the SharedReplay with more lanes than {self._replay.num_envs}"
            )
        lanes = np.asarray(sorted(free[:num_envs]), np.int64)
        self._turns += 1
        self._senders[name] = Sender(lanes, self._turns)
        self._write({"kind": "writers", **self._state()}, {})
        return lanes.tolist(), self._senders[name].turn

    def unregister(self, name: str, turn: int) -> None:
        """Release a writer's lanes."""
        if name in self._senders and self._senders[name].turn == turn:
            del self._senders[name]
            self._write({"kind": "writers", **self._state()}, {})

    async def add(self, name: str, turn: int, sequence: int, arrays: dict[str, NDArray[Any]]) -> int:
        """Add a writer's next chunk when the limiter allows it; return the total number of rows added.

        A chunk is added once, although unanswered calls are repeated after a restart.
        """
        while True:
            sender = self._senders.get(name)
            if sender is None or sender.turn != turn:
                raise ValueError(
                    f"the writer {name!r} has lost its lanes: another one of its name has registered, or it sent "
                    f"nothing for {FORGET_AFTER:.0f} s while others needed lanes"
                )
            sender.seen = time.monotonic()
            if sequence <= sender.sequence:
                return self._replay.total
            if sequence == sender.sequence + 1 and self._limiter.may_insert():
                break
            sender.waiting += 1
            try:
                await self._change()
            finally:
                sender.waiting -= 1
        if self._disk_error is not None:
            raise self._disk_error
        chunk, before = Chunk(**arrays), self._replay.total
        self._limiter.inserted += add_chunk(self._replay, chunk, sender.lanes)
        sender.sequence = sequence
        self._wake()
        record = {"kind": "chunk", "before": before, "lanes": sender.lanes.tolist(), "writer": name, "turn": turn}
        self._write({**record, "sequence": sequence, "sampled": self._limiter.sampled}, arrays)
        if self._folder is not None and self._folder.nbytes > self._journal_bytes:
            self._save_here()
        return self._replay.total

    # -- readers --------------------------------------------------------------------------------------------------

    async def sample_many(self, batch_size: int, count: int, timeout: float | None) -> list[Batch]:
        """Return several batches, each when the limiter allows it."""
        return [await self.sample(batch_size, timeout) for _ in range(count)]

    async def sample(self, batch_size: int, timeout: float | None) -> Batch:
        """Return a batch when the limiter allows it."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while not self._limiter.may_sample(len(self._replay)):
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                why = self._limiter.why_no_sample(len(self._replay))
                raise TimeoutError(f"no batch within {timeout:g} s: {why}")
            await self._change(left)
        batch = self._replay.sample(batch_size)
        self._limiter.sampled += batch_size
        self._wake()
        return batch

    def not_used(self, batches: list[Batch]) -> None:
        """Take these batches, which nobody got to see, out of the limiter's count."""
        # A shard that has restarted since then may never have counted them.
        self._limiter.sampled = max(0, self._limiter.sampled - sum(map(len, batches)))
        self._wake()

    def update_priorities(self, row: NDArray[np.int64], values: NDArray[Any], name: str) -> None:
        """Update priorities from TD errors or priorities."""
        self._replay.update_priorities(row, **{name: values})

    def renew_values(self, q_values: Any, options: dict[str, Any]) -> Any:
        """Plan on this shard's graph."""
        return self._replay.renew_values(q_values, **options)

    def stats(self) -> dict[str, float]:
        """Return the statistics of the replay and the limiter."""
        return {
            **self._replay.stats(),
            "rows_ever": self._replay.total,
            "rows_drawn": self._limiter.sampled,
            "writers": len(self._senders),
            "journal_bytes": 0 if self._folder is None else self._folder.nbytes,
            "nbytes": self._replay.nbytes,
            "process": os.getpid(),
            "cpu_seconds": time.process_time(),
        }

    # -- files ----------------------------------------------------------------------------------------------------

    def save(self, folder: str) -> None:
        """Save this shard to another folder, from which a new one can start."""
        place = ShardFolder(Path(folder), sync=True)
        try:
            place.begin(self._replay, {"writers": {}, "turns": self._turns, "sampled": self._limiter.sampled})
        finally:
            place.close()

    def checkpoint(self) -> None:
        """Save the replay in the shard's folder, so that a restart reads less of the journal."""
        if self._folder is not None:
            self._save_here()

    def _save_here(self) -> None:
        assert self._folder is not None
        try:
            self._folder.begin(self._replay, self._state())
        except OSError as error:
            self._disk_error = error
            raise
        self._disk_error = None

    def _write(self, data: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        if self._folder is None:
            return
        try:
            self._folder.append(data, arrays)
        except OSError as error:
            # Rows are in memory but not on disk: accept no more until a save succeeds.
            self._disk_error = error
            raise

    def _state(self) -> dict[str, Any]:
        writers = {
            name: {"lanes": sender.lanes.tolist(), "turn": sender.turn, "sequence": sender.sequence}
            for name, sender in self._senders.items()
        }
        return {"writers": writers, "turns": self._turns, "sampled": self._limiter.sampled}

    def _apply(self, data: dict[str, Any]) -> None:
        """Apply a record of the journal, whose rows are already in the replay."""
        self._limiter.sampled = int(data["sampled"])
        if data["kind"] == "chunk":
            if (sender := self._senders.get(data["writer"])) is not None and sender.turn == data["turn"]:
                sender.sequence = int(data["sequence"])
        else:
            self._senders = {
                name: Sender(np.asarray(entry["lanes"], np.int64), int(entry["turn"]), int(entry["sequence"]))
                for name, entry in data["writers"].items()
            }
            # Journals of the first releases do not hold the number.
            self._turns = max([int(data.get("turns", 0)), *(sender.turn for sender in self._senders.values())])

    # -- waiting --------------------------------------------------------------------------------------------------

    async def _change(self, timeout: float | None = None) -> None:
        """Wait for a change, or for the timeout."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        await asyncio.wait([future], timeout=timeout)

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)
