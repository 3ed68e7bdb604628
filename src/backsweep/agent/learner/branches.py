"""Runs independent parts of a program concurrently on one GPU.

A program for few runs is a chain of kernels that each use a small part of the GPU. If two parts are independent, one
of them goes to a branch:

    with branch:            # begins when everything before it is done
        of_this = ...
    and_that = ...          # at the same time
    branch.join()           # what follows has both

A recorded program keeps its branches. Keep references to the tensors that cross a branch, in either direction, until
after `join`: freed memory is reused in the order of one stream, regardless of the other.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from types import TracebackType

import torch


class Branch:
    """A second stream. On a CPU everything is done in order."""

    def __init__(self, device: torch.device) -> None:
        self._stream = torch.cuda.Stream(device) if device.type == "cuda" else None  # type: ignore[no-untyped-call]
        self._entered: AbstractContextManager[object] | None = None
        self._open = False  # whether there is something to join

    def __enter__(self) -> None:
        if self._stream is not None:
            self._stream.wait_stream(torch.cuda.current_stream(self._stream.device))
            entered: AbstractContextManager[object] = torch.cuda.stream(self._stream)
            entered.__enter__()
            self._entered, self._open = entered, True

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._entered is not None:
            self._entered.__exit__(kind, error, trace)
            self._entered = None

    def join(self) -> None:
        """Let the current stream wait for the branch."""
        if self._stream is not None and self._open:
            torch.cuda.current_stream(self._stream.device).wait_stream(self._stream)
            self._open = False
