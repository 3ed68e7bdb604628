"""Compares the fused networks with the plain ones, on a GPU or under Triton's interpreter."""

from __future__ import annotations

import numpy as np
import torch

from backsweep.agent.learner.device_observations import DeviceObservations
from backsweep.agent.learner.networks import Network, Tape
from backsweep.agent.learner.patches import cut_patches

ODD = Network("image", (23, 24, 4), 3, ((8, 5, 3), (12, 3, 2)), (20, 24), 1 / 255)
"""A network whose sizes fit no tile."""
ROWS = 60


def observations_for(network: Network, generator: np.random.Generator) -> np.ndarray:
    if network.form == "image":
        return generator.integers(0, 256, (ROWS, *network.input_shape), np.uint8)
    if network.form == "table":
        return generator.integers(0, network.input_shape[0], ROWS)
    return generator.normal(size=(ROWS, *network.input_shape)).astype(np.float32)


def off(found: np.ndarray | torch.Tensor, expected: np.ndarray | torch.Tensor) -> float:
    """Return the length of the difference over the length of what was expected."""
    found, expected = torch.as_tensor(found).double().cpu(), torch.as_tensor(expected).double().cpu()
    return float((found - expected).norm() / expected.norm())


def plain_tape(network: Network, prepared: torch.Tensor, fused: Tape) -> Tape:
    """Return the plain arithmetic's tape, in float64, of what flowed through the fused network.

    So both go back through the same ReLUs: one that rounding turned on or off changes a gradient by percents.
    """
    inputs, grids = [prepared], []
    for index, stage in enumerate(network.stages):
        flowing = fused.inputs[index + 1].double()
        grid = flowing.reshape(*flowing.shape[:2], stage.out_height, stage.out_width, stage.outputs)
        grids.append(grid)
        following = network.stages[index + 1 : index + 2]
        inputs.append(cut_patches(grid, following[0], torch.float64) if following else grid.flatten(2))
    inputs += [flowing.double() for flowing in fused.inputs[len(network.stages) + 1 :]]
    return Tape(tuple(inputs), tuple(grids))


def check_gradients(network: Network, device: str) -> None:
    """Compare gradients of all sizes: each run's is scaled into the range of half precision.

    With TRITON_INTERPRET=1 this works on a CPU too, slowly.
    """
    from backsweep.agent.learner.triton import FusedNetwork

    generator = torch.Generator(device).manual_seed(0)
    parameters = network.initial([np.random.default_rng(run) for run in range(4)], torch.float32).to(device)
    single, exact = network.layout.views(parameters), network.layout.views(parameters.double())
    kept = DeviceObservations(ROWS, network.input_shape, np.uint8, torch.device(device))
    rows = torch.randint(0, ROWS, (4, 34), device=device, generator=generator)
    gradient = torch.zeros(4, 17, network.actions, device=device)
    sizes = torch.tensor([1.0, 1e-3, 1e-9, 1e-20], device=device)[:, None]
    gradient[:, :, 1] = torch.randn(4, 17, device=device, generator=generator) * sizes

    fused = FusedNetwork(network, kept)
    kept.write(np.arange(ROWS), observations_for(network, np.random.default_rng(0)))
    found_values, tape = fused.forward_with_tape(single, rows)
    found = network.layout.views(torch.full(parameters.shape, torch.nan, device=device))
    fused.backward(single, tape.first(1, 2), gradient, found)

    prepared = network.prepare(kept.in_order(rows), torch.float64)
    assert off(found_values, network.forward(exact, prepared)) < 5e-4
    expected = network.layout.views(torch.zeros_like(parameters, dtype=torch.float64))
    first = prepared[:, : prepared.shape[1] // 2]
    network.backward(exact, plain_tape(network, first, tape.first(1, 2)), gradient.double(), expected)
    for name, view in expected.items():
        for run in range(4):
            assert off(found[name][run], view[run]) < 3e-3, (name, run)
