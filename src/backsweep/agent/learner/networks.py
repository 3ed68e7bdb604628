"""Q-networks as pure functions over stacked parameters.

A network here is a description. `forward` takes parameters and inputs with a leading axis of runs and returns values
with the same leading axis; `backward` takes what `forward` kept (the tape) and the gradient of the values, and writes
the gradient of every parameter. A convolution is one matrix product over patches, so that runs become the batch axis
of a batched product, on a CPU as on a GPU, and so that the patches of an observation, cut once, serve the online
network, the target network and the gradient.

    observations (R, B, height, width, channels) ──cut──> patches (R, B * places, kernel * kernel * channels)
        @ weight (R, kernel * kernel * channels, outputs) + bias ──ReLU──> (R, B, height', width', outputs) ...
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from numpy.typing import NDArray

from backsweep.agent.learner.patches import Convolution, cut_patches, paste_patches

ALIGNMENT = 16  # numbers; every parameter starts on a cache line, which also keeps results independent of its place


@dataclass(frozen=True)
class ParameterLayout:
    """Names, shapes and positions of one run's parameters in the flat row."""

    shapes: tuple[tuple[str, tuple[int, ...]], ...]

    @property
    def size(self) -> int:
        """Length of a run's row."""
        return sum(_padded(shape) for _, shape in self.shapes)

    def start(self, name: str) -> int:
        """Return where a parameter starts in a run's row."""
        names = [of_shape for of_shape, _ in self.shapes]
        return sum(_padded(shape) for _, shape in self.shapes[: names.index(name)])

    def views(self, flat: torch.Tensor) -> dict[str, torch.Tensor]:
        """Return the parameters as views of a flat tensor (runs, size)."""
        views, place = {}, 0
        for name, shape in self.shapes:
            views[name] = flat[:, place : place + math.prod(shape)].view(flat.shape[0], *shape)
            place += _padded(shape)
        return views


