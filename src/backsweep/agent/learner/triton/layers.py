"""A network's layers as convolutions, and where the numbers of their patches lie."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from functools import cache
from itertools import pairwise

from backsweep.agent.learner.networks import Network
from backsweep.agent.learner.patches import Convolution


@dataclass(frozen=True)
class BatchShape:
    """The rows, successors and actions of a batch, and the blocks that hold them; kernels are compiled for one."""

    size: int
    successors: int
    actions: int
    block: int
    block_of_actions: int


@cache
def batch_shape(size: int, actions: int, successors: int | None = None) -> BatchShape:
    """Return the shape of a batch of `size` rows, with as many successors unless told otherwise."""
    return BatchShape(size, size if successors is None else successors, actions, power(size), power(actions))


def ceil_divide(whole: int, size: int) -> int:
    """Return how many pieces of a size make up a whole, the last perhaps not full."""
    return -(-whole // size)


def power(number: int) -> int:
    """Return the next power of two, from 16 on: the smallest side of a product of tiles."""
    return max(16, 1 << (number - 1).bit_length())


def power_in(number: int) -> int:
    """Return the largest power of two that divides a number."""
    return number & -number


def between(low: int, number: int, high: int) -> int:
    """Return the next power of two, within bounds."""
    return max(low, min(high, power(number)))


WORD = 4  # bytes that the first convolution converts at once
LONGEST_READ = 4  # words that one instruction reads


@dataclass(frozen=True)
class Gather:
    """Where the numbers of a layer's patches lie; kernels are compiled for one. See `triton_layers`."""

    image: int
    pitch: int
    step_y: int
    step_x: int
    span: int
    inner: int
    across: int
    places: int
    outputs: int

    @property
    def power_in_pitch(self) -> int:
        """The largest power of two that divides the pitch."""
        return power_in(self.pitch)


@dataclass(frozen=True)
class WordGather(Gather):
    """The same for images of bytes that are read as words: sizes and steps are in words.

    `aligned` and `neighbours` say how many words one instruction may read. The rest says where images lie in blocks.
    """

    neighbours: int
    aligned: int
    block: int
    kernel: int
    channels: int


@dataclass(frozen=True)
class Layer:
    """A layer as a convolution; a linear layer is one over an image of one pixel."""

    name: str
    shape: Convolution
    last: bool


@cache
def patches(shape: Convolution) -> Gather:
    """Return where the numbers of a convolution's patches lie."""
    pitch = shape.width * shape.channels
    return Gather(
        image=shape.height * pitch,
        pitch=pitch,
        step_y=shape.stride * pitch,
        step_x=shape.stride * shape.channels,
        span=shape.kernel * shape.channels,
        inner=shape.patch,
        across=shape.out_width,
        places=shape.places,
        outputs=shape.outputs,
    )


@cache
def patches_of_words(shape: Convolution, block: int, at_once: int) -> WordGather:
    """Return the same for images of bytes in blocks, where a program reads `at_once` words of a patch at a time.

    With blocks as large as the stride, the convolution is one with a stride of one over an image whose pixels are
    blocks: a patch is then a few long spans of bytes.
    """
    blocks = Convolution(
        shape.height // block,
        shape.width // block,
        shape.channels * block * block,
        shape.outputs,
        shape.kernel // block,
        shape.stride // block,
    )
    numbers = asdict(patches(blocks))
    lengths = ("image", "pitch", "step_y", "step_x", "span")
    for name in (*lengths, "inner"):
        numbers[name] //= WORD
    aligned = power_in(math.gcd(*(numbers[name] for name in lengths)))
    neighbours = power_in(math.gcd(numbers["span"], at_once))
    return WordGather(
        **numbers,
        neighbours=neighbours,
        aligned=min(aligned, neighbours, LONGEST_READ),
        block=block,
        kernel=shape.kernel,
        channels=shape.channels,
    )


def layers_of(network: Network) -> list[Layer]:
    """Return a network's layers, as convolutions all."""
    layers = []
    for index, stage in enumerate(network.stages):
        whole = index > 0 and stage.kernel == stage.height == stage.width
        # A kernel as large as the image is a linear layer.
        shape = Convolution(1, 1, stage.patch, stage.outputs, 1, 1) if whole else stage
        layers.append(Layer(f"conv{index}", shape, False))
    widths = network.widths
    for index, (inputs, outputs) in enumerate(pairwise(widths)):
        layers.append(Layer(f"linear{index}", Convolution(1, 1, inputs, outputs, 1, 1), index == len(widths) - 2))
    return layers


def first_block(network: Network) -> int:
    """Return the side of the blocks that images should lie in for a network: its first stride, where that fits."""
    stage = network.stages[0]
    fits = all(size % stage.stride == 0 for size in (stage.height, stage.width, stage.kernel))
    return stage.stride if fits else 1
