"""Matrix products that round otherwise for every shape, as libraries do on some machines.

A batched product of three lanes may take another path through the library than one of a single lane, so that results
differ in their last bits. Which machines do so cannot be known here; under this mode every machine does.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

aten = torch.ops.aten
SUMS = {aten.bmm, aten.baddbmm, aten.mm, aten.addmm, aten.sum}


class RoundsByShape(TorchDispatchMode):
    """Changes the last bits of every matrix product and sum, in a pattern that depends on the shapes alone."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if func.overloadpacket in SUMS and result.is_floating_point():
            shapes = [argument.shape for argument in args if isinstance(argument, torch.Tensor)]
            seed = hash((*shapes, result.shape)) % 2**31
            pattern = torch.randint(-1, 2, result.shape, generator=torch.Generator().manual_seed(seed))
            result.mul_(1.0 + pattern.to(result.dtype) * torch.finfo(result.dtype).eps)
        return result
