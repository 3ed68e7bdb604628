"""The Triton kernels under Triton's interpreter, on a CPU, against the plain arithmetic.

    TRITON_INTERPRET=1 python -m pytest tests/agent/learner/test_triton_interpreted.py

The variable must be set before Triton is imported, so `make test` runs this file in a process of its own.
"""

from __future__ import annotations

import dataclasses
import os

import numpy as np
import pytest
import torch

from backsweep.agent.learner.arithmetic import Arithmetic, PreparedRows
from backsweep.agent.learner.device_observations import DeviceObservations
from backsweep.agent.learner.double_dqn import Learner, LearnerSettings
from backsweep.agent.learner.networks import Network
from backsweep.agent.learner.optimisers import Optimiser, OptimiserSettings
from backsweep.agent.learner.packed_arrays import PackedArrays
from backsweep.agent.learner.rules import TargetRule
from backsweep.agent.learner.successors_kernels import gather_needed
from fused_networks import ODD, ROWS, check_gradients, observations_for, off

pytestmark = pytest.mark.skipif(os.environ.get("TRITON_INTERPRET") != "1", reason="runs with TRITON_INTERPRET=1")
pytest.importorskip("triton")

BLOCKS = Network("image", (16, 16, 4), 3, ((8, 4, 2), (8, 3, 1)), (16,), 1 / 255)
"""A network whose images lie in blocks, and whose second convolution has a stride of one."""
WIDE = Network("image", (12, 12, 4), 3, ((8, 4, 2), (8, 3, 1)), (130,), 1 / 255)
"""A network whose hidden layer takes several tiles of a step, the last of each row and column not full."""
RULES = {
    "one-step": TargetRule(),
    "backward": TargetRule(kind="backward"),
    "discor": TargetRule(kind="discor"),
    "discor-released": TargetRule(kind="discor", error_target=False),
}
LANES, SIZE = 2, 5


@pytest.mark.parametrize("network", [ODD, BLOCKS], ids=["odd", "blocks"])
def test_gradients_are_those_of_the_plain_arithmetic(network: Network) -> None:
    check_gradients(network, "cpu")


def learners(
    network: Network, rule: TargetRule, kind: str, clip: float | None = None
) -> tuple[Learner, Learner, DeviceObservations]:
    """Return two equal learners whose networks and targets differ, and observations on the device."""
    optimiser = OptimiserSettings(kind=kind, learning_rate=1e-3, clip_norm=clip)
    made = []
    for _ in range(2):
        learner = Learner(network, rule, LearnerSettings(optimiser=optimiser), range(LANES))
        other = Learner(network, rule, LearnerSettings(optimiser=optimiser), range(LANES, 2 * LANES))
        learner.target.copy_(other.online)
        made.append(learner)
    kept = DeviceObservations(ROWS, network.input_shape, np.uint8, torch.device("cpu"))
    return made[0], made[1], kept


def random_rows(network: Network, rule: TargetRule, size: int, generator: np.random.Generator) -> PreparedRows:
    """Return a random batch of row numbers."""
    shape = (LANES, size)

    def numbers() -> torch.Tensor:
        return torch.from_numpy(generator.normal(size=shape).astype(np.float32))

    known = None
    if rule.gives_targets:
        known = torch.where(torch.from_numpy(generator.random(shape) < 0.5), numbers(), torch.nan)
    return PreparedRows(
        torch.from_numpy(generator.integers(0, ROWS, (LANES, 2 * size))),
        size,
        torch.from_numpy(generator.integers(0, network.actions, shape)),
        numbers(),
        torch.from_numpy(np.where(generator.random(shape) < 0.3, 0, 0.9).astype(np.float32)),
        numbers().abs(),
        known,
    )


def updated(learner: Learner, arithmetic: Arithmetic, rows: PreparedRows) -> torch.Tensor:
    """Take a step with the fused arithmetic, which takes corrections as tensors."""
    first, second = (torch.tensor(pair, dtype=torch.float32) for pair in learner.count())
    return learner.learn(arithmetic, rows, (first, second))


