"""Evaluates each distinct patch of a batch's images once, on a CPU.

Images of grid worlds and of most games differ in a few places: of all the patches that the first convolution sees, most
are equal, within an image and between images. Equal patches have equal results, so every convolution needs to be
computed for the distinct ones only. What the next convolution sees are windows of their numbers, which repeat too:

    images ──distinct patches──> patches (d0, numbers)    @ weight 0 ──> results (d0, outputs)
    numbers of the patches at each place ──distinct windows──> windows (d1, kernel * kernel): rows of the results
    ... ──> ends (n, places): the rows of the last results that make up each image

Gradients go the same way back: those of equal patches add up. Patches are numbered in the order in which they occur, so
those of the first images are the first rows everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from backsweep.agent.learner import shared_patches_kernels as kernels
from backsweep.agent.learner.networks import Network, Parameters, Tape
from backsweep.agent.learner.patches import Convolution
from backsweep.agent.learner.shared_patches_kernels import Windows
from backsweep.jit.random_streams import named_generator

MOST_SHARE = 0.5
"""Patches are shared where at most this share of them is distinct; otherwise finding them is not worth it."""


@dataclass(frozen=True)
class SharedPatches:
    """The distinct patches of some images, and what the images are made of."""

    patches: torch.Tensor
    """(1, d0, numbers): the input of the first convolution."""
    windows: tuple[torch.Tensor, ...]
    """For each convolution after the first, (d * kernel * kernel): rows of the results before it."""
    ends: torch.Tensor
    """(n, places): rows of the last convolution's results."""
    reached: NDArray[np.int64]
    """(convolutions, n): how many distinct patches all images up to each have."""

    def slice(self, low: int, high: int) -> SharedPatches:
        """Return the images low..high-1; the patches stay those of all. Only the first images have a way back."""
        return replace(self, ends=self.ends[low:high], reached=self.reached[:, : 0 if low else high])


def share_patches(images: torch.Tensor, network: Network, dtype: torch.dtype) -> SharedPatches | None:
    """Return the shared patches of images (1, n, height, width, channels), or None where too few are equal."""
    first, count = network.stages[0], images.shape[1]
    flat = images.reshape(count, -1).numpy()
    words, each = _as_words(flat, first)
    found = _distinct(words, _windows(first, each))
    if found is None:
        return None
    numbers, chosen, reached = found
    patches = torch.empty(1, len(chosen), first.patch, dtype=dtype)
    target = patches[0].numpy()
    kernels.cut_chosen(
        flat, _windows(first, Fraction(first.channels)), target.dtype.type(network.scale), chosen, target
    )
    windows, every = [], [reached]
    for stage in network.stages[1:]:
        sizes = _windows(stage, Fraction(1))
        found = _distinct(numbers.reshape(count, -1).astype(np.uint32), sizes, share=1.0)
        assert found is not None
        rows = np.empty((len(found[1]), sizes.rows * sizes.span), np.int64)
        kernels.cut_chosen(numbers.reshape(count, -1), sizes, np.int64(1), found[1], rows)
        numbers, _, reached = found
        windows.append(torch.from_numpy(rows.reshape(-1)))
        every.append(reached)
    return SharedPatches(patches, tuple(windows), torch.from_numpy(numbers.reshape(count, -1)), np.stack(every))


def _windows(stage: Convolution, each: Fraction) -> Windows:
    """Return the windows of a convolution over grids with that many numbers at each place."""
    width, span, step = (int(size * each) for size in (stage.width, stage.kernel, stage.stride))
    return Windows(width, span, stage.kernel, step, stage.stride, stage.out_width, stage.out_height)


def _as_words(flat: NDArray[Any], stage: Convolution) -> tuple[NDArray[np.uint32], Fraction]:
    """Return images (n, numbers) as 32-bit words, and how many words there are at each place."""
    each = Fraction(stage.channels * flat.itemsize, 4)
    if all((size * each).denominator == 1 for size in (stage.width, stage.kernel, stage.stride)):
        return np.ascontiguousarray(flat).view(np.uint32), each
    # Numbers of one or two bytes that do not fill words: a word for each.
    return np.ascontiguousarray(flat).view(f"u{flat.itemsize}").astype(np.uint32), Fraction(stage.channels)


