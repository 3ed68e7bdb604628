"""Distinct observations on the learner's device, by row number.

An observation is written once, when it is first seen; batches then refer to it by its row, so that only row numbers are
copied to the device.

    write: caller's arrays ──copy──> staging slot (page-locked) ──asynchronously──> the same on the device ──> rows

A slot is filled again only when the device has read it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import DTypeLike, NDArray

SLOTS = 8  # writes that may be pending before `write` waits for the device
BLOCK_WORD = torch.int32  # what images in blocks are copied by
SLOT_ROWS = 256  # larger writes are split


class DeviceObservations:
    """`rows` observations of one shape. Not for several threads at once."""

    def __init__(self, rows: int, shape: tuple[int, ...], dtype: DTypeLike, device: torch.device) -> None:
        self.shape = tuple(shape)
        self.dtype = np.dtype(dtype)
        self.device = device
        self.rows = torch.empty((rows, *self.shape), dtype=_torch_dtype(self.dtype), device=device)
        self.rows[:1].zero_()  # programs are tested on row 0, which must hold a valid observation
        self._row_bytes = math.prod(self.shape) * self.dtype.itemsize
        word = next(word for word in (torch.int64, torch.int32, torch.int16, torch.uint8) if self._fits(word))
        # Rows are copied in the largest words that fit, whatever their dtype.
        self._words = self.rows.view(rows, -1).view(word)
        self._slots: list[_Slot] = []
        self._next = 0
        self._empty = True
        self.block = 1
        """Side length, in pixels, of the blocks in which images are stored, row after row of blocks."""

    def cut_into_blocks(self, block: int) -> None:
        """Store images in blocks from now on. Only before the first `write`, or with the same block size."""
        if block == self.block:
            return
        if not self._empty:
            raise ValueError(f"images are already stored in blocks of {self.block}, got {block}")
        height, width, channels = self.shape
        if height % block or width % block or block * channels * self.dtype.itemsize % BLOCK_WORD.itemsize:
            raise ValueError(f"block must divide images of {self.shape} into whole words, got {block}")
        self.block = block
        words = self.rows.view(len(self.rows), -1).view(BLOCK_WORD)
        self._words = words.view(len(words), height // block, width // block, block, -1)

    def in_order(self, index: torch.Tensor) -> torch.Tensor:
        """Return the observations (..., *shape) of rows `index` (...), in pixel order whatever the storage."""
        found = self.rows[index]
        if self.block == 1:
            return found
        (height, width, channels), block = self.shape, self.block
        blocks = found.view(*index.shape, height // block, width // block, block, block, channels)
        return blocks.transpose(-4, -3).reshape(found.shape)

    def put(self, first: int, rows: torch.Tensor) -> None:
        """Put observations (n, *shape), in pixel order on this device, at the rows from `first` on."""
        self._empty = False
        words = rows.reshape(len(rows), -1).view(self._words.dtype)
        self._words[first : first + len(rows)] = self._as_stored(words)

    def _as_stored(self, words: torch.Tensor) -> torch.Tensor:
        """Return the words (n, words of a row) of observations in pixel order as `_words` holds them."""
        if self.block == 1:
            return words
        _, down, across, block, _ = self._words.shape
        return words.view(BLOCK_WORD).view(len(words), down, block, across, -1).transpose(2, 3)

    def _fits(self, word: torch.dtype) -> bool:
        return self._row_bytes % word.itemsize == 0

    def write(self, places: NDArray[np.int64], observations: NDArray[Any]) -> None:
        """Put observations (n, *shape) at rows `places` (n,), in the order of the current stream.

        Both arrays may be overwritten as soon as the call returns.
        """
        if not len(places):
            return
        self._empty = False
        if self.device.type != "cuda":
            self._write_directly(places, np.ascontiguousarray(observations, self.dtype))
            return
        for start in range(0, len(places), SLOT_ROWS):
            chunk = slice(start, start + SLOT_ROWS)
            self._write_chunk(places[chunk], observations[chunk])

    def _write_directly(self, places: NDArray[np.int64], observations: NDArray[Any]) -> None:
        if self.block > 1:
            (height, width, channels), block = self.shape, self.block
            pixels = observations.reshape(len(places), height // block, block, width // block, block, channels)
            observations = np.ascontiguousarray(pixels.swapaxes(2, 3)).reshape(observations.shape)
        self.rows[torch.from_numpy(places)] = torch.from_numpy(observations)

    def _write_chunk(self, places: NDArray[np.int64], observations: NDArray[Any]) -> None:
        if len(self._slots) < SLOTS:
            self._slots.append(_Slot(self.shape, self.dtype, self._words.dtype, self.device))
        slot = self._slots[self._next]
        self._next = (self._next + 1) % SLOTS
        views = slot.views(len(places))
        if slot.free is not None:
            slot.free.synchronize()
        views.host_places[:] = places
        views.host_rows[:] = observations
        views.on_device.copy_(views.on_host, non_blocking=True)
        self._words.index_copy_(0, views.device_places, self._as_stored(views.device_rows))
        if slot.free is not None:
            slot.free.record()


class RowRange:
    """Consecutive rows that are filled from the host again and again, each time in one copy.

    Fill `host` (n, *shape) only when the device is done with the last copy. Images whose `shape` has the channels first
    get them last on the device: that takes the host as long as several steps of an Atari game.
    """

    def __init__(self, observations: DeviceObservations, first: int, count: int, shape: tuple[int, ...]) -> None:
        self._observations, self._first = observations, first
        on_gpu = observations.device.type == "cuda"
        self._host = torch.zeros((count, *shape), dtype=_torch_dtype(observations.dtype), pin_memory=on_gpu)
        self._device = self._host.to(observations.device)
        self._ordered = self._device if shape == observations.shape else self._device.movedim(1, -1)
        if tuple(self._ordered.shape[1:]) != observations.shape:
            raise ValueError(f"shape must be {observations.shape}, or have its channels first, got {shape}")
        self.host: NDArray[Any] = self._host.numpy()

    def send(self) -> None:
        """Copy the rows to the device, in the order of the current stream."""
        if self._device is not self._host:
            self._device.copy_(self._host, non_blocking=True)
        self._observations.put(self._first, self._ordered)


@dataclass(frozen=True)
class _Views:
    """A slot's memory as places and rows of one count: places first, then rows, so that one copy moves both."""

    host_places: NDArray[np.int64]
    host_rows: NDArray[Any]
    on_host: torch.Tensor
    on_device: torch.Tensor
    device_places: torch.Tensor
    device_rows: torch.Tensor


