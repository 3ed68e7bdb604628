"""Networks over stacked parameters against torch's own layers and autograd."""

from __future__ import annotations

import math
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from torch.nn import functional

from backsweep.agent import run_config
from backsweep.agent.fleet.fleet import config_network
from backsweep.agent.learner.discor import error_network
from backsweep.agent.learner.networks import Network, in_network_order, network_for
from backsweep.agent.learner.patches import Convolution, cut_patches, paste_patches
from backsweep.jit.random_streams import named_generator

NATURE = ((32, 8, 4), (64, 4, 2), (64, 3, 1))
IMAGE = Network("image", (40, 40, 3), 6, NATURE, (512,), 1 / 255)
ODD = Network("image", (38, 45, 2), 3, ((5, 7, 3), (4, 3, 2)), (9,), 1 / 255)
VECTOR = Network("vector", (5,), 3, (), (16, 8))
TABLE = Network("table", (7,), 2)
NETWORKS = [IMAGE, ODD, VECTOR, TABLE, error_network(ODD), error_network(VECTOR), error_network(TABLE)]


def _inputs(network: Network, runs: int, batch: int) -> torch.Tensor:
    generator = named_generator(1, "inputs")
    if network.form == "image":
        return torch.from_numpy(generator.integers(0, 256, (runs, batch, *network.input_shape), np.uint8))
    if network.form == "vector":
        return torch.from_numpy(generator.normal(size=(runs, batch, *network.input_shape)))
    return torch.from_numpy(generator.integers(0, network.input_shape[0], (runs, batch)))


def _flat(network: Network, runs: int) -> torch.Tensor:
    flat = network.initial([named_generator(run, "network") for run in range(runs)], torch.float64)
    return (
        flat if network.form != "table" else flat + torch.linspace(-1, 1, flat.numel(), dtype=flat.dtype).view_as(flat)
    )


def _plain(network: Network, parameters: dict[str, torch.Tensor], x: torch.Tensor) -> torch.Tensor:
    """One run with torch's own layers; parameters without the run axis."""
    if network.form == "table":
        values = parameters["table"][x]
    else:
        x = x.double() * network.scale
        if network.stages:
            x = x.permute(0, 3, 1, 2)
            for index, stage in enumerate(network.stages):
                weight = parameters[f"conv{index}.weight"]
                kernel = weight.view(stage.kernel, stage.kernel, stage.channels, stage.outputs).permute(3, 2, 0, 1)
                x = functional.relu(
                    functional.conv2d(x, kernel, parameters[f"conv{index}.bias"][0], stride=stage.stride)
                )
            x = x.permute(0, 2, 3, 1)
        x = x.flatten(1)
        last = len(network.widths) - 2
        for index in range(last + 1):
            x = x @ parameters[f"linear{index}.weight"] + parameters[f"linear{index}.bias"]
            x = functional.relu(x) if index < last else x
        values = x
    return functional.softplus(values) if network.non_negative else values


@pytest.mark.parametrize("network", NETWORKS, ids=lambda network: f"{network.form}{network.input_shape}")
def test_values_and_gradients_are_torchs_own(network: Network) -> None:
    runs, batch = 3, 5
    flat = _flat(network, runs)
    inputs = _inputs(network, runs, batch)
    views = network.layout.views(flat)
    values, tape = network.forward_with_tape(views, network.prepare(inputs, torch.float64))
    weights = torch.from_numpy(named_generator(2, "gradient").normal(size=tuple(values.shape)))
    gradient = torch.full_like(flat, torch.nan)
    gradient_views = network.layout.views(gradient)
    network.backward(views, tape, weights, gradient_views)
    for run in range(runs):
        leaves = {name: view[run].clone().requires_grad_() for name, view in views.items()}
        expected = _plain(network, leaves, inputs[run])
        torch.testing.assert_close(values[run], expected.detach(), rtol=1e-10, atol=1e-12)
        grads = torch.autograd.grad((expected * weights[run]).sum(), list(leaves.values()))
        for name, grad in zip(leaves, grads, strict=True):
            torch.testing.assert_close(gradient_views[name][run], grad, rtol=1e-9, atol=1e-11)


