"""Changes that a signal must not interrupt.

Python runs signal handlers between any two steps of the main thread. A handler that raises, such as that of Ctrl-C,
would leave a change half done. Here handlers wait until the change is complete.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any

NAMES = ("SIGINT", "SIGTERM", "SIGALRM", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGQUIT", "SIGXCPU", "SIGVTALRM", "SIGPROF")
SIGNALS = tuple(getattr(signal, name) for name in NAMES if hasattr(signal, name))
"""Those that programs handle: Ctrl-C, timers, and what schedulers send before they end or suspend a job."""


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Delay signals that Python code handles until the end of the block."""
    if threading.get_ident() != threading.main_thread().ident:
        yield  # handlers run only in the main thread
        return
    waiting: list[tuple[int, FrameType | None]] = []
    handlers: dict[int, Any] = {}

    def wait(number: int, frame: FrameType | None) -> None:
        waiting.append((number, frame))

    try:
        for number in SIGNALS:
            if callable(handler := signal.getsignal(number)):
                handlers[number] = handler
                signal.signal(number, wait)
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        with contextlib.ExitStack() as stack:  # if one raises, the others still run
            for number, frame in reversed(waiting):
                stack.callback(handlers[number], number, frame)
