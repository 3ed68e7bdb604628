"""Patches of images: cut out so that a convolution is a matrix product, and added back for its gradient.

On the CPU a kernel does it in one pass; elsewhere torch does, with the same results.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from backsweep.agent.learner import patches_kernels


@dataclass(frozen=True)
class Convolution:
    """The sizes of one convolution with a square kernel."""

    height: int
    width: int
    channels: int
    outputs: int
    kernel: int
    stride: int

    @property
    def out_height(self) -> int:
        """Rows of the result."""
        return (self.height - self.kernel) // self.stride + 1

    @property
    def out_width(self) -> int:
        """Columns of the result."""
        return (self.width - self.kernel) // self.stride + 1

    @property
    def places(self) -> int:
        """Patches of an image."""
        return self.out_height * self.out_width

    @property
    def patch(self) -> int:
        """Numbers in a patch."""
        return self.kernel * self.kernel * self.channels

    @property
    def _shape(self) -> tuple[int, int, int, int, int, int]:
        return self.width, self.channels, self.kernel, self.stride, self.out_height, self.out_width


def cut_patches(grid: torch.Tensor, stage: Convolution, dtype: torch.dtype, scale: float = 1.0) -> torch.Tensor:
    """Return the patches (R, B * places, patch) of a grid (R, B, height, width, channels), times `scale`."""
    runs, batch = grid.shape[:2]
    if grid.device.type == "cpu":
        patches = torch.empty(runs, batch * stage.places, stage.patch, dtype=dtype)
        flat = grid.contiguous().view(runs * batch, -1).numpy()
        target = patches.view(-1, stage.patch).numpy()
        patches_kernels.cut(flat, *stage._shape, target.dtype.type(scale), target)
        return patches
    grid = grid.to(dtype).contiguous()
    grid = grid if scale == 1.0 else grid * scale
    row, span = stage.width * stage.channels, stage.kernel * stage.channels
    view = grid.as_strided(
        (runs, batch, stage.out_height, stage.out_width, stage.kernel, span),
        (grid.stride(0), grid.stride(1), stage.stride * row, stage.stride * stage.channels, row, 1),
    )
    return view.reshape(runs, batch * stage.places, stage.patch)


def paste_patches(patches: torch.Tensor, active: torch.Tensor, stage: Convolution) -> torch.Tensor:
    """Return the grid (R, B, height, width, channels) of all patches added up, and 0 where `active` is not above 0.

    With `active` the result of a ReLU of the grid's shape, this is the way back through `cut_patches` and the ReLU.
    """
    runs = patches.shape[0]
    batch = patches.shape[1] // stage.places
    shape = (runs, batch, stage.height, stage.width, stage.channels)
    if patches.device.type == "cpu":
        grid = torch.empty(shape, dtype=patches.dtype)
        flat = patches.contiguous().view(-1, stage.patch).numpy()
        on = np.ascontiguousarray(active.reshape(runs * batch, -1).numpy())
        patches_kernels.paste_active(flat, *stage._shape, on, grid.view(runs * batch, -1).numpy())
        return grid
    pieces = patches.reshape(runs, batch, stage.out_height, stage.out_width, stage.kernel, stage.kernel, stage.channels)
    grid = patches.new_zeros(shape)
    stride = stage.stride
    tall, wide = stride * (stage.out_height - 1) + 1, stride * (stage.out_width - 1) + 1
    for i in range(stage.kernel):
        for j in range(stage.kernel):
            grid[:, :, i : i + tall : stride, j : j + wide : stride] += pieces[:, :, :, :, i, j]
    return grid * (active.view(shape) > 0)
