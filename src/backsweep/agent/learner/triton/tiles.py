"""How the kernels' work is cut, as measured for the networks of the experiments (`benchmarks/tiles.py`).

Chosen by the registers and shared memory of the compiled kernels, and measured as a whole only (`benchmarks/learner.py
--choices`): `weight_step_tiles`, `forward_pieces`, and what `few_rows` adds for acts on large images.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from backsweep.agent.learner.triton.layers import Layer, between, ceil_divide, power

WIDE = 1_024  # inner numbers from which on a linear layer is cut into pieces where it has few programs
MOST_PIECES = 8
MOST_KEPT = 32_768  # half-precision weights that a program keeps: 64 KB of its multiprocessor's memory


@dataclass(frozen=True)
class Tiles:
    """How a kernel's work is cut.

    Rows, outputs and inner numbers of a program at a time; warps; loads ahead of their use; and how many blocks of rows
    a program does with weights that it keeps, 0 for one block with weights read as they are needed.
    """

    m: int
    n: int
    k: int
    warps: int = 4
    stages: int = 2
    repeats: int = 0

    def programs(self, rows: int) -> int:
        """Return the number of programs for a number of rows."""
        return ceil_divide(rows, self.m * max(1, self.repeats))

    @property
    def options(self) -> dict[str, int]:
        """The options of a launch."""
        return {"num_warps": self.warps, "num_stages": self.stages}


def first_forward_tiles(layer: Layer, rows: int, runs: int) -> Tiles:
    """Return the tiles of the first convolution; inner numbers are words."""
    outputs = min(64, power(layer.shape.outputs))
    if rows <= 512:
        return Tiles(64, outputs, 16, 4, 1, 1)
    return Tiles(128, outputs, 16, 4, 1, 4 if rows * runs > 192_000 else 1)


def forward_tiles(layer: Layer, rows: int, runs: int) -> Tiles:
    """Return the tiles of another layer."""
    outputs, inner = min(64, power(layer.shape.outputs)), power(layer.shape.patch)
    if layer.last:
        if rows <= 64 or rows * runs <= 2_048:
            return Tiles(16, outputs, min(64, inner), 4, 3)
        return (
            Tiles(32, outputs, min(64, inner), 2, 3)
            if rows * runs <= 4_096
            else Tiles(64, outputs, min(64, inner), 4, 3)
        )
    if few_rows(layer, rows):
        if layer.shape.stride > 1:
            return Tiles(between(16, rows, 32), min(16, outputs), min(256, inner), 4, 2)
        return Tiles(between(16, rows, 32), min(32, outputs), min(128 if inner <= 1024 else 64, inner), 4, 3)
    if layer.shape.stride > 1 and inner * outputs <= MOST_KEPT:
        small = rows * runs <= 36_000
        return Tiles(64 if small else 128, outputs, min(128 if small else 64, inner), 4, 1, 2)
    wide = layer.shape.patch >= 512 and layer.shape.stride == 1
    return Tiles(between(16, rows, 64 if wide and rows <= 128 else 128), outputs, min(128 if wide else 64, inner), 4, 2)


def few_rows(layer: Layer, rows: int) -> bool:
    """Return whether a layer has only the rows of an act, one image of each run.

    With the tiles of a batch that would be one program for each run, where most multiprocessors have nothing to do.
    """
    return rows <= (128 if layer.shape.places > 1 else 16)


def forward_pieces(layer: Layer, tiles: Tiles, rows: int, runs: int) -> int:
    """Return into how many pieces a layer's inner numbers are cut, so that all multiprocessors have work.

    Few runs have few programs, each with a long row of rounds that wait for the memory one after the other. Pieces have
    at least as many rounds as there are stages. An H200 has 132 multiprocessors; the aim is two programs of a batch on
    each, as many as its shared memory holds, and six of an act, which are smaller. 400 programs of an act, those of 25
    runs, took 10% longer in two pieces; 80, those of five runs, took 10% less time in pieces.
    """
    if layer.last or layer.shape.places > 1 or layer.shape.patch < WIDE:
        return 1
    programs = tiles.programs(rows) * ceil_divide(layer.shape.outputs, tiles.n) * runs
    enough = 792 if few_rows(layer, rows) else 264
    rounds = ceil_divide(layer.shape.patch, tiles.k)
    return max(1, min(enough // programs, rounds // tiles.stages, MOST_PIECES))


def weight_gradient_tiles(layer: Layer, rows: int) -> Tiles:
    """Return the tiles of a weight gradient."""
    outputs, inner = min(64, power(layer.shape.outputs)), power(layer.shape.patch)
    if layer.last:
        tiles = Tiles(16, outputs, min(128, inner), 4, 3)
    elif layer.shape.patch >= 512 and layer.shape.stride == 1:
        tiles = Tiles(between(16, rows, 64), outputs, 128, 4, 3)
    else:
        tiles = Tiles(between(16, rows, 64), outputs, min(64, inner), 4, 3)
    return replace(tiles, stages=_stages(tiles, rows))


def _stages(tiles: Tiles, rows: int) -> int:
    """Return how many stages a product over rows may have.

    Loads can be ahead by no more rounds than there are. Triton 3.6 accepts more, but with 4 stages and one round the
    results differed now and then while other processes used the GPU (`benchmarks/repeatability.py`).
    """
    return min(tiles.stages, ceil_divide(rows, tiles.m))


def weight_step_tiles(layer: Layer, rows: int) -> Tiles:
    """Return the tiles of a linear layer's weight gradient with Adam's step.

    Memory bounds it. A program holds weights and both moments in registers at the same time, so tiles are small, and
    several programs of a multiprocessor have their reads under way.
    """
    outputs, inner = layer.shape.outputs, layer.shape.patch
    if layer.last:
        tiles = Tiles(16, between(16, outputs, 64), between(16, inner, 64), 4, 3)
    else:
        tiles = Tiles(between(16, rows, 64), between(16, outputs, 64), between(16, inner, 32), 4, 2)
    return replace(tiles, stages=_stages(tiles, rows))


def input_gradient_tiles(layer: Layer, rows: int, runs: int) -> Tiles:
    """Return the tiles of an input gradient."""
    shape = layer.shape
    outputs, channels = min(64, power(shape.outputs)), power(shape.channels)
    if layer.last:
        return Tiles(between(16, rows, 64), outputs, min(128, channels), 4, 2)
    if shape.stride > 1 and ceil_divide(shape.kernel, shape.stride) ** 2 * power(shape.outputs) * 64 <= MOST_KEPT:
        return Tiles(64, outputs, min(64, channels), 4, 1, 3)
    if shape.kernel == 1 and shape.outputs >= 256:
        return Tiles(between(16, rows, 32), outputs, min(64, channels), 4, 3)
    return Tiles(between(16, rows, 128 if shape.kernel == 3 else 64), outputs, min(64, channels), 4, 2)


def first_weight_gradient_tiles(layer: Layer) -> Tiles:
    """Return the tiles of the first convolution's weight gradient; inner numbers are words."""
    return Tiles(128, power(layer.shape.outputs), 16, 4, 1)
