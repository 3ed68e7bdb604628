"""The Triton kernels compile for a GPU, on a machine without one: down to PTX and machine code, never launched."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from backsweep.agent.learner.arithmetic import PreparedRows
from backsweep.agent.learner.device_observations import DeviceObservations
from backsweep.agent.learner.double_dqn import Learner, LearnerSettings
from backsweep.agent.learner.networks import Network
from backsweep.agent.learner.optimisers import OptimiserSettings
from backsweep.agent.learner.packed_arrays import PackedArrays
from backsweep.agent.learner.rules import TargetRule
from fused_networks import ODD

SOKOBAN = Network("image", (84, 84, 3), 9, ((32, 8, 4), (64, 4, 2), (64, 3, 1)), (512,), 1 / 255)
LARGE = Network("image", (24, 24, 4), 3, ((8, 4, 2), (32, 3, 1)), (16,), 1 / 255)
"""A network whose hidden layer has so many inputs that it is computed in pieces."""

pytest.importorskip("triton")
JITFunction = pytest.importorskip("triton.runtime.jit").JITFunction
driver = pytest.importorskip("triton.runtime").driver
GPUTarget = pytest.importorskip("triton.backends.compiler").GPUTarget

KERNELS = {
    "first_forward",
    "first_weight_gradient",
    "forward",
    "forward_piece",
    "add_pieces",
    "weight_gradient",
    "weight_step",
    "input_gradient",
    "best_actions",
    "scale_gradient",
    "td_errors",
    "discor_weights",
    "huber_and_statistics",
    "move",
    "adam",
    "rmsprop",
}
LANES, SIZE = 2, 8


class NoDevice:
    """Stands for a GPU of one kind, as far as compilation asks for it."""

    def get_current_device(self) -> int:
        return 1000  # no real device, whose compiled kernels Triton keeps by number

    def get_current_stream(self, device: int | None = None) -> int:
        return 0

    def get_current_target(self) -> Any:
        return GPUTarget("cuda", 90, 32)


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, list[str]]:
    """Let every launch only compile; give the PTX of each kernel."""
    found: dict[str, list[str]] = {}
    run = JITFunction.run

    def compile_only(self: Any, *args: Any, grid: Any, warmup: bool, **options: Any) -> Any:
        kernel = run(self, *args, grid=grid, warmup=True, **options)
        found.setdefault(self.__name__, []).append(kernel.asm["ptx"])
        assert len(kernel.asm["cubin"])
        return kernel

    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(JITFunction, "run", compile_only)
    monkeypatch.setattr(driver, "_active", NoDevice())
    return found


def test_every_kernel_compiles(compiled: dict[str, list[str]]) -> None:
    from backsweep.agent.learner.triton import FusedArithmetic

    released = TargetRule(kind="discor", error_target=False)
    for network, kind, rule in (
        (ODD, "adam", TargetRule(kind="discor")),
        (ODD, "adam", released),
        (ODD, "rmsprop", TargetRule(kind="backward")),
        (LARGE, "adam", TargetRule()),
    ):
        settings = LearnerSettings(optimiser=OptimiserSettings(kind=kind))
        learner = Learner(network, rule, settings, range(LANES))
        kept = DeviceObservations(4, network.input_shape, np.uint8, torch.device("cpu"))
        arithmetic = FusedArithmetic(learner, kept)
        index = torch.zeros(LANES, 2 * SIZE, dtype=torch.int64)
        numbers = torch.zeros(LANES, SIZE)
        first, known = index[:, :SIZE].clone(), numbers if rule.gives_targets else None
        whole = PreparedRows(index, SIZE, first, numbers, numbers, numbers, known)
        corrections = torch.ones(2, 2)
        short = replace(whole, prepared=index[:, : SIZE + 1], successors=1, place=first)
        for rows in (whole, short) if rule.gives_targets else (whole,):
            learner.learn(arithmetic, rows, (corrections[0], corrections[1]))
        best = PackedArrays({"best": ((LANES,), np.int64)}, kept.device)
        arithmetic.act(learner.online_views, index[:, :1].clone(), best)
        arithmetic.move(index, torch.zeros_like(index))
    assert set(compiled) == KERNELS
    assert all(".entry" in ptx for texts in compiled.values() for ptx in texts)


@pytest.mark.parametrize("runs", [1, 3, 5, 25, 128])
@pytest.mark.parametrize("rows", [1, 32, 64, 300])
def test_pieces_of_a_layer_have_as_many_rounds_as_stages(rows: int, runs: int) -> None:
    from backsweep.agent.learner.triton.layers import layers_of
    from backsweep.agent.learner.triton.tiles import forward_pieces, forward_tiles

    for layer in layers_of(SOKOBAN):
        tiles = forward_tiles(layer, rows * layer.shape.places, runs)
        pieces = forward_pieces(layer, tiles, rows * layer.shape.places, runs)
        assert pieces == 1 or -(-layer.shape.patch // tiles.k) // pieces >= tiles.stages
        assert (pieces > 1) <= (layer.name == "linear0" and runs < 128)


@pytest.mark.parametrize("rows", [1, 16, 32, 33, 64, 200])
def test_weight_gradients_load_no_further_ahead_than_they_have_rounds(rows: int) -> None:
    # With 4 stages and one round, results differed while other processes used the GPU.
    from backsweep.agent.learner.triton.layers import layers_of
    from backsweep.agent.learner.triton.tiles import weight_gradient_tiles, weight_step_tiles

    for layer in layers_of(SOKOBAN):
        for chooser in (weight_gradient_tiles, weight_step_tiles):
            tiles = chooser(layer, rows * layer.shape.places)
            assert 1 <= tiles.stages <= -(-rows * layer.shape.places // tiles.m)