def _padded(shape: tuple[int, ...]) -> int:
    return -(-math.prod(shape) // ALIGNMENT) * ALIGNMENT


Parameters = Mapping[str, torch.Tensor]
IMAGE_SCALE = 1.0 / 255.0
FEW_OUTPUTS, ENOUGH_ROWS = 8, 16  # where a product is computed transposed


@dataclass(frozen=True)
class Tape:
    """What `forward` keeps for `backward`: what went into each layer, and what came out of each convolution.

    The output of a ReLU is zero exactly where the ReLU was off, so it is its own mask.
    """

    inputs: tuple[torch.Tensor, ...]
    grids: tuple[torch.Tensor, ...] = ()

    def first(self, rows: int, of: int) -> Tape:
        """Return the tape of the first `rows` of the `of` rows that went in."""

        def cut(matrices: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
            return tuple(matrix[:, : matrix.shape[1] // of * rows] for matrix in matrices)

        return Tape(cut(self.inputs), cut(self.grids))


@dataclass(frozen=True)
class Network:
    """The shape of a Q-network.

    Three forms: images (convolutions, then linear layers), vectors (linear layers) and tables (one row of values per
    discrete state, no layers at all).
    """

    form: str
    """"image", "vector" or "table"."""
    input_shape: tuple[int, ...]
    """(height, width, channels), (numbers,) or (states,)."""
    actions: int
    """Number of actions."""
    convolutions: tuple[tuple[int, int, int], ...] = ()
    """(channels, kernel, stride) of each."""
    linear: tuple[int, ...] = ()
    """Widths of the hidden linear layers."""
    scale: float = 1.0
    """Factor of the inputs."""
    non_negative: bool = False
    """Whether the values pass through a softplus (error networks)."""

    @cached_property
    def stages(self) -> tuple[Convolution, ...]:
        """The convolutions with their sizes."""
        if self.form != "image":
            return ()
        stages: list[Convolution] = []
        height, width, channels = self.input_shape
        for outputs, kernel, stride in self.convolutions:
            if height < kernel or width < kernel:
                raise ValueError(
                    f"images of {self.input_shape[0]}x{self.input_shape[1]} are too small for the convolutions "
                    f"{self.convolutions}: a kernel of {kernel} does not fit what is left, {height}x{width}. For small "
                    "images give --convolutions 16 3 1 (in Python convolutions=((16, 3, 1),))"
                )
            stage = Convolution(height, width, channels, outputs, kernel, stride)
            stages.append(stage)
            height, width, channels = stage.out_height, stage.out_width, outputs
        return tuple(stages)

    @cached_property
    def widths(self) -> tuple[int, ...]:
        """Widths around the linear layers: what goes into the first, ..., the number of actions."""
        if self.stages:
            last = self.stages[-1]
            flat = last.out_height * last.out_width * last.outputs
        else:
            flat = math.prod(self.input_shape)
        return (flat, *self.linear, self.actions)

    @cached_property
    def layout(self) -> ParameterLayout:
        """The layout of a run's parameters."""
        if self.form == "table":
            return ParameterLayout((("table", (self.input_shape[0], self.actions)),))
        shapes: list[tuple[str, tuple[int, ...]]] = []
        for index, stage in enumerate(self.stages):
            shapes += [(f"conv{index}.weight", (stage.patch, stage.outputs)), (f"conv{index}.bias", (1, stage.outputs))]
        for index, (inputs, outputs) in enumerate(zip(self.widths[:-1], self.widths[1:], strict=True)):
            shapes += [(f"linear{index}.weight", (inputs, outputs)), (f"linear{index}.bias", (1, outputs))]
        return ParameterLayout(tuple(shapes))

    def initial(self, generators: Sequence[np.random.Generator], dtype: torch.dtype) -> torch.Tensor:
        """Return flat parameters (runs, size), each run drawn from its own generator.

        Weights and biases are uniform within 1 / sqrt(inputs), as torch's own layers begin; tables begin at zero.
        """
        flat = torch.zeros(len(generators), self.layout.size, dtype=dtype)
        if self.form == "table":
            return flat
        for name, view in self.layout.views(flat).items():
            fan_in = self.layout_inputs[name]
            for run, generator in enumerate(generators):
                draw = generator.uniform(-1.0, 1.0, size=tuple(view.shape[1:])) / math.sqrt(fan_in)
                view[run] = torch.from_numpy(draw)
        return flat

    @cached_property
    def layout_inputs(self) -> dict[str, int]:
        """How many numbers flow into each output of a layer, by parameter name."""
        inputs, current = {}, 1
        for name, shape in self.layout.shapes:
            current = shape[0] if name.endswith("weight") else current
            inputs[name] = current
        return inputs

    def bytes_per_row(self, dtype: torch.dtype, *, fused: bool) -> int:
        """Return the approximate bytes of activations for one observation.

        The fused arithmetic cuts no patches, and most of its activations have two bytes.
        """
        if fused:
            return 2 * sum(stage.places * stage.outputs for stage in self.stages) + 4 * sum(self.widths[1:])
        cut = sum(stage.places * (stage.patch + stage.outputs) for stage in self.stages)
        return dtype.itemsize * (cut + (self.actions if self.form == "table" else sum(self.widths)))

    def prepare(self, observations: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        """Return what the first layer takes, from raw observations (R, B, ...): state numbers, vectors or patches.

        To evaluate several networks on the same observations, prepare them once.
        """
        if self.form == "table":
            return observations
        if self.form == "vector":
            flat = observations.reshape(*observations.shape[:2], -1)
            return flat.to(dtype) if self.scale == 1.0 else flat.to(dtype).mul_(self.scale)
        return cut_patches(observations, self.stages[0], dtype, self.scale)

    def forward(self, parameters: Parameters, prepared: torch.Tensor) -> torch.Tensor:
        """Return the values (R, B, A) of prepared observations."""
        return self.forward_with_tape(parameters, prepared)[0]

    def forward_with_tape(self, parameters: Parameters, prepared: torch.Tensor) -> tuple[torch.Tensor, Tape]:
        """Return the values (R, B, A) and what `backward` needs."""
        if self.form == "table":
            runs = torch.arange(prepared.shape[0], device=prepared.device)[:, None]
            values = parameters["table"][runs, prepared]
            return (_softplus(values), Tape((prepared, values))) if self.non_negative else (values, Tape((prepared,)))
        tape, grids, rows = [], [], prepared
        for index, stage in enumerate(self.stages):
            tape.append(rows)
            weight, bias = parameters[f"conv{index}.weight"], parameters[f"conv{index}.bias"]
            result = torch.baddbmm(bias, rows, weight).relu_()
            grid = result.view(len(prepared), -1, stage.out_height, stage.out_width, stage.outputs)
            grids.append(grid)
            if index + 1 < len(self.stages):
                rows = cut_patches(grid, self.stages[index + 1], grid.dtype)
            else:
                rows = grid.flatten(2)
        values, inputs = self.forward_linear(parameters, rows)
        return values, Tape((*tape, *inputs), tuple(grids))

    def forward_linear(
        self, parameters: Parameters, rows: torch.Tensor
    ) -> tuple[torch.Tensor, tuple[torch.Tensor, ...]]:
        """Return the values (R, B, A) from what goes into the first linear layer, and the inputs of all of them."""
        inputs, last = [], len(self.widths) - 2
        for index in range(last + 1):
            inputs.append(rows)
            weight, bias = parameters[f"linear{index}.weight"], parameters[f"linear{index}.bias"]
            if _is_narrow(weight) and rows.shape[1] >= ENOUGH_ROWS:
                rows = torch.baddbmm(bias.mT, weight.mT, rows.mT).mT.contiguous()
            else:
                rows = torch.baddbmm(bias, rows, weight)
            if index < last:
                rows.relu_()
        if self.non_negative:
            inputs.append(rows)
            return _softplus(rows), tuple(inputs)
        return rows, tuple(inputs)

    def backward(self, parameters: Parameters, tape: Tape, gradient: torch.Tensor, out: Parameters) -> None:
        """Write the gradient of every parameter into `out`, given the gradient (R, B, A) of the values."""
        inputs = list(tape.inputs)
        if self.form == "table":
            if self.non_negative:
                gradient = gradient * torch.sigmoid(inputs.pop())
            out["table"].zero_()
            runs = torch.arange(gradient.shape[0], device=gradient.device)[:, None].expand_as(inputs[0])
            out["table"].index_put_((runs, inputs[0]), gradient, accumulate=True)
            return
        gradient = self.backward_linear(parameters, inputs, gradient, out)
        for index in range(len(self.stages) - 1, -1, -1):
            before = tape.grids[index - 1] if index else None
            gradient = self.backward_patches(parameters, index, inputs.pop(), gradient, before, out)

    def backward_linear(
        self, parameters: Parameters, inputs: list[torch.Tensor], gradient: torch.Tensor, out: Parameters
    ) -> torch.Tensor:
        """Go back through the linear layers, taking their inputs from the end of the list.

        Return the gradient (R, B, numbers) before the ReLU of what went into the first, if there are convolutions.
        """
        if self.non_negative:
            gradient = gradient * torch.sigmoid(inputs.pop())
        for index in range(len(self.widths) - 2, -1, -1):
            rows, weight = inputs.pop(), out[f"linear{index}.weight"]
            if _is_narrow(weight):
                weight.copy_(torch.bmm(gradient.mT, rows).mT)
            else:
                torch.bmm(rows.mT, gradient, out=weight)
            torch.sum(gradient, dim=1, keepdim=True, out=out[f"linear{index}.bias"])
            if index or self.stages:
                gradient = torch.bmm(gradient, parameters[f"linear{index}.weight"].mT)
                gradient = torch.ops.aten.threshold_backward(gradient, rows, 0)  # 0 where the ReLU was off
        return gradient

    def backward_patches(
        self,
        parameters: Parameters,
        index: int,
        rows: torch.Tensor,
        gradient: torch.Tensor,
        before: torch.Tensor | None,
        out: Parameters,
    ) -> torch.Tensor:
        """Go back through convolution `index`, whose patches were `rows`.

        `before` is the result of the convolution before it; return the gradient before that one's ReLU. The first
        has none before it, and the gradient of an image is never computed.
        """
        stage = self.stages[index]
        gradient = gradient.reshape(gradient.shape[0], -1, stage.outputs)
        torch.bmm(rows.mT, gradient, out=out[f"conv{index}.weight"])
        torch.sum(gradient, dim=1, keepdim=True, out=out[f"conv{index}.bias"])
        if before is None:
            return gradient
        return paste_patches(torch.bmm(gradient, parameters[f"conv{index}.weight"].mT), before, stage)


def _is_narrow(weight: torch.Tensor) -> bool:
    """Return whether products with few outputs should be computed transposed, which some CPUs' libraries do faster."""
    return weight.device.type == "cpu" and weight.shape[-1] <= FEW_OUTPUTS


def _softplus(values: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.softplus(values)


def network_for(
    observation_space: gym.Space[Any],
    actions: int,
    convolutions: Sequence[tuple[int, int, int]] = (),
    linear: Sequence[int] = (),
) -> Network:
    """Return the network for a space: a table for discrete states, convolutions for images, an MLP for the rest."""
    if isinstance(observation_space, gym.spaces.Discrete):
        if not linear and not convolutions:
            return Network("table", (int(observation_space.n),), actions)
        given = [
            f"{name}={layers!r}" for name, layers in (("convolutions", convolutions), ("linear", linear)) if layers
        ]
        raise ValueError(f"states that are numbers are learned with a table, without layers: got {', '.join(given)}")
    if convolutions and len(observation_space.shape or ()) != 3:
        raise ValueError(
            f"convolutions are for images, and observations have the shape {observation_space.shape}: leave them out, "
            f"got convolutions={convolutions!r}"
        )
    if isinstance(observation_space, gym.spaces.Box):
        shape = observation_space.shape
        if len(shape) == 3 and convolutions:
            return Network(
                "image",
                image_shape(shape),
                actions,
                tuple((c, k, s) for c, k, s in convolutions),
                tuple(linear),
                IMAGE_SCALE if observation_space.dtype == np.uint8 else 1.0,
            )
        scale = IMAGE_SCALE if observation_space.dtype == np.uint8 and len(shape) > 1 else 1.0
        return Network("vector", (math.prod(shape),), actions, (), tuple(linear), scale)
    if isinstance(observation_space, (gym.spaces.MultiBinary, gym.spaces.MultiDiscrete)):
        return Network("vector", (math.prod(observation_space.shape),), actions, (), tuple(linear))
    raise ValueError(
        "observations must be Box, Discrete, MultiDiscrete or MultiBinary "
        f"(gymnasium.wrappers.FlattenObservation makes one array of others), got {observation_space}"
    )


def image_shape(shape: tuple[int, ...]) -> tuple[int, int, int]:
    """Return (height, width, channels); stacks of frames come with their channels first."""
    return (shape[1], shape[2], shape[0]) if channels_first(shape) else (shape[0], shape[1], shape[2])


def channels_first(shape: tuple[int, ...]) -> bool:
    """Return whether an image space has its channels on the first axis."""
    return shape[0] <= 4 < shape[2]


def in_network_order(network: Network, observations: NDArray[Any]) -> NDArray[Any]:
    """Return observations (..., *space) as the network takes them: images with their channels last."""
    if network.form == "image" and tuple(observations.shape[-3:]) != network.input_shape:
        return np.moveaxis(observations, -3, -1)
    return observations


def network_tensor(network: Network, observations: NDArray[Any]) -> torch.Tensor:
    """Return observations (..., *space) as a tensor in the network's order, without a copy if possible."""
    # Torch takes writable arrays only; an array that is broadcast to many runs is read-only.
    return torch.from_numpy(np.require(in_network_order(network, observations), requirements=["C", "W"]))