class _Slot:
    """Staging memory on host and device, and an event for when the device is done with it."""

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype[Any], word: torch.dtype, device: torch.device) -> None:
        self._shape, self._dtype, self._word = shape, dtype, word
        self._row_bytes = math.prod(shape) * dtype.itemsize
        size = SLOT_ROWS * (8 + self._row_bytes)
        on_gpu = device.type == "cuda"
        self.host = torch.empty(size, dtype=torch.uint8, pin_memory=on_gpu)
        self.device = torch.empty(size, dtype=torch.uint8, device=device)
        self.free = torch.cuda.Event() if on_gpu else None  # type: ignore[no-untyped-call]
        self._views: dict[int, _Views] = {}

    def views(self, count: int) -> _Views:
        """Return the memory for `count` rows. Making the views takes longer than using them, so they are cached."""
        if count not in self._views:
            behind, end = 8 * count, (8 + self._row_bytes) * count
            host = self.host.numpy()
            self._views[count] = _Views(
                host[:behind].view(np.int64),
                host[behind:end].view(self._dtype).reshape(count, *self._shape),
                self.host[:end],
                self.device[:end],
                self.device[:behind].view(torch.int64),
                self.device[behind:end].view(self._word).view(count, -1),
            )
        return self._views[count]


def _torch_dtype(dtype: np.dtype[Any]) -> torch.dtype:
    return torch.from_numpy(np.empty(0, dtype)).dtype
