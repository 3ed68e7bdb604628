"""Runs next to the environments: checks steps, collects them and sends them to a shard."""

from __future__ import annotations

import contextlib
import re
from collections import deque
from types import TracebackType
from typing import Any, Self

import ray

from backsweep.replay.argument_checks import positive_int
from backsweep.replay.chunks import Chunk, ChunkBuilder


class SharedReplayError(RuntimeError):
    """A shard is lost and cannot restart, or cannot be reached."""


def answer(reference: Any) -> Any:
    """Return the result of a shard's call, or raise its error."""
    try:
        return ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        cause = error.cause
        if isinstance(cause, Exception) and not isinstance(cause, ray.exceptions.RayError):
            raise cause from None
        raise
    except ray.exceptions.RayActorError as error:
        raise SharedReplayError(_why_lost(error)) from error


def _why_lost(error: ray.exceptions.RayActorError) -> str:
    said = re.sub(r"\x1b\[[0-9;]*m", "", str(error))
    if error.actor_init_failed:
        # Ray keeps only the text of what the shard raised, at the end of a traceback.
        raised = list(re.finditer(r"^[\w.]+: ", said, re.MULTILINE))
        return f"a shard could not start: {said[raised[-1].start() :].strip() if raised else said}"
    if "`ray.kill`" in said:
        return "the shared replay was closed; SharedReplay.load continues one that had a journal or was saved"
    return (
        f"a shard of the shared replay is lost ({said.splitlines()[0]}). With journal=FOLDER it restarts "
        "automatically and loses no acknowledged row; without, its rows were only in memory"
    )


def answers(references: list[Any]) -> list[Any]:
    """Return the results of several calls, in order."""
    return [answer(reference) for reference in references]


class Writer:
    """Takes the steps of some environments, as `Replay.add` does, and sends them in chunks. See `SharedReplay.writer`.

    `add` returns at once while at most `in_flight` chunks are unacknowledged, and otherwise waits for the oldest, which
    may itself wait for the rate limiter. Steps are safe once their chunk is acknowledged: `flush` waits for that. A
    ``with`` block flushes and closes the writer at its end; after an error in the block it only releases the lanes.
    """

    def __init__(self, shard: Any, name: str, builder: ChunkBuilder, *, in_flight: int) -> None:
        self._shard = shard
        self.name = name
        self._builder = builder
        self._in_flight = positive_int("in_flight", in_flight)
        self._sequence = 0
        self._sent: deque[tuple[Any, int]] = deque()
        self.acknowledged = 0
        """Transitions that the shard has added, and written to its journal if it has one."""
        lanes, self._turn = answer(shard.register.remote(name, builder.num_envs))
        self.lanes: tuple[int, ...] = tuple(lanes)
        self._closed = False

    def add(self, *step: Any, **more: Any) -> None:
        """Add one step of each environment; the arguments are those of `Replay.add`, without `lanes`.

        Invalid arguments raise here, and nothing of such a step is sent.
        """
        if self._closed:
            raise SharedReplayError(f"the writer {self.name!r} is closed")
        self._builder.add(*step, **more)
        if self._builder.full:
            self._send()

    def _send(self) -> None:
        chunk = self._builder.take()
        if chunk is None:
            return
        self._sequence += 1
        self._sent.append((self._call(chunk), chunk.rows))
        while len(self._sent) > self._in_flight:
            self._acknowledge()
        # Process the answers that have already arrived.
        while self._sent and ray.wait([self._sent[0][0]], timeout=0)[0]:
            self._acknowledge()

    def _call(self, chunk: Chunk) -> Any:
        return self._shard.add.remote(self.name, self._turn, self._sequence, chunk.arrays())

    def _acknowledge(self) -> None:
        reference, rows = self._sent[0]
        try:
            answer(reference)
        except BaseException as error:
            if isinstance(error, Exception):
                self._closed = True
                error.add_note(
                    f"writer {self.name!r}: {self.acknowledged} transitions were acknowledged, "
                    f"{sum(count for _, count in self._sent)} were sent and not acknowledged"
                )
            raise
        self._sent.popleft()
        self.acknowledged += rows

    def flush(self) -> None:
        """Send everything and return when all of it is acknowledged."""
        self._send()
        while self._sent:
            self._acknowledge()

    def close(self) -> None:
        """Flush, and release the lanes."""
        if not self._closed:
            self.flush()
            self._release()

    def _release(self) -> None:
        self._closed = True
        answer(self._shard.unregister.remote(self.name, self._turn))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        elif not self._closed:
            with contextlib.suppress(Exception):  # the error of the block is the one to see
                self._release()