def test_the_tape_of_a_first_half_gives_the_gradient_of_that_half() -> None:
    flat, inputs = _flat(ODD, 2), _inputs(ODD, 2, 8)
    views = ODD.layout.views(flat)
    _, tape = ODD.forward_with_tape(views, ODD.prepare(inputs, torch.float64))
    weights = torch.ones(2, 4, 3, dtype=torch.float64)
    whole, half = torch.zeros_like(flat), torch.zeros_like(flat)
    ODD.backward(views, tape.first(1, 2), weights, ODD.layout.views(half))
    _, alone = ODD.forward_with_tape(views, ODD.prepare(inputs[:, :4], torch.float64))
    ODD.backward(views, alone, weights, ODD.layout.views(whole))
    torch.testing.assert_close(half, whole)


def test_a_run_begins_as_it_would_alone() -> None:
    together = IMAGE.initial([named_generator(seed, "network") for seed in (3, 4)], torch.float32)
    alone = IMAGE.initial([named_generator(4, "network")], torch.float32)
    assert torch.equal(together[1], alone[0])
    bound = 1 / np.sqrt(8 * 8 * 3)
    first = IMAGE.layout.views(alone)["conv0.weight"]
    assert float(first.abs().max()) <= bound
    assert float(first.abs().max()) > 0.99 * bound


def test_the_papers_sizes() -> None:
    assert [(stage.out_height, stage.outputs) for stage in IMAGE.stages] == [(9, 32), (3, 64), (1, 64)]
    large = network_for(gym.spaces.Box(0, 255, (84, 84, 3), np.uint8), 8, NATURE, (512,))
    assert large.widths == (7 * 7 * 64, 512, 8)
    # 8*8*3*32+32 + 4*4*32*64+64 + 3*3*64*64+64 + 64*512+512 + 512*6+6
    assert sum(math.prod(shape) for _, shape in IMAGE.layout.shapes) == 6176 + 32832 + 36928 + 33280 + 3078


def test_the_network_follows_from_the_space() -> None:
    assert network_for(gym.spaces.Discrete(9), 2).form == "table"
    assert network_for(gym.spaces.Box(-1, 1, (4,), np.float32), 2, (), (64,)).widths == (4, 64, 2)
    frames = network_for(gym.spaces.Box(0, 255, (4, 84, 84), np.uint8), 6, NATURE, (512,))
    assert frames.input_shape == (84, 84, 4)
    stack = np.zeros((2, 4, 84, 84), np.uint8)
    stack[:, 3] = 1
    assert in_network_order(frames, stack).shape == (2, 84, 84, 4)
    assert in_network_order(frames, stack)[0, 5, 7].tolist() == [0, 0, 0, 1]


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(ValueError, match="too small"):
        _ = Network("image", (20, 20, 3), 6, NATURE, (512,)).layout
    with pytest.raises(ValueError, match="observations must be"):
        network_for(gym.spaces.Dict({"a": gym.spaces.Discrete(2)}), 2)
    with pytest.raises(ValueError, match=r"learned with a table, without layers: got linear=\(64,\)"):
        network_for(gym.spaces.Discrete(4), 2, (), (64,))
    with pytest.raises(ValueError, match=r"images, and observations have the shape \(4,\): leave them out, got conv"):
        network_for(gym.spaces.Box(-1, 1, (4,), np.float32), 2, NATURE, (64,))
    with pytest.raises(ValueError, match="For small images give --convolutions 16 3 1"):
        _ = network_for(gym.spaces.Box(0, 255, (7, 7, 3), np.uint8), 2, NATURE, (64,)).layout
    assert network_for(gym.spaces.Box(0, 255, (7, 7, 3), np.uint8), 2, ((16, 3, 1),), (64,)).widths == (400, 64, 2)


