"""The Triton kernels under Triton's interpreter, on a CPU, against the plain arithmetic.

    TRITON_INTERPRET=1 python -m pytest tests/agent/learner/test_triton_interpreted.py

The variable must be set before Triton is imported, so `make test` runs this file in a process of its own.
"""

from __future__ import annotations

import os

import numpy as np
import pytest
import torch

from backsweep.agent.learner.arithmetic import Arithmetic, PreparedRows
from backsweep.agent.learner.device_observations import DeviceObservations
from backsweep.agent.learner.double_dqn import Learner, LearnerSettings
from backsweep.agent.learner.networks import Network
from backsweep.agent.learner.optimisers import OptimiserSettings
from backsweep.agent.learner.packed_arrays import PackedArrays
from backsweep.agent.learner.rules import TargetRule
from fused_networks import ODD, ROWS, check_gradients, observations_for, off

pytestmark = pytest.mark.skipif(os.environ.get("TRITON_INTERPRET") != "1", reason="runs with TRITON_INTERPRET=1")
pytest.importorskip("triton")

BLOCKS = Network("image", (16, 16, 4), 3, ((8, 4, 2), (8, 3, 1)), (16,), 1 / 255)
"""A network whose images lie in blocks, and whose second convolution has a stride of one."""
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


def learners(network: Network, rule: TargetRule, kind: str) -> tuple[Learner, Learner, DeviceObservations]:
    """Return two equal learners whose networks and targets differ, and observations on the device."""
    optimiser = OptimiserSettings(kind=kind, learning_rate=1e-3, clip_norm=1.0)
    made = []
    for _ in range(2):
        learner = Learner(network, rule, LearnerSettings(optimiser=optimiser), range(LANES))
        other = Learner(network, rule, LearnerSettings(optimiser=optimiser), range(LANES, 2 * LANES))
        learner.target.copy_(other.online)
        made.append(learner)
    kept = DeviceObservations(ROWS, network.input_shape, np.uint8, torch.device("cpu"))
    return made[0], made[1], kept


@pytest.mark.parametrize(
    ("rule", "kind"),
    [("one-step", "adam"), ("backward", "rmsprop"), ("discor", "adam"), ("discor-released", "sgd")],
)
def test_an_update_is_the_plain_one(rule: str, kind: str) -> None:
    from backsweep.agent.learner.triton import FusedArithmetic

    fused, plain, kept = learners(BLOCKS, RULES[rule], kind)
    arithmetic = FusedArithmetic(fused, kept)
    patches = Arithmetic(BLOCKS, None if plain.errors is None else plain.errors.network)
    generator = np.random.default_rng(2)
    kept.write(np.arange(ROWS), observations_for(BLOCKS, generator))
    shape = (LANES, SIZE)

    def numbers() -> torch.Tensor:
        return torch.from_numpy(generator.normal(size=shape).astype(np.float32))

    for update in range(2):
        index = torch.from_numpy(generator.integers(0, ROWS, (LANES, 2 * SIZE)))
        known = None
        if RULES[rule].gives_targets:
            known = torch.where(torch.from_numpy(generator.random(shape) < 0.5), numbers(), torch.nan)
        rest = (
            2,
            torch.from_numpy(generator.integers(0, BLOCKS.actions, shape)),
            numbers(),
            torch.from_numpy(np.where(generator.random(shape) < 0.3, 0, 0.9).astype(np.float32)),
            numbers().abs(),
            known,
        )
        corrections = tuple(torch.tensor(pair, dtype=torch.float32) for pair in fused.count())
        found = fused.learn(arithmetic, PreparedRows(index, *rest), (corrections[0], corrections[1]))
        prepared = BLOCKS.prepare(kept.in_order(index), torch.float32)
        expected = plain.learn(patches, PreparedRows(prepared, *rest), plain.count())
        assert off(found, expected) < 3e-3, update
    expected_tensors = plain.tensors()
    for name, tensor in fused.tensors().items():
        if tensor.numel():  # only Adam has a mean
            assert off(tensor, expected_tensors[name]) < 1e-2, name


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
