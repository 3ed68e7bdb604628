"""A network of one run with torch's own convolutions, channels last, on a CPU.

There are several ways to compute the same convolution, and which is fastest depends on the processor:

    patches   patches and matrix products, both forward and back (`Network`)
    mixed     torch's convolutions forward, patches and matrix products back
    direct    torch's convolutions both forward and back

They differ in the order of their sums, so results agree but for rounding. `fastest_path` measures them.
"""

from __future__ import annotations

import contextlib
import json
import platform
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path as FilePath
from typing import Literal, TypeAlias

import numpy as np
import torch

from backsweep.agent.learner.networks import Network, Parameters, Tape
from backsweep.agent.learner.patches import cut_patches
from backsweep.jit.kernel_cache import cache_folder
from backsweep.snapshot import files

Path: TypeAlias = Literal["patches", "mixed", "direct"]
PATHS: tuple[Path, ...] = ("patches", "mixed", "direct")
_backward: Callable[..., tuple[torch.Tensor | None, torch.Tensor, torch.Tensor]] = torch.ops.aten.convolution_backward


class DirectNetwork:
    """The network's values and gradients by torch's convolutions. Every tensor has one run."""

    def __init__(self, network: Network, path: Path) -> None:
        self._network, self._path = network, path

    def prepare(self, observations: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        """Return images (1, B, height, width, channels) as numbers, scaled."""
        images = observations.to(dtype)
        return images if self._network.scale == 1.0 else images.mul_(self._network.scale)

    def forward(self, parameters: Parameters, prepared: torch.Tensor) -> torch.Tensor:
        """Return the values (1, B, A) of prepared images."""
        return self.forward_with_tape(parameters, prepared)[0]

    def forward_with_tape(self, parameters: Parameters, prepared: torch.Tensor) -> tuple[torch.Tensor, Tape]:
        """Return the values (1, B, A) and what `backward` needs."""
        grids = []
        images = _channels_second(prepared)
        for index, stage in enumerate(self._network.stages):
            bias = parameters[f"conv{index}.bias"].view(-1)
            images = torch.conv2d(images, self._weight(parameters, index), bias, stage.stride).relu_()
            grids.append(images.permute(0, 2, 3, 1).contiguous()[None])
        values, inputs = self._network.forward_linear(parameters, grids[-1].flatten(2))
        return values, Tape((prepared, *inputs), tuple(grids))

    def backward(self, parameters: Parameters, tape: Tape, gradient: torch.Tensor, out: Parameters) -> None:
        """Write the gradient of every parameter into `out`, given the gradient (1, B, A) of the values."""
        network = self._network
        gradient = network.backward_linear(parameters, list(tape.inputs[1:]), gradient, out)
        for index in range(len(network.stages) - 1, -1, -1):
            before = tape.grids[index - 1] if index else None
            source = tape.inputs[0] if before is None else before
            if self._path == "mixed":
                rows = cut_patches(source, network.stages[index], source.dtype)
                gradient = network.backward_patches(parameters, index, rows, gradient, before, out)
            else:
                gradient = self._backward_direct(parameters, index, source, gradient, out)

    def _backward_direct(
        self, parameters: Parameters, index: int, source: torch.Tensor, gradient: torch.Tensor, out: Parameters
    ) -> torch.Tensor:
        stage = self._network.stages[index]
        shape = (1, source.shape[1], stage.out_height, stage.out_width, stage.outputs)
        of_source, of_weight, of_bias = _backward(
            _channels_second(gradient.reshape(shape)),
            _channels_second(source),
            self._weight(parameters, index),
            [stage.outputs],
            [stage.stride] * 2,
            [0, 0],
            [1, 1],
            False,
            [0, 0],
            1,
            [index > 0, True, True],
        )
        out[f"conv{index}.weight"].view(stage.kernel, stage.kernel, stage.channels, stage.outputs).copy_(
            of_weight.permute(2, 3, 1, 0)
        )
        out[f"conv{index}.bias"].view(-1).copy_(of_bias)
        if of_source is None:
            return gradient
        return (of_source.permute(0, 2, 3, 1) * (source[0] > 0))[None]

    def _weight(self, parameters: Parameters, index: int) -> torch.Tensor:
        """Return a weight as torch's convolutions take it, (outputs, channels, kernel, kernel)."""
        stage = self._network.stages[index]
        weight = parameters[f"conv{index}.weight"].view(stage.kernel, stage.kernel, stage.channels, stage.outputs)
        return weight.permute(3, 2, 0, 1).contiguous(memory_format=torch.channels_last)


def _channels_second(images: torch.Tensor) -> torch.Tensor:
    """Return (1, B, height, width, channels) as (B, channels, height, width) in the same memory."""
    return images[0].permute(0, 3, 1, 2)


def network_by(network: Network, path: Path) -> Network | DirectNetwork:
    """Return a network that computes its convolutions by this path."""
    return network if path == "patches" else DirectNetwork(network, path)


FILE = "convolutions.json"
ROUNDS = 7
MARGIN = 0.95
"""Patches are the default: another path must take less than this share of their time."""


def fastest_path(network: Network, batch_size: int, dtype: str) -> Path:
    """Return the fastest path for updates of a network on this processor, kept or measured now.

    Other networks than images have no convolutions, and double precision is for comparisons: both take patches.
    """
    if network.form != "image" or dtype != "float32":
        return "patches"
    return _chosen(_key(network, batch_size), network, batch_size)


@cache
def _chosen(key: str, network: Network, batch_size: int) -> Path:
    if (kept := _kept().get(key)) is not None:
        return kept
    seconds = measure(network, batch_size)
    best = min(PATHS, key=lambda path: seconds[path])
    chosen = best if seconds[best] < MARGIN * seconds["patches"] else "patches"
    _keep(key, chosen)
    return chosen


@torch.no_grad()
def measure(network: Network, batch_size: int, rounds: int = ROUNDS) -> dict[Path, float]:
    """Return the least seconds of an update's forward and backward passes by each path, measured in turns."""
    generator = np.random.default_rng(0)
    flat = network.initial([generator], torch.float32)
    parameters, out = network.layout.views(flat), network.layout.views(torch.zeros_like(flat))
    images = torch.from_numpy(generator.integers(0, 256, (1, 2 * batch_size, *network.input_shape), np.uint8))
    gradient = torch.from_numpy(generator.normal(size=(1, batch_size, network.actions)).astype(np.float32))

    def update(computed: Network | DirectNetwork) -> None:
        prepared = computed.prepare(images, torch.float32)
        computed.forward(parameters, prepared[:, prepared.shape[1] // 2 :])
        _, tape = computed.forward_with_tape(parameters, prepared)
        computed.backward(parameters, tape.first(1, 2), gradient, out)

    networks = {path: network_by(network, path) for path in PATHS}
    seconds: dict[Path, list[float]] = {path: [] for path in PATHS}
    for _ in range(rounds + 1):
        for path, computed in networks.items():
            start = time.perf_counter()
            update(computed)
            seconds[path].append(time.perf_counter() - start)
    # The first round compiles and allocates. Of the others the least: the rest is what else the machine does.
    return {path: min(times[1:]) for path, times in seconds.items()}


def _key(network: Network, batch_size: int) -> str:
    capability = torch.backends.cpu.get_cpu_capability()
    facts = (_processor(), capability, f"torch {torch.__version__}", f"{torch.get_num_threads()} threads")
    return ", ".join((*facts, f"batch {batch_size}", repr(network)))


def _processor() -> str:
    with contextlib.suppress(OSError):
        for line in FilePath("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def _file() -> FilePath | None:
    folder = cache_folder()
    return None if folder is None else folder / FILE


def _kept() -> dict[str, Path]:
    """Return the kept choices; a file that cannot be read counts as empty, and is replaced."""
    file = _file()
    if file is None:
        return {}
    try:
        found = json.loads(file.read_text())
    except (OSError, ValueError):
        return {}
    if not isinstance(found, dict):
        return {}
    return {key: path for key, path in found.items() if path in PATHS}


def _keep(key: str, path: Path) -> None:
    file = _file()
    if file is None:
        return
    with contextlib.suppress(OSError), files.replacing(file) as written:  # without it the next process measures again
        files.write_all(written, json.dumps({**_kept(), key: path}, indent=2).encode())
