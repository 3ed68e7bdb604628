"""A network's layers as convolutions, and where the numbers of their patches lie."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

from backsweep.agent.learner.networks import Network
from backsweep.agent.learner.patches import Convolution
from backsweep.agent.learner.triton.sizes import power_in

WORD = 4  # bytes that the first convolution converts at once
LONGEST_READ = 4  # words that one instruction reads


@dataclass(frozen=True)
class Layer:
    """A layer as a convolution; a linear layer is one over a picture of one pixel."""

    name: str
    shape: Convolution
    last: bool

    @property
    def gather(self) -> dict[str, int]:
        """Where the numbers of patches lie."""
        shape = self.shape
        pitch = shape.width * shape.channels
        return {
            "IMAGE": shape.height * pitch,
            "PITCH": pitch,
            "STEP_Y": shape.stride * pitch,
            "STEP_X": shape.stride * shape.channels,
            "RUN": shape.kernel * shape.channels,
            "INNER": shape.patch,
            "ACROSS": shape.out_width,
            "PLACES": shape.places,
            "OUTPUTS": shape.outputs,
        }

    def gather_words(self, block: int, at_once: int) -> dict[str, int]:
        """The same for pictures of bytes that lie in blocks, in words, of which a program reads so many at once.

        Blocks as large as the stride make of the convolution one with a stride of one, over a picture whose pixels are
        blocks: a patch is then few long runs of bytes.
        """
        shape = self.shape
        blocks = Convolution(
            shape.height // block,
            shape.width // block,
            shape.channels * block * block,
            shape.outputs,
            shape.kernel // block,
            shape.stride // block,
        )
        numbers = Layer(self.name, blocks if block > 1 else shape, False).gather
        lengths = ("IMAGE", "PITCH", "STEP_Y", "STEP_X", "RUN")
        for name in (*lengths, "INNER"):
            numbers[name] //= WORD
        aligned = power_in(math.gcd(*(numbers[name] for name in lengths)))
        neighbours = power_in(math.gcd(numbers["RUN"], at_once))
        where = {"BLOCK": block, "KERNEL": shape.kernel, "CHANNELS": shape.channels}
        return {**numbers, **where, "NEIGHBOURS": neighbours, "ALIGNED": min(aligned, neighbours, LONGEST_READ)}


def layers_of(network: Network) -> list[Layer]:
    """Return a network's layers, as convolutions all."""
    layers = []
    for index, stage in enumerate(network.stages):
        whole = index > 0 and stage.kernel == stage.height == stage.width
        # A kernel as large as the picture is a linear layer.
        shape = Convolution(1, 1, stage.patch, stage.outputs, 1, 1) if whole else stage
        layers.append(Layer(f"conv{index}", shape, False))
    widths = network.widths
    for index, (inputs, outputs) in enumerate(pairwise(widths)):
        layers.append(Layer(f"linear{index}", Convolution(1, 1, inputs, outputs, 1, 1), index == len(widths) - 2))
    return layers


def first_block(network: Network) -> int:
    """Return in blocks of how many pixels pictures should lie for a network: of its first stride, where that fits."""
    stage = network.stages[0]
    fits = all(size % stage.stride == 0 for size in (stage.height, stage.width, stage.kernel))
    return stage.stride if fits else 1
