"""Signals that end a program from outside."""

from __future__ import annotations

import os
import signal
import stat


def endings() -> list[int]:
    """Return the signals by which a system asks a program to end: SIGTERM, and SIGHUP for a closed terminal.

    Without SIGHUP if the program was started to outlive its terminal (nohup).
    """
    hangup: int | None = getattr(signal, "SIGHUP", None)  # some systems have none
    if hangup is None or signal.getsignal(hangup) is signal.SIG_IGN:
        return [signal.SIGTERM]
    return [signal.SIGTERM, hangup]


def leave_terminal() -> None:
    """Discard all further output to a terminal that was closed: writing to it would be an error."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (1, 2):
        if stat.S_ISCHR(os.fstat(stream).st_mode):
            os.dup2(nothing, stream)
    os.close(nothing)
