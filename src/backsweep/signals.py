"""Signals that end a program from outside, and how a program takes them."""

from __future__ import annotations

import contextlib
import os
import signal
import stat
import threading
from collections.abc import Callable, Iterable, Iterator
from types import FrameType
from typing import Any

Handler = Callable[[int, FrameType | None], Any]
HANGUP: int | None = getattr(signal, "SIGHUP", None)
"""The signal of a closed terminal; some systems have none."""


@contextlib.contextmanager
def handling(numbers: Iterable[int], handler: Handler) -> Iterator[None]:
    """Handle signals within the block. Only the main thread can: elsewhere nothing changes.

    A closed terminal is handled once, because its shell and the system each send a signal for it.
    """

    def handle(number: int, frame: FrameType | None) -> None:
        if number == HANGUP:
            signal.signal(number, signal.SIG_IGN)
        handler(number, frame)

    before: dict[int, Any] = {}
    try:
        if threading.current_thread() is threading.main_thread():
            before.update({number: signal.getsignal(number) for number in numbers})
            for number in before:
                signal.signal(number, handle)
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, signal.SIG_DFL if earlier is None else earlier)  # None: not set by Python


def endings() -> list[int]:
    """Return the signals by which a system asks a program to end: SIGTERM, and SIGHUP for a closed terminal.

    Without SIGHUP if the program was started to outlive its terminal (nohup).
    """
    if HANGUP is None or signal.getsignal(HANGUP) is signal.SIG_IGN:
        return [signal.SIGTERM]
    return [signal.SIGTERM, HANGUP]


def leave_terminal() -> None:
    """Discard all further output to a terminal that was closed: writing to it would be an error."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (1, 2):
        with contextlib.suppress(OSError):  # the program was started without this stream
            if stat.S_ISCHR(os.fstat(stream).st_mode):
                os.dup2(nothing, stream)
    os.close(nothing)