def _distinct(
    grids: NDArray[np.uint32], windows: Windows, share: float = MOST_SHARE
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]] | None:
    """Return the number of every window, the first window with each number, and how many each grid reached."""
    total = len(grids) * windows.down * windows.across
    most = max(int(share * total), 1)
    index, chosen, reached = np.empty(total, np.int64), np.empty(most, np.int64), np.empty(len(grids), np.int64)
    found = kernels.distinct_windows(grids, windows, *_numbers_of(windows), most, index, chosen, reached)
    return None if found < 0 else (index, chosen[:found], reached)


@cache
def _numbers_of(windows: Windows) -> tuple[NDArray[np.int64], NDArray[np.uint32]]:
    """Return where a window's numbers are from its beginning, and the factors of its hash."""
    offsets = np.arange(windows.rows)[:, None] * windows.width + np.arange(windows.span)
    # 32-bit factors, which processors multiply with 32-bit numbers several at a time.
    drawn = named_generator(0, "patch hash").integers(0, 1 << 31, offsets.size, np.uint32)
    return offsets.reshape(-1), drawn * np.uint32(2) + np.uint32(1)


@dataclass(frozen=True)
class SharedTape(Tape):
    """What `forward_with_tape` keeps: `inputs` are those of the linear layers, `grids` the convolutions' results."""

    rows: tuple[torch.Tensor, ...] = ()
    """(1, d, numbers): what went into each convolution."""
    shared: SharedPatches | None = None

    def first(self, rows: int, of: int) -> SharedTape:
        assert self.shared is not None
        inputs = tuple(matrix[:, : matrix.shape[1] // of * rows] for matrix in self.inputs)
        return replace(self, inputs=inputs, shared=self.shared.slice(0, rows))


class SharedNetwork:
    """The network's values and gradients from shared patches. Every tensor has one run."""

    def __init__(self, network: Network) -> None:
        self._network = network

    def forward_with_tape(self, parameters: Parameters, prepared: SharedPatches) -> tuple[torch.Tensor, Tape]:
        """Return the values (1, n, A) and what `backward` needs."""
        rows = prepared.patches
        inputs: list[torch.Tensor] = []
        results: list[torch.Tensor] = []
        for index, stage in enumerate(self._network.stages):
            if index:
                rows = _gathered(results[-1], prepared.windows[index - 1], stage.patch)
            inputs.append(rows)
            weight, bias = parameters[f"conv{index}.weight"], parameters[f"conv{index}.bias"]
            results.append(torch.baddbmm(bias, rows, weight).relu_())
        ends = prepared.ends
        flat = _gathered(results[-1], ends.reshape(-1), ends.shape[1] * self._network.stages[-1].outputs)
        values, linear = self._network.forward_linear(parameters, flat)
        return values, SharedTape(linear, tuple(results), tuple(inputs), prepared)

    def backward(self, parameters: Parameters, tape: Tape, gradient: torch.Tensor, out: Parameters) -> None:
        """Write the gradient of every parameter into `out`, given that of the first images' values (1, n, A)."""
        assert isinstance(tape, SharedTape)
        shared, stages = tape.shared, self._network.stages
        assert shared is not None
        counts = shared.reached[:, -1].tolist()  # the first images' patches are the first rows
        gradient = self._network.backward_linear(parameters, list(tape.inputs), gradient, out)
        places = shared.ends.reshape(-1)
        for index in range(len(stages) - 1, -1, -1):
            result = tape.grids[index][:, : counts[index]]
            gradient = _added(gradient.reshape(-1, stages[index].outputs), places, result)
            torch.bmm(tape.rows[index][:, : counts[index]].mT, gradient, out=out[f"conv{index}.weight"])
            torch.sum(gradient, dim=1, keepdim=True, out=out[f"conv{index}.bias"])
            if index:
                gradient = torch.bmm(gradient, parameters[f"conv{index}.weight"].mT)
                places = shared.windows[index - 1][: counts[index] * stages[index].kernel ** 2]


def _gathered(results: torch.Tensor, index: torch.Tensor, width: int) -> torch.Tensor:
    """Return rows of results (1, d, outputs) by their index, next to each other in rows of `width` numbers."""
    rows = torch.empty(len(index), results.shape[-1], dtype=results.dtype)
    kernels.gather_rows(results[0].numpy(), index.numpy(), rows.numpy())
    return rows.view(1, -1, width)


def _added(gradient: torch.Tensor, places: torch.Tensor, result: torch.Tensor) -> torch.Tensor:
    """Return the gradient (1, d, outputs) of what came out of a ReLU as `result`, of whose rows `places` were used."""
    total = torch.empty(1, *result.shape[1:], dtype=result.dtype)
    kernels.add_rows(gradient.numpy(), places.numpy(), result[0].numpy(), total[0].numpy())
    return total