@pytest.mark.parametrize(
    ("rule", "kind", "clip"),
    [
        ("one-step", "adam", None),
        ("one-step", "adam", 1.0),
        ("backward", "rmsprop", 1.0),
        ("discor", "adam", None),
        ("discor", "adam", 1.0),
        ("discor-released", "sgd", 1.0),
    ],
)
def test_an_update_is_the_plain_one(rule: str, kind: str, clip: float | None) -> None:
    from backsweep.agent.learner.triton import FusedArithmetic

    fused, plain, kept = learners(BLOCKS, RULES[rule], kind, clip)
    arithmetic = FusedArithmetic(fused, kept)
    patches = Arithmetic(BLOCKS, None if plain.errors is None else plain.errors.network)
    generator = np.random.default_rng(2)
    kept.write(np.arange(ROWS), observations_for(BLOCKS, generator))
    for update in range(2):
        rows = random_rows(BLOCKS, RULES[rule], SIZE, generator)
        found = updated(fused, arithmetic, rows)
        prepared = BLOCKS.prepare(kept.in_order(rows.prepared), torch.float32)
        expected = plain.learn(patches, dataclasses.replace(rows, prepared=prepared), plain.count())
        assert off(found, expected) < 3e-3, update
    expected_tensors = plain.tensors()
    for name, tensor in fused.tensors().items():
        if tensor.numel():  # only Adam has a mean
            assert off(tensor, expected_tensors[name]) < 1e-2, name


@pytest.mark.parametrize("places", [1, 3])
def test_an_update_with_few_successors_is_the_whole_one(places: int) -> None:
    from backsweep.agent.learner.triton import FusedArithmetic

    short, whole, kept = learners(BLOCKS, RULES["backward"], "adam")
    arithmetics = FusedArithmetic(short, kept), FusedArithmetic(whole, kept)
    generator = np.random.default_rng(6)
    kept.write(np.arange(ROWS), observations_for(BLOCKS, generator))
    rows = random_rows(BLOCKS, RULES["backward"], SIZE, generator)
    assert rows.known is not None
    given = rows.known.nan_to_num(0.5)
    given[0, 1] = given[1, -places:] = torch.nan
    images, place = np.empty((LANES, SIZE + places), np.int64), np.empty((LANES, SIZE), np.int64)
    numbers = rows.prepared.view(LANES, 2, SIZE).numpy(), rows.discount.numpy(), given.numpy()
    assert gather_needed(*numbers, np.ones(LANES), images, place)
    rows = dataclasses.replace(rows, known=given)
    few = dataclasses.replace(rows, prepared=torch.from_numpy(images), successors=places, place=torch.from_numpy(place))
    found, expected = updated(short, arithmetics[0], few), updated(whole, arithmetics[1], rows)
    assert off(found, expected) < 1e-5
    for name, tensor in short.tensors().items():
        assert off(tensor, whole.tensors()[name]) < 1e-5, name


