"""An executor on the CPU is the learner's own update and greedy actions.

Compared up to rounding: how a matrix product is summed may depend on where its operands lie in memory.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch

from backsweep.agent.fleet.memory_budget import working_bytes
from backsweep.agent.learner.device_observations import DeviceObservations
from backsweep.agent.learner.double_dqn import Learner, LearnerSettings
from backsweep.agent.learner.executor import Executor
from backsweep.agent.learner.networks import Network
from backsweep.agent.learner.optimisers import OptimiserSettings
from backsweep.agent.learner.rules import TargetRule
from backsweep.types import Batch

NETWORKS = {
    "vector": Network("vector", (4,), 3, (), (16,)),
    "image": Network("image", (20, 20, 3), 3, ((8, 4, 2), (8, 3, 2)), (16,), 1 / 255),
    "table": Network("table", (6,), 3),
}
RULES = {
    "one-step": TargetRule(),
    "backward": TargetRule(kind="backward"),
    "imitation": TargetRule(kind="graph", share=0.2, imitation=1.0, imitation_temperature=0.5),
    "discor": TargetRule(kind="discor"),
    "discor-released": TargetRule(kind="discor", error_target=False),
}
SEEDS, ROWS, SIZE = (5, 6, 7), 40, 8


def observations_for(network: Network, generator: np.random.Generator) -> np.ndarray:
    if network.form == "image":
        return generator.integers(0, 256, (ROWS, *network.input_shape), np.uint8)
    if network.form == "table":
        return generator.integers(0, network.input_shape[0], ROWS)
    return generator.normal(size=(ROWS, *network.input_shape)).astype(np.float32)


def fill(executor: Executor, generator: np.random.Generator, known_share: float) -> None:
    """Give an executor one update's random inputs."""
    shape = executor.action.shape
    executor.first[:] = generator.integers(0, ROWS, shape)
    executor.second[:] = generator.integers(0, ROWS, shape)
    executor.action[:] = generator.integers(0, executor.learner.network.actions, shape)
    executor.reward[:] = generator.normal(size=shape)
    executor.discount[:] = np.where(generator.random(shape) < 0.3, 0, 0.99)
    executor.weight[:] = generator.random(shape)
    if executor.known is not None:
        executor.known[:] = np.where(generator.random(shape) < known_share, generator.normal(size=shape), np.nan)
    if executor.tried is not None:
        full = executor.tried.shape
        executor.tried[:] = np.where(generator.random(full) < known_share, generator.normal(size=full), np.nan)


def batches_of(executor: Executor, observations: np.ndarray) -> list[Batch]:
    """Return the same inputs as the learner's own update takes them."""
    return [
        Batch(
            observation=observations[executor.first[run]],
            action=executor.action[run],
            reward=executor.reward[run],
            next_observation=observations[executor.second[run]],
            terminated=executor.discount[run] == 0,
            discount=executor.discount[run],
            weight=executor.weight[run],
            row=np.arange(SIZE),
            source=np.zeros(SIZE, np.int64),
            steps=np.ones(SIZE, np.int64),
        )
        for run in range(len(executor.first))
    ]


# Double precision carries other roundings through many updates; in single precision only the first is compared, since
# adaptive optimisers make much of a gradient that is nearly nothing.
UPDATES = {"float32": (1, 1e-4, 1e-5), "float64": (12, 1e-9, 1e-11)}


