"""Several small arrays in one piece of memory, on the host and on the device, so that one copy moves them all."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import DTypeLike, NDArray

ALIGNMENT = 64  # bytes; every array starts on a cache line


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
        self.device: dict[str, torch.Tensor] = {}
        for name, (shape, dtype) in arrays.items():
            part = slice(places[name], places[name] + math.prod(shape) * np.dtype(dtype).itemsize)
            self.host[name] = self._host.numpy()[part].view(dtype).reshape(shape)
            torch_dtype = torch.from_numpy(self.host[name]).dtype
            self.device[name] = self._device[part].view(torch_dtype).view(shape)

    @property
    def nbytes(self) -> int:
        """Bytes on the device."""
        return self._device.nbytes

    def send(self) -> None:
        """Copy from the host to the device, in the order of the current stream."""
        if self._device is not self._host:
            self._device.copy_(self._host, non_blocking=True)

    def fetch(self) -> None:
        """Copy from the device to the host, in the order of the current stream."""
        if self._device is not self._host:
            self._host.copy_(self._device, non_blocking=True)
