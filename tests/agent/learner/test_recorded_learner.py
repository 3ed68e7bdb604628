"""Recorded programs, run directly on the CPU, against the learner's own calls.

Compared up to rounding: how a matrix product is summed may depend on where its operands lie in memory.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch

from backsweep.agent.learner.device_observations import DeviceObservations, RowRange
from backsweep.agent.learner.double_dqn import Learner, LearnerSettings
from backsweep.agent.learner.networks import Network
from backsweep.agent.learner.optimisers import OptimiserSettings
from backsweep.agent.learner.recorded_learner import RecordedLearner
from backsweep.agent.learner.rules import TargetRule
from random_batches import random_batch

VECTOR = Network("vector", (4,), 3, (), (16,))
IMAGE = Network("image", (20, 20, 3), 3, ((8, 4, 2), (8, 3, 2)), (16,), 1 / 255)
TABLE = Network("table", (6,), 3)
RULES = {
    "one-step": TargetRule(),
    "graph": TargetRule(kind="graph"),
    "imitation": TargetRule(kind="graph", share=0.2, imitation=1.0, imitation_temperature=0.5),
    "discor": TargetRule(kind="discor"),
}
SEEDS, SIZE = (5, 6, 7), 8


def pair(network: Network, rule: TargetRule) -> tuple[RecordedLearner, Learner, Learner]:
    """Return a recorded learner, the learner that it drives, and one with the same networks to compare with."""
    settings = LearnerSettings(optimiser=OptimiserSettings(learning_rate=0.01), dtype="float64")
    driven, alone = (Learner(network, rule, settings, SEEDS, scales=(1.0, 0.5, 2.0)) for _ in range(2))
    batch = random_batch(network, 0, SIZE)
    return RecordedLearner(driven, SIZE, batch.observation.shape[1:], batch.observation.dtype), driven, alone


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
@pytest.mark.parametrize("network", [VECTOR, IMAGE, TABLE], ids=lambda network: network.form)
def test_updates_and_actions_are_the_learners(network: Network, rule: TargetRule) -> None:
    recorded, driven, alone = pair(network, rule)
    generator = np.random.default_rng(0)
    for update in range(9):
        batches = [random_batch(network, 100 * update + run, SIZE) for run in range(len(SEEDS))]
        known = tried = None
        if rule.gives_targets:
            known = np.where(generator.random((3, SIZE)) < 0.5, generator.normal(size=(3, SIZE)), np.nan)
        if rule.imitation:
            full = (3, SIZE, network.actions)
            tried = np.where(generator.random(full) < 0.5, generator.normal(size=full), np.nan)
        recorded.request_update(batches, known, tried)
        seen = np.stack([batch.observation[:1] for batch in batches])
        recorded.request_actions(seen)  # behind the update, which it must see
        recorded.wait()
        expected = alone.update(batches, known, tried).td_error
        np.testing.assert_allclose(recorded.td_errors(), expected, rtol=1e-9, atol=1e-11)
        np.testing.assert_array_equal(recorded.best_actions(), alone.greedy(seen))
        if update % 4 == 3:
            recorded.copy_target()
            alone.copy_target()
    assert driven.updates == alone.updates == 9
    for name, tensor in driven.tensors().items():
        np.testing.assert_allclose(tensor.numpy(), alone.tensors()[name].numpy(), rtol=1e-9, atol=1e-11, err_msg=name)


def test_images_with_channels_first_are_reordered() -> None:
    recorded, _, alone = pair(IMAGE, TargetRule())
    first = RecordedLearner(alone, SIZE, (3, 20, 20), np.uint8)
    batches = [random_batch(IMAGE, run, SIZE) for run in range(3)]
    recorded.request_update(batches)
    expected = recorded.td_errors()
    for batch in batches:
        batch.observation = np.ascontiguousarray(np.moveaxis(batch.observation, -1, 1))
        batch.next_observation = np.ascontiguousarray(np.moveaxis(batch.next_observation, -1, 1))
    first.request_update(batches)
    np.testing.assert_allclose(first.td_errors(), expected, rtol=1e-9, atol=1e-11)


def test_rows_of_another_shape_are_refused() -> None:
    observations = DeviceObservations(4, (20, 20, 3), np.uint8, torch.device("cpu"))
    with pytest.raises(ValueError, match=r"shape must be \(20, 20, 3\), or have its channels first, got \(20, 3, 20\)"):
        RowRange(observations, 0, 2, (20, 3, 20))