@pytest.mark.parametrize("dtype", UPDATES)
@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
@pytest.mark.parametrize("network", NETWORKS.values(), ids=NETWORKS)
def test_a_stepper_does_what_the_learner_does(network: Network, rule: TargetRule, dtype: str) -> None:
    updates, rtol, atol = UPDATES[dtype]
    generator = np.random.default_rng(1)
    kind = "rmsprop" if rule.kind == "one-step" else "adam"
    settings = LearnerSettings(optimiser=OptimiserSettings(learning_rate=0.01, kind=kind), dtype=dtype)
    driven, alone = Learner(network, rule, settings, SEEDS), Learner(network, rule, settings, SEEDS)
    observations = observations_for(network, generator)
    kept = DeviceObservations(ROWS, observations.shape[1:], observations.dtype, driven.device)
    executor = Executor(driven, kept, SIZE)
    executor.write(np.arange(ROWS), observations)
    for update in range(updates):
        executor.current[:] = generator.integers(0, ROWS, len(SEEDS))
        executor.act()
        executor.wait()
        for run, seen in enumerate(observations[executor.current]):
            values = alone.values(run, seen[None])[0]
            assert values[executor.best[run]] == pytest.approx(values.max(), rel=rtol, abs=atol)
        fill(executor, generator, known_share=(0.0, 0.5, 1.0)[update % 3])
        executor.update()
        executor.wait()
        expected = alone.update(batches_of(executor, observations), executor.known, executor.tried)
        np.testing.assert_allclose(executor.td_error, expected.td_error, rtol=rtol, atol=atol)
        if update % 5 == 4:
            executor.copy_target()
            alone.copy_target()
    for ours, its in zip(driven.take_statistics(), alone.take_statistics(), strict=True):
        assert ours == pytest.approx(its, rel=rtol, abs=atol)
    if dtype == "float64":
        (arrays, values), (arrays_alone, values_alone) = driven.state(), alone.state()
        assert values == values_alone
        for name, array in arrays.items():
            np.testing.assert_allclose(array, arrays_alone[name], rtol=rtol, atol=atol, err_msg=name)


def test_a_state_loaded_after_the_executor_was_made_is_what_it_trains() -> None:
    """A state saved on a GPU names no way to compute convolutions, and one saved elsewhere may name another way."""
    network, generator = NETWORKS["image"], np.random.default_rng(2)
    observations = observations_for(network, generator)
    executors = []
    for _ in range(2):
        learner = Learner(network, RULES["discor"], LearnerSettings(dtype="float64"), SEEDS)
        kept = DeviceObservations(ROWS, observations.shape[1:], observations.dtype, learner.device)
        executors.append(Executor(learner, kept, SIZE))
        executors[-1].write(np.arange(ROWS), observations)
    saved, loading = executors
    fill(saved, generator, known_share=0.5)
    saved.update()
    arrays, values = saved.learner.state()
    loading.learner.load_state(arrays, values | {"convolutions": None})
    for executor in executors:
        fill(executor, np.random.default_rng(3), known_share=0.5)
        executor.update()
        executor.wait()
    np.testing.assert_allclose(loading.td_error, saved.td_error, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("target", [False, True])
@pytest.mark.parametrize("network", NETWORKS.values(), ids=NETWORKS)
def test_values_are_each_runs_own(network: Network, target: bool) -> None:
    generator = np.random.default_rng(2)
    learner = Learner(network, TargetRule(), LearnerSettings(), SEEDS)
    learner.target.normal_(generator=torch.Generator().manual_seed(0))
    observations = observations_for(network, generator)
    kept = DeviceObservations(ROWS, observations.shape[1:], observations.dtype, learner.device)
    executor = Executor(learner, kept, SIZE)
    executor.write(np.arange(ROWS), observations)
    runs, rows = np.array([2, 0]), generator.integers(0, ROWS, (2, 9))
    found = executor.values(runs, rows, target=target)
    for place, run in enumerate(runs):
        expected = learner.values(run, observations[rows[place]], target=target)
        np.testing.assert_allclose(found[place], expected, rtol=1e-4, atol=1e-5)


def test_stacks_of_frames_are_turned_when_they_are_written() -> None:
    network = NETWORKS["image"]
    learner = Learner(network, TargetRule(), LearnerSettings(), (0,))
    executor = Executor(learner, DeviceObservations(4, network.input_shape, np.uint8, learner.device), 2)
    frames = np.random.default_rng(0).integers(0, 256, (2, 3, 20, 20), np.uint8)
    executor.write(np.array([1, 3]), frames)
    assert np.array_equal(executor.observations.rows[3].numpy(), np.moveaxis(frames[1], 0, -1))


def test_memory_is_estimated_for_every_rule() -> None:
    network = NETWORKS["image"]
    plain = working_bytes(network, TargetRule(), 32, torch.float32)
    assert plain > 6 * 4 * network.layout.size
    assert working_bytes(network, TargetRule(kind="discor"), 32, torch.float32) > 2 * plain
    assert working_bytes(network, TargetRule(), 32, torch.float32, fused=True) < plain
