"""Changes that a signal must not cut in two.

Python runs a signal's handler between any two steps of the main thread, and a handler that raises, as the one for
Ctrl-C does, leaves whatever was under way half done. Here such handlers wait until the change is whole.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any

SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGALRM") if hasattr(signal, name))


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Let signals that Python code handles wait until the end of the block."""
    if threading.current_thread() is not threading.main_thread():
        yield  # handlers run in the main thread alone
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
        for number, frame in waiting:
            handlers[number](number, frame)
