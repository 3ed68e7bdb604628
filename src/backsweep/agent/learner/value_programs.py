"""Values of many observations by some runs' networks, as programs of a few fixed sizes.

EBU needs the values of whole episodes, each time of other runs and lengths. Requests are cut into chunks of
CHUNK steps, each with the number of its run. A recorded program takes a fixed number of chunks, so requests are filled
up to the next of a few sizes, and each size is recorded when it is first asked for:

    (5,), (5, 64)  ──fill up──>  (6,), (6, 64)  ──program of that size──>  (2, 6, 64, A)  ──cut──>  (2, 5, 64, A)
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import DTypeLike, NDArray

from backsweep.agent.learner.packed_arrays import Move, PackedArrays

Program = Callable[[], None]
Evaluate = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
"""From runs (n,) and device rows (n, CHUNK) to values (2, n, CHUNK, A): of the target networks, and of the online."""
CHUNK = 64


class ValuePrograms:
    """Programs by size."""

    def __init__(
        self,
        evaluate: Evaluate,
        record: Callable[[Program], Program],
        move: Move,
        actions: int,
        dtype: DTypeLike,
        device: torch.device,
    ) -> None:
        self._evaluate, self._record, self._move = evaluate, record, move
        self._actions, self._dtype, self._device = actions, dtype, device
        self._programs: dict[int, tuple[PackedArrays, PackedArrays, Program]] = {}

    def enqueue(self, runs: NDArray[np.int64], rows: NDArray[np.int64]) -> NDArray[np.floating]:
        """Enqueue a request; return where its values (2, n, CHUNK, A) will be when the device is done."""
        size = filled_up(len(runs))
        if size not in self._programs:
            self._programs[size] = self._made(size)
        inputs, outputs, program = self._programs[size]
        # What fills up a program's size is evaluated too, so it has to be something that can be.
        inputs.host["runs"][len(runs) :] = runs[0]
        inputs.host["runs"][: len(runs)] = runs
        inputs.host["rows"][len(runs) :] = rows[0, 0]
        inputs.host["rows"][: len(runs)] = rows
        program()
        found: NDArray[np.floating] = outputs.host["values"][:, : len(runs)]
        return found

    def _made(self, chunks: int) -> tuple[PackedArrays, PackedArrays, Program]:
        inputs = PackedArrays({"runs": ((chunks,), np.int64), "rows": ((chunks, CHUNK), np.int64)}, self._device)
        outputs = PackedArrays({"values": ((2, chunks, CHUNK, self._actions), self._dtype)}, self._device)

        def program() -> None:
            inputs.send(self._move)
            self._move(self._evaluate(inputs.device["runs"], inputs.device["rows"]), outputs.pinned["values"])

        return inputs, outputs, self._record(program)


def filled_up(chunks: int) -> int:
    """Return the size of the program that serves a request: a power of two, or one and a half times one."""
    power = 1 << max(chunks - 1, 0).bit_length()
    return power // 4 * 3 if power >= 4 and chunks <= power // 4 * 3 else power
