"""Values of many observations by some lanes' networks, as programs of a few fixed sizes.

EBU asks for the values of whole episodes, of other lanes and other lengths every time. A recorded program has one size,
so requests are padded to the next power of two on both axes, and each size is recorded when it is first asked for:

    (3,), (3, 342)  ──pad──>  (4,), (4, 512)  ──program of that size──>  (2, 4, 512, A)  ──cut──>  (2, 3, 342, A)
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import DTypeLike, NDArray

from backsweep.learner.packed import PackedArrays

Program = Callable[[], None]
Evaluate = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
"""From lanes (n,) and bank rows (n, T) to values (2, n, T, A): of the target networks, and of the online ones."""
FEWEST_STEPS = 64


class ValuePrograms:
    """Programs by size."""

    def __init__(
        self,
        evaluate: Evaluate,
        record: Callable[[Program], Program],
        actions: int,
        dtype: DTypeLike,
        device: torch.device,
    ) -> None:
        self._evaluate, self._record = evaluate, record
        self._actions, self._dtype, self._device = actions, dtype, device
        self._programs: dict[tuple[int, int], tuple[PackedArrays, PackedArrays, Program]] = {}

    def enqueue(self, lanes: NDArray[np.int64], rows: NDArray[np.int64]) -> NDArray[np.floating]:
        """Enqueue a request; return where its values (2, n, T, A) will be when the device is done."""
        size = padded_size(len(lanes), rows.shape[1])
        if size not in self._programs:
            self._programs[size] = self._made(*size)
        inputs, outputs, program = self._programs[size]
        # What fills up a program's size is evaluated too, so it has to be something that can be.
        inputs.host["lanes"][:] = lanes[0]
        inputs.host["lanes"][: len(lanes)] = lanes
        inputs.host["rows"][:] = rows[0, 0]
        inputs.host["rows"][: len(lanes), : rows.shape[1]] = rows
        program()
        found: NDArray[np.floating] = outputs.host["values"][:, : len(lanes), : rows.shape[1]]
        return found

    def _made(self, lanes: int, steps: int) -> tuple[PackedArrays, PackedArrays, Program]:
        inputs = PackedArrays({"lanes": ((lanes,), np.int64), "rows": ((lanes, steps), np.int64)}, self._device)
        outputs = PackedArrays({"values": ((2, lanes, steps, self._actions), self._dtype)}, self._device)

        def program() -> None:
            inputs.send()
            outputs.device["values"].copy_(self._evaluate(inputs.device["lanes"], inputs.device["rows"]))
            outputs.fetch()

        return inputs, outputs, self._record(program)


def padded_size(lanes: int, steps: int) -> tuple[int, int]:
    """Return the size of the program that serves a request."""
    return _power_of_two(lanes), max(FEWEST_STEPS, _power_of_two(steps))


def _power_of_two(number: int) -> int:
    return 1 << max(number - 1, 0).bit_length()