PICTURE = gym.spaces.Box(0, 255, (64, 64, 3), np.uint8)


@pytest.mark.parametrize(
    ("space", "given", "convolutions", "linear"),
    [
        (PICTURE, {}, NATURE, (512,)),
        (PICTURE, {"linear": (64,)}, NATURE, (64,)),
        (PICTURE, {"convolutions": ((8, 8, 4),)}, ((8, 8, 4),), (256, 256)),
        (PICTURE, {"convolutions": NATURE, "linear": (256, 256)}, NATURE, (256, 256)),
        (gym.spaces.Box(-1, 1, (4,)), {}, (), (256, 256)),
        (gym.spaces.Box(-1, 1, (4,)), {"linear": (7,)}, (), (7,)),
        (gym.spaces.Discrete(4), {}, (), ()),
    ],
)
def test_layers_of_a_gymnasium_id_are_those_given_or_follow_from_its_observations(
    space: gym.Space[Any], given: dict[str, Any], convolutions: Any, linear: Any
) -> None:
    network = config_network(run_config(env="Any-v0", **given), space, 2)
    assert (network.convolutions, network.linear) == (convolutions, linear)


@pytest.mark.parametrize(
    ("given", "named"),
    [({"linear": (32,)}, r"got linear=\(32,\)"), ({"convolutions": ((8, 2, 1),)}, "got convolutions=")],
)
def test_layers_that_state_numbers_cannot_have_are_refused_by_name(given: dict[str, Any], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        config_network(run_config(env="Any-v0", **given), gym.spaces.Discrete(4), 2)


def test_kernels_and_torch_cut_and_paste_alike() -> None:
    stage = Convolution(11, 9, 2, 3, 4, 3)
    generator = named_generator(0, "patches")
    grid = torch.from_numpy(generator.integers(0, 256, (2, 3, 11, 9, 2), np.uint8))
    patches = cut_patches(grid, stage, torch.float64, 0.5)
    expected = functional.unfold(
        grid.view(6, 11, 9, 2).permute(0, 3, 1, 2).double() * 0.5, 4, stride=3
    )  # (6, 2*4*4, places)
    expected = expected.view(6, 2, 4, 4, stage.places).permute(0, 4, 2, 3, 1).reshape(2, 3 * stage.places, stage.patch)
    assert torch.equal(patches, expected)
    active = torch.from_numpy(generator.normal(size=(2, 3, 11, 9, 2))).relu()
    pasted = paste_patches(patches, active, stage)
    columns = patches.view(6, stage.places, 4, 4, 2).permute(0, 4, 2, 3, 1).reshape(6, 32, stage.places)
    folded = functional.fold(columns, (11, 9), 4, stride=3).permute(0, 2, 3, 1).view(2, 3, 11, 9, 2)
    torch.testing.assert_close(pasted, folded * (active > 0))


def test_devices_without_kernels_get_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    class Elsewhere:
        """A tensor that says it is on another device, to take the path without kernels."""

        def __init__(self, tensor: torch.Tensor) -> None:
            self.tensor = tensor
            self.device = torch.device("meta")

        def __getattr__(self, name: str) -> object:
            return getattr(self.tensor, name)

    stage = Convolution(11, 9, 2, 3, 4, 3)
    generator = named_generator(1, "patches")
    grid = torch.from_numpy(generator.normal(size=(2, 3, 11, 9, 2)))
    here = cut_patches(grid, stage, torch.float64, 0.5)
    there = cut_patches(Elsewhere(grid), stage, torch.float64, 0.5)  # type: ignore[arg-type]
    assert torch.equal(here, there)
    active = grid.relu()
    torch.testing.assert_close(
        paste_patches(here, active, stage),
        paste_patches(Elsewhere(here), active, stage),  # type: ignore[arg-type]
    )
