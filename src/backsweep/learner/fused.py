"""The arithmetic of an update on a GPU, with kernels that keep what they can off the device's memory.

For float32 image networks over a bank of uint8 pictures. The first convolution reads pictures from the bank by row
number; no convolution's patches are ever written out; the way back through a convolution gathers instead of adding
patches up; an optimiser's step is one pass.

Precision. Parameters, moments, gradients of parameters, Q-values and all sums are float32. Factors of products are
rounded to half precision, to nearest: 11 significant bits, as many as TF32 keeps (which cuts off instead). Pixels are
exact. What half precision lacks is range, and each kind of number is kept inside it:

- Weights and what flows forward lie mostly between 6e-5, below which digits begin to go, and 65504. Errors of smaller
  numbers are absolute (3e-8), nothing beside the others they are added to. At 65504 activations stop growing; with
  Q-values of hundreds they are far from it.
- What flows back is proportional to TD errors and can be tiny, so each lane's gradient is first multiplied with the
  power of two that brings its largest number to between 1 and 2. That is exact, and undone exactly in float32.

The last layer, whose results are the Q-values, is float32 throughout, forward and back: rounding Q-values of hundreds
to 11 bits would be wrong by tenths.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import pairwise

import torch

from backsweep.learner import triton_kernels as kernels
from backsweep.learner.arithmetic import Arithmetic, Errors, Looked, PreparedRows
from backsweep.learner.bank import ObservationBank
from backsweep.learner.branches import Branch
from backsweep.learner.double_dqn import Learner
from backsweep.learner.networks import Network, Parameters, Tape
from backsweep.learner.optimisers import SMALLEST_SQUARE, Corrections, Optimiser
from backsweep.learner.packed import PackedArrays
from backsweep.learner.patches import Convolution

WORD = 4  # bytes that the first convolution converts at once
LONGEST_READ = 4  # words that one instruction reads
OPTIMISER_BLOCK = 1024
MOVE_BLOCK = 256
ENOUGH_PROGRAMS = 1024  # about eight for each multiprocessor
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
        """Return how many programs do so many rows."""
        return _parts(rows, self.m * max(1, self.repeats))


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

    def gather_words(self, block: int, tiles: Tiles) -> dict[str, int]:
        """The same for pictures of bytes that lie in blocks, in words.

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
        aligned = _power_in(math.gcd(*(numbers[name] for name in lengths)))
        neighbours = _power_in(math.gcd(numbers["RUN"], tiles.k))
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


