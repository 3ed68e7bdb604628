"""Distinct observations in the learner's memory, by row number.

An observation is written once, when it is first seen; from then on a batch names it by its row, so that numbers travel
to the device and pictures do not.

    write: caller's arrays ──copy──> staging slot (page-locked) ──asynchronously──> the same on the device ──> rows

A slot is filled again only when the device has read it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import DTypeLike, NDArray

SLOTS = 8  # writes that may wait for the device before `write` has to
SLOT_ROWS = 256  # larger writes are done in parts


class ObservationBank:
    """`rows` observations of one shape. Not for several threads at once."""

    def __init__(self, rows: int, shape: tuple[int, ...], dtype: DTypeLike, device: torch.device) -> None:
        self.shape = tuple(shape)
        self.dtype = np.dtype(dtype)
        self.device = device
        self.rows = torch.empty((rows, *self.shape), dtype=_torch_dtype(self.dtype), device=device)
        self._row_bytes = math.prod(self.shape) * self.dtype.itemsize
        word = next(word for word in (torch.int64, torch.int32, torch.int16, torch.uint8) if self._fits(word))
        # Rows are copied as the largest words that fit, whatever they hold.
        self._words = self.rows.view(rows, -1).view(word)
        self._slots: list[_Slot] = []
        self._next = 0

    def _fits(self, word: torch.dtype) -> bool:
        return self._row_bytes % word.itemsize == 0

    @property
    def nbytes(self) -> int:
        """Bytes on the device."""
        staged = sum(slot.device.nbytes for slot in self._slots)
        return self.rows.nbytes + staged

    def write(self, places: NDArray[np.int64], observations: NDArray[Any]) -> None:
        """Put observations (n, *shape) at rows `places` (n,), in the order of the current stream.

        Both arrays may be overwritten as soon as the call returns.
        """
        if not len(places):
            return
        if self.device.type != "cuda":
            self.rows[torch.from_numpy(places)] = torch.from_numpy(np.ascontiguousarray(observations, self.dtype))
            return
        for start in range(0, len(places), SLOT_ROWS):
            part = slice(start, start + SLOT_ROWS)
            self._write_part(places[part], observations[part])

    def _write_part(self, places: NDArray[np.int64], observations: NDArray[Any]) -> None:
        if len(self._slots) < SLOTS:
            self._slots.append(_Slot(SLOT_ROWS * (8 + self._row_bytes), self.device))
        slot = self._slots[self._next]
        self._next = (self._next + 1) % SLOTS
        slot.free.synchronize()
        count, behind = len(places), 8 * len(places)
        end = behind + count * self._row_bytes
        host = slot.host.numpy()
        host[:behind].view(np.int64)[:] = places
        host[behind:end].view(self.dtype).reshape(count, *self.shape)[:] = observations
        slot.device[:end].copy_(slot.host[:end], non_blocking=True)
        rows = slot.device[behind:end].view(self._words.dtype).view(count, -1)
        self._words.index_copy_(0, slot.device[:behind].view(torch.int64), rows)
        slot.free.record()


class _Slot:
    """Staging memory on both sides, and when the device has done with it."""

    def __init__(self, size: int, device: torch.device) -> None:
        self.host = torch.empty(size, dtype=torch.uint8, pin_memory=True)
        self.device = torch.empty(size, dtype=torch.uint8, device=device)
        self.free = torch.cuda.Event()  # type: ignore[no-untyped-call]


def _torch_dtype(dtype: np.dtype[Any]) -> torch.dtype:
    return torch.from_numpy(np.empty(0, dtype)).dtype
