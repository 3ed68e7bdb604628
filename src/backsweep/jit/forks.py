"""Forks of a process with locked objects.

A forked child has a copy of all memory but only one of the threads. A lock held by another thread stays locked in the
child forever, over a half-done change. So a fork waits until no thread is inside a guarded object, and the child gets a
new lock. The child must not touch memory that it shares with the parent (a mapped file).
"""

from __future__ import annotations

import os
import threading
import weakref
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, Protocol

PATIENCE = 10.0
"""Seconds that a fork waits for each lock; a thread that waits for the fork would hold its lock forever."""


class Guarded(Protocol):
    """An object whose methods all enter `_lock` first."""

    _lock: Any

    def _why_not_after_a_fork(self) -> str | None:
        """Return why a forked child must not use the object, None if it may."""


class Refusal(AbstractContextManager[None]):
    """Replaces the lock of an object that must not be used in this process."""

    def __init__(self, reason: str) -> None:
        self.reason = reason

    def __enter__(self) -> None:
        raise RuntimeError(self.reason)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Do nothing: it is never entered."""


_guarded: weakref.WeakSet[Any] = weakref.WeakSet()
_forking = threading.RLock()
"""Held from before a fork until after it: one thread forks at a time, and no object is added meanwhile."""
_own = threading.local()
"""Of each thread: what it has locked, for each fork that it is in; a signal may begin one inside another."""


def guard(thing: Guarded) -> None:
    """Keep an object whole across forks of this process."""
    with _forking:
        _guarded.add(thing)


def _before() -> None:
    _forking.acquire()
    locked: list[Any] = []
    _own.forks = [*getattr(_own, "forks", ()), locked]
    for thing in list(_guarded):
        if not isinstance(thing._lock, Refusal) and thing._lock.acquire(timeout=PATIENCE):
            locked.append(thing)


def _in_parent() -> None:
    if getattr(_own, "forks", None):
        for thing in _own.forks.pop():
            thing._lock.release()
        _forking.release()


def _in_child() -> None:
    global _forking
    _forking = threading.RLock()
    whole = set(map(id, _own.forks.pop())) if getattr(_own, "forks", None) else set()
    _own.forks = []
    for thing in list(_guarded):
        if isinstance(thing._lock, Refusal):
            continue
        reason = thing._why_not_after_a_fork()
        if id(thing) not in whole:
            reason = "it was in use by another thread when this process was forked, and is incomplete"
        if reason is None:
            thing._lock = threading.RLock()
        else:
            thing._lock = Refusal(f"this {type(thing).__name__} cannot be used in a forked process: {reason}")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