class FusedNetwork:
    """A network whose inputs are row numbers (L, n) of a bank."""

    def __init__(self, network: Network, bank: ObservationBank) -> None:
        self.scale = network.scale
        self.non_negative = network.non_negative
        self.layers = layers_of(network)
        bank.cut_into_blocks(first_block(network))
        self._block = bank.block
        self._words = bank.rows.view(len(bank.rows), -1).view(torch.int32)
        self._branch = Branch(bank.device)

    def forward(self, parameters: Parameters, prepared: torch.Tensor) -> torch.Tensor:
        """Return the values (L, n, A)."""
        return self.forward_with_tape(parameters, prepared)[0]

    def forward_with_tape(self, parameters: Parameters, prepared: torch.Tensor) -> tuple[torch.Tensor, Tape]:
        """Return the values (L, n, A) and what `backward` needs."""
        tape, flowing = [], prepared
        for index, layer in enumerate(self.layers):
            tape.append(flowing)
            exact = layer.last or self.layers[index + 1].last
            dtype = torch.float32 if exact else torch.float16
            launch = self._forward_layer if index else self._forward_first
            flowing = launch(layer, parameters, flowing, dtype)
        if self.non_negative:
            tape.append(flowing)
            flowing = torch.nn.functional.softplus(flowing)
        return flowing, Tape(tuple(tape))

    def best(self, parameters: Parameters, rows: torch.Tensor, out: torch.Tensor) -> None:
        """Write the best actions (L,) for one row (L, 1) of each lane. Both may lie in page-locked host memory."""
        flowing = rows
        for index, layer in enumerate(self.layers[:-1]):
            dtype = torch.float32 if self.layers[index + 1].last else torch.float16
            launch = self._forward_layer if index else self._forward_first
            flowing = launch(layer, parameters, flowing, dtype)
        last = self.layers[-1]
        weight, bias = parameters[f"{last.name}.weight"], parameters[f"{last.name}.bias"]
        kernels.best_actions[(len(rows),)](
            flowing,
            weight,
            bias,
            weight.stride(0),
            out,
            INNER=last.shape.patch,
            ACTIONS=last.shape.outputs,
            BLOCK_I=_power(last.shape.patch),
            BLOCK_A=_power(last.shape.outputs),
        )

    def backward(self, parameters: Parameters, tape: Tape, gradient: torch.Tensor, out: Parameters) -> None:
        """Write the gradient of every parameter into `out`, given the gradient (L, B, A) of the values."""
        inputs = list(tape.inputs)
        if self.non_negative:
            gradient = gradient * torch.sigmoid(inputs.pop())
        flowing, undo = _scaled(gradient)
        read_beside = [flowing]  # memory of what a branch reads must not be given to others before its end
        for index in range(len(self.layers) - 1, 0, -1):
            layer, went_in = self.layers[index], inputs.pop()
            with self._branch:
                self._weight_gradient(layer, went_in, flowing, undo, out)
            flowing = self._input_gradient(layer, parameters, went_in, flowing)
            read_beside.append(flowing)
        self._first_weight_gradient(self.layers[0], inputs.pop(), flowing, undo, out)
        self._branch.join()

    # -- launches -------------------------------------------------------------------------------------------------

    def _forward_first(
        self, layer: Layer, parameters: Parameters, rows: torch.Tensor, dtype: torch.dtype
    ) -> torch.Tensor:
        (lanes, images), shape = rows.shape, layer.shape
        weight, bias = parameters[f"{layer.name}.weight"], parameters[f"{layer.name}.bias"]
        total = images * shape.places
        out = torch.empty(lanes, images, shape.places * shape.outputs, dtype=dtype, device=weight.device)
        tiles = first_forward_tiles(layer, total, lanes)
        kernels.first_forward[(tiles.programs(total), _parts(shape.outputs, tiles.n), lanes)](
            self._words,
            rows,
            rows.stride(0),
            weight,
            bias,
            weight.stride(0),
            out,
            total,
            self.scale,
            **layer.gather_words(self._block, tiles),
            **_launch(tiles),
            REPEATS=max(1, tiles.repeats),
        )
        return out

    def _forward_layer(
        self, layer: Layer, parameters: Parameters, inputs: torch.Tensor, dtype: torch.dtype
    ) -> torch.Tensor:
        (lanes, images), shape = inputs.shape[:2], layer.shape
        weight, bias = parameters[f"{layer.name}.weight"], parameters[f"{layer.name}.bias"]
        total = images * shape.places
        out = torch.empty(lanes, images, shape.places * shape.outputs, dtype=dtype, device=inputs.device)
        tiles = forward_tiles(layer, total, lanes)
        kernels.forward[(tiles.programs(total), _parts(shape.outputs, tiles.n), lanes)](
            inputs,
            inputs.stride(0),
            weight,
            bias,
            weight.stride(0),
            out,
            total,
            **layer.gather,
            RELU=not layer.last,
            EXACT=layer.last,
            **_launch(tiles),
            REPEATS=tiles.repeats,
        )
        return out

    def _weight_gradient(
        self, layer: Layer, inputs: torch.Tensor, gradient: torch.Tensor, undo: torch.Tensor, out: Parameters
    ) -> None:
        (lanes, images), shape = inputs.shape[:2], layer.shape
        weight, bias = out[f"{layer.name}.weight"], out[f"{layer.name}.bias"]
        tiles = weight_gradient_tiles(layer, images * shape.places)
        kernels.weight_gradient[(_parts(shape.patch, tiles.k), _parts(shape.outputs, tiles.n), lanes)](
            inputs,
            inputs.stride(0),
            gradient,
            undo,
            weight,
            bias,
            weight.stride(0),
            images * shape.places,
            **layer.gather,
            EXACT=layer.last,
            **_launch(tiles),
        )

    def _input_gradient(
        self, layer: Layer, parameters: Parameters, inputs: torch.Tensor, gradient: torch.Tensor
    ) -> torch.Tensor:
        (lanes, images), shape = inputs.shape[:2], layer.shape
        weight = parameters[f"{layer.name}.weight"]
        out = torch.empty(inputs.shape, dtype=torch.float16, device=inputs.device)
        tall, wide = _parts(shape.height, shape.stride), _parts(shape.width, shape.stride)
        tiles = input_gradient_tiles(layer, images * tall * wide, lanes)
        across = shape.stride**2 * _parts(shape.channels, tiles.k)
        kernels.input_gradient[(tiles.programs(images * tall * wide), across, lanes)](
            gradient,
            weight,
            weight.stride(0),
            inputs,
            inputs.stride(0),
            out,
            images,
            HEIGHT=shape.height,
            WIDTH=shape.width,
            CHANNELS=shape.channels,
            KERNEL=shape.kernel,
            STRIDE=shape.stride,
            DOWN=shape.out_height,
            ACROSS=shape.out_width,
            OUTPUTS=shape.outputs,
            EXACT=layer.last,
            **_launch(tiles),
            REPEATS=tiles.repeats,
        )
        return out

    def _first_weight_gradient(
        self, layer: Layer, rows: torch.Tensor, gradient: torch.Tensor, undo: torch.Tensor, out: Parameters
    ) -> None:
        (lanes, images), shape = rows.shape, layer.shape
        weight, bias = out[f"{layer.name}.weight"], out[f"{layer.name}.bias"]
        total, inner = images * shape.places, shape.patch // WORD
        tiles = first_weight_gradient_tiles(layer)
        programs = _parts(inner, tiles.k)
        # A lane's rows are done in parts that are added up in the end, so that all multiprocessors have work.
        blocks = _parts(total, tiles.m)
        parts = max(1, min(blocks // 4, _parts(ENOUGH_PROGRAMS, programs * lanes)))
        per_part = _parts(blocks, parts) * tiles.m
        between = bias.storage_offset() - weight.storage_offset()  # the weight, and padding up to the bias
        span = between + shape.outputs
        make = torch.empty if between == shape.patch * shape.outputs else torch.zeros
        partial = make((lanes, parts, span), dtype=torch.float32, device=rows.device)
        kernels.first_weight_gradient[(programs, parts, lanes)](
            self._words,
            rows,
            rows.stride(0),
            gradient,
            undo,
            partial,
            partial[:, :, between:],
            span,
            total,
            self.scale,
            per_part,
            **layer.gather_words(self._block, tiles),
            **_launch(tiles),
        )
        torch.sum(partial, dim=1, out=weight.as_strided((lanes, span), (weight.stride(0), 1)))


class FusedArithmetic(Arithmetic):
    """The arithmetic of one learner over one bank. `PreparedRows.prepared` holds row numbers (L, 2 B)."""

    def __init__(self, learner: Learner, bank: ObservationBank) -> None:
        self.network: FusedNetwork = FusedNetwork(learner.network, bank)
        self.error_network: FusedNetwork = self.network
        if learner.errors is not None:
            # `weigh` does what makes an error network's values positive.
            self.error_network = FusedNetwork(replace(learner.errors.network, non_negative=False), bank)
        self.target_branch, self.error_branch = Branch(bank.device), Branch(bank.device)

    def move(self, source: torch.Tensor, out: torch.Tensor) -> None:
        """Copy, by a kernel: in a recorded program that begins without the ten microseconds that a copy takes to."""
        numbers = source.numel()
        kernels.move[(_parts(numbers, MOVE_BLOCK),)](source, out, numbers, BLOCK=MOVE_BLOCK)

    def act(self, parameters: Parameters, prepared: torch.Tensor, best: PackedArrays) -> None:
        """Write the best actions for one row of each lane into the host's memory."""
        self.network.best(parameters, prepared, best.pinned["best"])

    def weigh(
        self,
        looked: Looked,
        rows: PreparedRows,
        found: Errors,
        temperature: torch.Tensor,
        prediction_sum: torch.Tensor,
        *,
        chosen_next: bool,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return weights (L, B) and the error networks' gradient (L, B, A), before the softplus."""
        (lanes, size), actions = rows.action.shape, looked.values.shape[-1]
        weight, gradient = torch.empty_like(rows.weight), torch.empty_like(looked.values)
        assert found.next_action is not None
        kernels.discor_weights[(lanes,)](
            looked.values,
            looked.following,
            rows.action,
            found.next_action,
            found.td_error,
            rows.discount,
            rows.weight,
            temperature,
            prediction_sum,
            weight,
            gradient,
            size,
            ACTIONS=actions,
            CHOSEN=chosen_next,
            BLOCK=_power(size),
            BLOCK_A=_power(actions),
        )
        return weight, gradient

    def errors(self, values: torch.Tensor, next_target: torch.Tensor | None, rows: PreparedRows) -> Errors:
        """Return the TD errors of values (L, 2 B, A), the successors' behind the observations'."""
        assert next_target is not None
        (lanes, size), actions = rows.action.shape, values.shape[-1]
        chosen, target, error = (torch.empty_like(rows.reward) for _ in range(3))
        next_action = torch.empty_like(rows.action)
        kernels.td_errors[(lanes,)](
            values,
            next_target,
            rows.action,
            rows.reward,
            rows.discount,
            rows.reward if rows.known is None else rows.known,
            chosen,
            target,
            error,
            next_action,
            size,
            ACTIONS=actions,
            KNOWN=rows.known is not None,
            BLOCK=_power(size),
            BLOCK_A=_power(actions),
        )
        return Errors(chosen, target, error, next_action.unsqueeze(-1))

    def gradient(
        self, found: Errors, weight: torch.Tensor, action: torch.Tensor, actions: int, sums: torch.Tensor
    ) -> torch.Tensor:
        """Return the gradient (L, B, A) of the weighted Huber loss, and add this update's statistics to `sums`."""
        lanes, size = weight.shape
        gradient = weight.new_empty(lanes, size, actions)
        kernels.huber_and_statistics[(lanes,)](
            found.td_error,
            weight,
            found.chosen,
            found.target,
            action,
            gradient,
            sums,
            size,
            ACTIONS=actions,
            BLOCK=_power(size),
            BLOCK_A=_power(actions),
        )
        return gradient

    def step(
        self, optimiser: Optimiser, parameters: torch.Tensor, gradient: torch.Tensor, corrections: Corrections
    ) -> None:
        """Let the optimiser change `parameters` along `gradient`, in one pass."""
        settings, numbers = optimiser.settings, parameters.numel()
        if settings.kind == "sgd" or not isinstance(corrections, torch.Tensor):
            optimiser.apply(parameters, gradient, corrections)
            return
        optimiser.clip(gradient)
        grid = (_parts(numbers, OPTIMISER_BLOCK),)
        if settings.kind == "rmsprop":
            kernels.rmsprop[grid](
                parameters,
                gradient,
                optimiser.square,
                numbers,
                settings.rmsprop_alpha,
                1.0 - settings.rmsprop_alpha,
                settings.rmsprop_eps,
                settings.learning_rate,
                BLOCK=OPTIMISER_BLOCK,
            )
            return
        kernels.adam[grid](
            parameters,
            gradient,
            optimiser.mean,
            optimiser.square,
            corrections,
            numbers,
            1.0 - settings.adam_beta1,
            settings.adam_beta2,
            1.0 - settings.adam_beta2,
            settings.adam_eps,
            SMALLEST_SQUARE,
            BLOCK=OPTIMISER_BLOCK,
        )


# -- how work is cut: as measured for the networks of the experiments ----------------------------------------------


def first_forward_tiles(layer: Layer, rows: int, lanes: int) -> Tiles:
    """Return the tiles of the first convolution; inner numbers are words."""
    outputs = min(64, _power(layer.shape.outputs))
    if rows <= 512:
        return Tiles(64, outputs, 16, 4, 1, 1)
    return Tiles(128, outputs, 16, 4, 1, 4 if rows * lanes > 192_000 else 1)


def forward_tiles(layer: Layer, rows: int, lanes: int) -> Tiles:
    """Return the tiles of another layer."""
    outputs, inner = min(64, _power(layer.shape.outputs)), _power(layer.shape.patch)
    if layer.last:
        if rows <= 64 or rows * lanes <= 2_048:
            return Tiles(16, outputs, min(64, inner), 4, 3)
        return (
            Tiles(32, outputs, min(64, inner), 2, 3)
            if rows * lanes <= 4_096
            else Tiles(64, outputs, min(64, inner), 4, 3)
        )
    if rows <= 16:
        if layer.shape.stride > 1:
            return Tiles(16, min(16, outputs), min(256, inner), 4, 2)
        return Tiles(16, min(32, outputs), min(128 if inner <= 1024 else 64, inner), 4, 3)
    if layer.shape.stride > 1 and inner * outputs <= MOST_KEPT:
        small = rows * lanes <= 36_000
        return Tiles(64 if small else 128, outputs, min(128 if small else 64, inner), 4, 1, 2)
    wide = layer.shape.patch >= 512 and layer.shape.stride == 1
    return Tiles(
        _between(16, rows, 64 if wide and rows <= 128 else 128), outputs, min(128 if wide else 64, inner), 4, 2
    )


def weight_gradient_tiles(layer: Layer, rows: int) -> Tiles:
    """Return the tiles of a weight gradient."""
    outputs, inner = min(64, _power(layer.shape.outputs)), _power(layer.shape.patch)
    if layer.last:
        return Tiles(16, outputs, min(128, inner), 4, 3)
    if layer.shape.patch >= 512 and layer.shape.stride == 1:
        return Tiles(_between(16, rows, 64), outputs, 128, 4, 4 if rows <= 32 else 3)
    return Tiles(_between(16, rows, 64), outputs, min(64, inner), 4, 3)


def input_gradient_tiles(layer: Layer, rows: int, lanes: int) -> Tiles:
    """Return the tiles of an input gradient."""
    shape = layer.shape
    outputs, channels = min(64, _power(shape.outputs)), _power(shape.channels)
    if layer.last:
        return Tiles(_between(16, rows, 64), outputs, min(128, channels), 4, 2)
    if shape.stride > 1 and _parts(shape.kernel, shape.stride) ** 2 * _power(shape.outputs) * 64 <= MOST_KEPT:
        return Tiles(64, outputs, min(64, channels), 4, 1, 3)
    if shape.kernel == 1 and shape.outputs >= 256:
        return Tiles(_between(16, rows, 32), outputs, min(64, channels), 4, 3)
    return Tiles(_between(16, rows, 128 if shape.kernel == 3 else 64), outputs, min(64, channels), 4, 2)


def first_weight_gradient_tiles(layer: Layer) -> Tiles:
    """Return the tiles of the first convolution's weight gradient; inner numbers are words."""
    return Tiles(128, _power(layer.shape.outputs), 16, 4, 1)


# -- helpers ----------------------------------------------------------------------------------------------------------


def _scaled(gradient: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the gradient with each lane's largest number brought to between 1 and 2, and what undoes that."""
    out, undo = torch.empty_like(gradient), gradient.new_empty(len(gradient))
    numbers = gradient[0].numel()
    kernels.scale_gradient[(len(gradient),)](gradient, out, undo, numbers, BLOCK=_power(numbers))
    return out, undo


def _launch(tiles: Tiles) -> dict[str, int]:
    return {
        "BLOCK_M": tiles.m,
        "BLOCK_N": tiles.n,
        "BLOCK_K": tiles.k,
        "num_warps": tiles.warps,
        "num_stages": tiles.stages,
    }


def _parts(whole: int, part: int) -> int:
    return -(-whole // part)


def _power(number: int) -> int:
    """Return the next power of two, from 16 on: the smallest side of a product of tiles."""
    return max(16, 1 << (number - 1).bit_length())


def _power_in(number: int) -> int:
    """Return the largest power of two that divides a number."""
    return number & -number


def _between(low: int, number: int, high: int) -> int:
    return max(low, min(high, _power(number)))
