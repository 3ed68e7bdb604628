"""The networks of many runs, as Triton kernels."""

from __future__ import annotations

import torch

from backsweep.agent.learner.branches import Branch
from backsweep.agent.learner.device_observations import DeviceObservations
from backsweep.agent.learner.networks import Network, Parameters, Tape
from backsweep.agent.learner.triton import tiles as cuts
from backsweep.agent.learner.triton import triton_batches, triton_gradients, triton_layers, triton_pictures
from backsweep.agent.learner.triton.adam import AdamStep, LayerStep
from backsweep.agent.learner.triton.layers import (
    WORD,
    Layer,
    ceil_divide,
    first_block,
    layers_of,
    patches,
    patches_of_words,
    power,
)

ENOUGH_PROGRAMS = 1024  # about eight for each multiprocessor
ADD_BLOCK = 512


class FusedNetwork:
    """A network whose inputs are row numbers (R, n) of a `DeviceObservations`, which it cuts into blocks.

    Values that a network passes through a softplus are those before it.
    """

    def __init__(self, network: Network, observations: DeviceObservations) -> None:
        self.scale = network.scale
        self.layers = layers_of(network)
        observations.cut_into_blocks(first_block(network))
        self._block = observations.block
        self._words = observations.rows.view(len(observations.rows), -1).view(torch.int32)
        self._branch, self._step_branch = Branch(observations.device), Branch(observations.device)
        self.layout = network.layout
        # The layers from this one on are linear.
        self._first_linear = next(index for index in range(1, len(self.layers)) if self.layers[index].shape.places == 1)

    def forward(self, parameters: Parameters, prepared: torch.Tensor) -> torch.Tensor:
        """Return the values (R, n, A)."""
        return self.forward_with_tape(parameters, prepared)[0]

    def forward_with_tape(self, parameters: Parameters, prepared: torch.Tensor) -> tuple[torch.Tensor, Tape]:
        """Return the values (R, n, A) and what `backward` needs."""
        inputs = self._up_to_the_last(parameters, prepared)
        return self._forward_layer(self.layers[-1], parameters, inputs[-1], torch.float32), Tape(tuple(inputs))

    def _up_to_the_last(self, parameters: Parameters, rows: torch.Tensor) -> list[torch.Tensor]:
        """Return what goes into each layer; what goes into the last is float32."""
        inputs = [rows]
        for index, layer in enumerate(self.layers[:-1]):
            dtype = torch.float32 if self.layers[index + 1].last else torch.float16
            launch = self._forward_layer if index else self._forward_first
            inputs.append(launch(layer, parameters, inputs[-1], dtype))
        return inputs

    def best(self, parameters: Parameters, rows: torch.Tensor, out: torch.Tensor) -> None:
        """Write the best actions (R,) for one row (R, 1) of each run. Both may be in page-locked host memory."""
        last = self.layers[-1]
        weight, bias = parameters[f"{last.name}.weight"], parameters[f"{last.name}.bias"]
        triton_batches.best_actions[(len(rows),)](
            self._up_to_the_last(parameters, rows)[-1],
            weight,
            bias,
            weight.stride(0),
            out,
            INNER=last.shape.patch,
            ACTIONS=last.shape.outputs,
            BLOCK_I=power(last.shape.patch),
            BLOCK_A=power(last.shape.outputs),
        )

    @property
    def before_linear(self) -> int:
        """How many numbers of a run lie before the parameters of its linear layers."""
        return self.layout.start(f"{self.layers[self._first_linear].name}.weight")

    def backward(
        self,
        parameters: Parameters,
        tape: Tape,
        gradient: torch.Tensor,
        out: Parameters,
        step: AdamStep | None = None,
    ) -> None:
        """Write the gradient of every parameter into `out`, given the gradient (R, B, A) of the values.

        Given a step of Adam, linear layers take it at once and their gradients are not written.
        """
        inputs = list(tape.inputs)
        flowing, undo = _scaled(gradient)
        in_use = [flowing]  # the memory of what a branch reads must not be reused before the branch ends
        for index in range(len(self.layers) - 1, 0, -1):
            layer, went_in = self.layers[index], inputs.pop()
            stepping = step if index >= self._first_linear else None
            if stepping is None:
                with self._branch:
                    self._weight_gradient(layer, went_in, flowing, undo, out)
            in_use.append(self._input_gradient(layer, parameters, went_in, flowing))
            if stepping is not None:
                # Only now: the way back through the layer has read the weights that the step changes.
                with self._step_branch:
                    self._weight_step(layer, went_in, flowing, undo, parameters, stepping)
            flowing = in_use[-1]
        self._first_weight_gradient(self.layers[0], inputs.pop(), flowing, undo, out)
        self._branch.join()
        self._step_branch.join()

    # -- launches -------------------------------------------------------------------------------------------------

    def _forward_first(
        self, layer: Layer, parameters: Parameters, rows: torch.Tensor, dtype: torch.dtype
    ) -> torch.Tensor:
        (runs, images), shape = rows.shape, layer.shape
        weight, bias = parameters[f"{layer.name}.weight"], parameters[f"{layer.name}.bias"]
        total = images * shape.places
        out = torch.empty(runs, images, shape.places * shape.outputs, dtype=dtype, device=weight.device)
        tiles = cuts.first_forward_tiles(layer, total, runs)
        triton_pictures.first_forward[(tiles.programs(total), ceil_divide(shape.outputs, tiles.n), runs)](
            self._words,
            rows,
            rows.stride(0),
            weight,
            bias,
            weight.stride(0),
            out,
            total,
            self.scale,
            PATCHES=patches_of_words(shape, self._block, tiles.k),
            TILES=tiles,
            **tiles.options,
        )
        return out

    def _forward_layer(
        self, layer: Layer, parameters: Parameters, inputs: torch.Tensor, dtype: torch.dtype
    ) -> torch.Tensor:
        (runs, images), shape = inputs.shape[:2], layer.shape
        weight, bias = parameters[f"{layer.name}.weight"], parameters[f"{layer.name}.bias"]
        total = images * shape.places
        out = torch.empty(runs, images, shape.places * shape.outputs, dtype=dtype, device=inputs.device)
        tiles = cuts.forward_tiles(layer, total, runs)
        pieces = cuts.forward_pieces(layer, tiles, total, runs)
        if pieces > 1:
            self._forward_in_pieces(layer, parameters, inputs, out, tiles, pieces)
            return out
        triton_layers.forward[(tiles.programs(total), ceil_divide(shape.outputs, tiles.n), runs)](
            inputs,
            inputs.stride(0),
            weight,
            bias,
            weight.stride(0),
            out,
            total,
            PATCHES=patches(shape),
            LAST=layer.last,
            TILES=tiles,
            **tiles.options,
        )
        return out

    def _forward_in_pieces(
        self,
        layer: Layer,
        parameters: Parameters,
        inputs: torch.Tensor,
        out: torch.Tensor,
        tiles: cuts.Tiles,
        pieces: int,
    ) -> None:
        """Write a linear layer's result: so many programs at once, each with a piece of the inner numbers."""
        (runs, total), shape = inputs.shape[:2], layer.shape
        weight, bias = parameters[f"{layer.name}.weight"], parameters[f"{layer.name}.bias"]
        sums = torch.empty(runs, pieces, total, shape.outputs, dtype=torch.float32, device=inputs.device)
        triton_layers.forward_piece[(pieces * tiles.programs(total), ceil_divide(shape.outputs, tiles.n), runs)](
            inputs,
            inputs.stride(0),
            weight,
            weight.stride(0),
            sums,
            total,
            PATCHES=patches(shape),
            TILES=tiles,
            PIECES=pieces,
            **tiles.options,
        )
        numbers = total * shape.outputs
        triton_layers.add_pieces[(ceil_divide(numbers, ADD_BLOCK), runs)](
            sums, bias, bias.stride(0), out, numbers, OUTPUTS=shape.outputs, PIECES=pieces, BLOCK=ADD_BLOCK
        )

    def _weight_gradient(
        self, layer: Layer, inputs: torch.Tensor, gradient: torch.Tensor, undo: torch.Tensor, out: Parameters
    ) -> None:
        (runs, images), shape = inputs.shape[:2], layer.shape
        weight, bias = out[f"{layer.name}.weight"], out[f"{layer.name}.bias"]
        tiles = cuts.weight_gradient_tiles(layer, images * shape.places)
        triton_gradients.weight_gradient[
            (ceil_divide(shape.patch, tiles.k), ceil_divide(shape.outputs, tiles.n), runs)
        ](
            inputs,
            inputs.stride(0),
            gradient,
            undo,
            weight,
            bias,
            weight.stride(0),
            images * shape.places,
            PATCHES=patches(shape),
            LAST=layer.last,
            TILES=tiles,
            **tiles.options,
        )

    def _weight_step(
        self,
        layer: Layer,
        inputs: torch.Tensor,
        gradient: torch.Tensor,
        undo: torch.Tensor,
        parameters: Parameters,
        step: AdamStep,
    ) -> None:
        (runs, images), shape, name = inputs.shape[:2], layer.shape, f"{layer.name}.weight"
        weight, bias = parameters[name], parameters[f"{layer.name}.bias"]
        tiles = cuts.weight_step_tiles(layer, images)
        between = int(bias.storage_offset() - weight.storage_offset())
        triton_gradients.weight_step[(ceil_divide(shape.outputs, tiles.n), ceil_divide(shape.patch, tiles.k), runs)](
            inputs,
            inputs.stride(0),
            gradient,
            undo,
            weight,
            step.mean[name],
            step.square[name],
            step.corrections,
            weight.stride(0),
            images,
            STEP=LayerStep(patches(shape), layer.last, tiles, between, step.constants),
            **tiles.options,
        )

    def _input_gradient(
        self, layer: Layer, parameters: Parameters, inputs: torch.Tensor, gradient: torch.Tensor
    ) -> torch.Tensor:
        (runs, images), shape = inputs.shape[:2], layer.shape
        weight = parameters[f"{layer.name}.weight"]
        out = torch.empty(inputs.shape, dtype=torch.float16, device=inputs.device)
        tall, wide = ceil_divide(shape.height, shape.stride), ceil_divide(shape.width, shape.stride)
        tiles = cuts.input_gradient_tiles(layer, images * tall * wide, runs)
        across = shape.stride**2 * ceil_divide(shape.channels, tiles.k)
        triton_layers.input_gradient[(tiles.programs(images * tall * wide), across, runs)](
            gradient,
            weight,
            weight.stride(0),
            inputs,
            inputs.stride(0),
            out,
            images,
            SHAPE=shape,
            LAST=layer.last,
            TILES=tiles,
            **tiles.options,
        )
        return out

    def _first_weight_gradient(
        self, layer: Layer, rows: torch.Tensor, gradient: torch.Tensor, undo: torch.Tensor, out: Parameters
    ) -> None:
        (runs, images), shape = rows.shape, layer.shape
        weight, bias = out[f"{layer.name}.weight"], out[f"{layer.name}.bias"]
        total, inner = images * shape.places, shape.patch // WORD
        tiles = cuts.first_weight_gradient_tiles(layer)
        programs = ceil_divide(inner, tiles.k)
        # A run's rows are done in pieces that are added up in the end, so that all multiprocessors have work.
        blocks = ceil_divide(total, tiles.m)
        pieces = max(1, min(blocks // 4, ceil_divide(ENOUGH_PROGRAMS, programs * runs)))
        per_piece = ceil_divide(blocks, pieces) * tiles.m
        between = bias.storage_offset() - weight.storage_offset()  # the weight, and padding up to the bias
        span = between + shape.outputs
        make = torch.empty if between == shape.patch * shape.outputs else torch.zeros
        partial = make((runs, pieces, span), dtype=torch.float32, device=rows.device)
        triton_pictures.first_weight_gradient[(programs, pieces, runs)](
            self._words,
            rows,
            rows.stride(0),
            gradient,
            undo,
            partial,
            between,
            total,
            self.scale,
            per_piece,
            PATCHES=patches_of_words(shape, self._block, tiles.k),
            TILES=tiles,
            **tiles.options,
        )
        torch.sum(partial, dim=1, out=weight.as_strided((runs, span), (weight.stride(0), 1)))


def _scaled(gradient: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the gradient with each run's largest number brought to between 1 and 2, and what undoes that."""
    out, undo = torch.empty_like(gradient), gradient.new_empty(len(gradient))
    numbers = gradient[0].numel()
    triton_batches.scale_gradient[(len(gradient),)](gradient, out, undo, numbers, BLOCK=power(numbers))
    return out, undo