@pytest.mark.parametrize("pieces", [2, 3])
@pytest.mark.parametrize("rows", [1, 33])
@pytest.mark.parametrize("network", [ODD, WIDE], ids=["odd", "wide"])
def test_a_layer_in_pieces_is_the_whole_layer(
    network: Network, rows: int, pieces: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from backsweep.agent.learner.triton import FusedNetwork, tiles

    kept = DeviceObservations(ROWS, network.input_shape, np.uint8, torch.device("cpu"))
    fused = FusedNetwork(network, kept)
    flat = network.initial([np.random.default_rng(run) for run in range(LANES)], torch.float32)
    layer = next(layer for layer in fused.layers if layer.name == "linear0")
    went_in = torch.randn(LANES, 2 * rows, layer.shape.patch, generator=torch.Generator().manual_seed(0))
    given = layer, network.layout.views(flat), went_in.half()[:, :rows], torch.float32
    monkeypatch.setattr(tiles, "forward_tiles", lambda *_: tiles.Tiles(16, 16, 16))
    whole = fused._forward_layer(*given)
    monkeypatch.setattr(tiles, "forward_pieces", lambda *_: pieces)
    torch.testing.assert_close(fused._forward_layer(*given), whole)


@pytest.mark.parametrize("rows", [1, 5, 32, 70])
@pytest.mark.parametrize("network", [ODD, WIDE], ids=["odd", "wide"])
def test_a_layers_step_is_that_of_its_gradient(network: Network, rows: int) -> None:
    from backsweep.agent.learner.triton import FusedNetwork
    from backsweep.agent.learner.triton.adam import AdamStep, adam_constants

    kept = DeviceObservations(ROWS, network.input_shape, np.uint8, torch.device("cpu"))
    fused, views = FusedNetwork(network, kept), network.layout.views
    generator = torch.Generator().manual_seed(rows)
    flat = network.initial([np.random.default_rng(run) for run in range(LANES)], torch.float32)
    optimiser = Optimiser(OptimiserSettings(), flat)
    optimiser.mean.normal_(generator=generator)
    optimiser.square.uniform_(generator=generator)
    found = flat.clone(), optimiser.mean.clone(), optimiser.square.clone()
    gradient, undo = torch.zeros_like(flat), torch.tensor([2.0, 0.25])
    corrections = torch.tensor(optimiser.count())
    step = AdamStep(adam_constants(optimiser.settings), views(found[1]), views(found[2]), corrections)
    linear = [layer for layer in fused.layers if layer.name.startswith("linear")]
    for layer in linear:
        dtype = torch.float32 if layer.last else torch.float16
        went_in, flowing = (
            torch.randn(LANES, number, width, generator=generator).to(dtype)
            for number, width in ((2 * rows, layer.shape.patch), (rows, layer.shape.outputs))
        )
        fused._weight_gradient(layer, went_in[:, :rows], flowing, undo, views(gradient))
        fused._weight_step(layer, went_in[:, :rows], flowing, undo, views(found[0]), step)
    optimiser.apply(flat, gradient, corrections)
    for tensor, expected in zip(found, (flat, optimiser.mean, optimiser.square), strict=True):
        for layer in linear:
            for name in (f"{layer.name}.weight", f"{layer.name}.bias"):
                torch.testing.assert_close(views(tensor)[name], views(expected)[name], msg=name)


@pytest.mark.parametrize(
    ("network", "rule", "size"),
    [(ODD, "discor", 5), (BLOCKS, "backward", 20), (WIDE, "one-step", 5)],
    ids=["odd", "blocks", "wide"],
)
def test_a_step_where_the_gradient_is_computed_is_one_after_it(
    network: Network, rule: str, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from backsweep.agent.learner.triton import FusedArithmetic

    together, apart, kept = learners(network, RULES[rule], "adam")
    arithmetic = FusedArithmetic(together, kept)
    monkeypatch.setattr("backsweep.agent.learner.triton.fused.steps_with_gradients", lambda _: False)
    arithmetic_apart = FusedArithmetic(apart, kept)
    generator = np.random.default_rng(4)
    kept.write(np.arange(ROWS), observations_for(network, generator))
    for update in range(2):
        rows = random_rows(network, RULES[rule], size, generator)
        assert off(updated(together, arithmetic, rows), updated(apart, arithmetic_apart, rows)) < 1e-5, update
    expected = apart.tensors()
    for name, tensor in together.tensors().items():
        assert off(tensor, expected[name]) < 1e-5, name
    hidden = apart._trained.gradient_views["linear0.weight"], together._trained.gradient_views["linear0.weight"]
    assert hidden[0].any()
    assert not hidden[1].any(), "this gradient should have stayed in the kernel"


def test_where_a_step_needs_the_whole_gradient() -> None:
    from backsweep.agent.learner.triton.adam import steps_with_gradients

    assert steps_with_gradients(OptimiserSettings())
    assert not steps_with_gradients(OptimiserSettings(clip_norm=10.0))
    assert not steps_with_gradients(OptimiserSettings(kind="rmsprop"))


def test_best_actions_and_copies() -> None:
    from backsweep.agent.learner.triton import FusedArithmetic

    learner, _, kept = learners(BLOCKS, RULES["one-step"], "adam")
    arithmetic = FusedArithmetic(learner, kept)
    kept.write(np.arange(ROWS), observations_for(BLOCKS, np.random.default_rng(3)))
    best = PackedArrays({"best": ((LANES,), np.int64)}, kept.device)
    for row in range(6):
        rows = torch.full((LANES, 1), row)
        arithmetic.act(learner.online_views, rows, best)
        values = BLOCKS.forward(learner.online_views, BLOCKS.prepare(kept.in_order(rows), torch.float32))[:, 0]
        chosen = values.gather(1, torch.from_numpy(best.host["best"])[:, None])[:, 0]
        assert (chosen >= values.amax(dim=1) - 1e-3).all()  # nearly equal values may change places
    source, out = torch.arange(300), torch.zeros(300, dtype=torch.int64)
    arithmetic.move(source, out)
    assert torch.equal(source, out)
