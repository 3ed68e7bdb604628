"""Matrix products that round otherwise for every shape, as libraries do on some machines.

A batched product of three lanes may take another path through the library than one of a single lane, so that results
differ in their last bits. Which machines do so cannot be known here; under this mode every machine does.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

aten = torch.ops.aten
SUMS = {
    getattr(packet, overload)
    for packet in (aten.bmm, aten.baddbmm, aten.mm, aten.addmm, aten.sum)
    for overload in packet.overloads()
}


@cache
def pattern(shapes: tuple[torch.Size, ...], dtype: torch.dtype) -> torch.Tensor:
    """Return what a result is multiplied by, given the shapes of the arguments and, last, its own."""
    generator = torch.Generator().manual_seed(hash(shapes) % 2**31)
    return 1.0 + torch.randint(-1, 2, shapes[-1], generator=generator).to(dtype) * torch.finfo(dtype).eps


class RoundsByShape(TorchDispatchMode):
    """Changes the last bits of every matrix product and sum, in a pattern that depends on the shapes alone."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Keep torch's compiler out: every operation would go through it, which takes longer than the operation."""
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if func in SUMS and result.is_floating_point():
            shapes = [argument.shape for argument in args if isinstance(argument, torch.Tensor)]
            result.mul_(pattern((*shapes, result.shape), result.dtype))
        return result
