"""Several small arrays in one block of memory, on the host and on the device, so that one copy transfers them all."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import DTypeLike, NDArray

ALIGNMENT = 64  # bytes; every array starts on a cache line
MOVED = torch.int64  # as what whole pieces are copied
Move = Callable[[torch.Tensor, torch.Tensor], object]
"""Copies a tensor into another one of the same size."""


def copy(source: torch.Tensor, out: torch.Tensor) -> None:
    """Copy, in the order of the current stream and without waiting."""
    out.copy_(source, non_blocking=True)


class PackedArrays:
    """Arrays by name: numpy arrays in page-locked memory, and tensors on the device. On the CPU both are one."""

    def __init__(self, arrays: Mapping[str, tuple[tuple[int, ...], DTypeLike]], device: torch.device) -> None:
        places, size = {}, 0
        for name, (shape, dtype) in arrays.items():
            places[name] = size
            size += -(-math.prod(shape) * np.dtype(dtype).itemsize // ALIGNMENT) * ALIGNMENT
        on_gpu = device.type == "cuda"
        self._host = torch.zeros(size, dtype=torch.uint8, pin_memory=on_gpu)
        self._device = self._host.to(device)
        self.host: dict[str, NDArray[Any]] = {}
        self.pinned: dict[str, torch.Tensor] = {}
        """The host's arrays as tensors, for kernels that reach into the host's memory themselves."""
        self.device: dict[str, torch.Tensor] = {}
        for name, (shape, dtype) in arrays.items():
            place = slice(places[name], places[name] + math.prod(shape) * np.dtype(dtype).itemsize)
            self.host[name] = self._host.numpy()[place].view(dtype).reshape(shape)
            torch_dtype = torch.from_numpy(self.host[name]).dtype
            self.pinned[name] = self._host[place].view(torch_dtype).view(shape)
            self.device[name] = self._device[place].view(torch_dtype).view(shape)

    def send(self, move: Move = copy) -> None:
        """Copy from the host to the device, in the order of the current stream."""
        if self._device is not self._host:
            move(self._host.view(MOVED), self._device.view(MOVED))

    def fetch(self, move: Move = copy) -> None:
        """Copy from the device to the host, in the order of the current stream."""
        if self._device is not self._host:
            move(self._device.view(MOVED), self._host.view(MOVED))
