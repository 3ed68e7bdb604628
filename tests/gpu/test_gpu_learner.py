"""A stepper on a GPU against the learner on the CPU, recorded and direct, with the fused kernels and without."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from backsweep.learner.bank import SLOT_ROWS, ObservationBank
from backsweep.learner.double_dqn import Learner, LearnerSettings
from backsweep.learner.networks import Network
from backsweep.learner.optimisers import OptimiserSettings
from backsweep.learner.rules import TargetRule
from backsweep.learner.stepper import Stepper, reason_against_fused

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")

MINIGRID = Network("image", (40, 40, 3), 7, ((32, 8, 4), (64, 4, 2), (64, 3, 1)), (512,), 1 / 255)
SOKOBAN = Network("image", (84, 84, 3), 5, ((32, 8, 4), (64, 4, 2), (64, 3, 1)), (512,), 1 / 255)
ODD = Network("image", (23, 24, 4), 3, ((8, 5, 3), (12, 3, 2)), (20, 24), 1 / 255)  # sizes that fit no tile
VECTOR = Network("vector", (4,), 3, (), (16,))
TABLE = Network("table", (6,), 3)
RULES = {
    "one-step": TargetRule(),
    "backward": TargetRule(kind="backward"),
    "discor": TargetRule(kind="discor"),
    "discor-released": TargetRule(kind="discor", error_target=False),
}
ROWS = 60


def observations_for(network: Network, generator: np.random.Generator) -> np.ndarray:
    if network.form == "image":
        return generator.integers(0, 256, (ROWS, *network.input_shape), np.uint8)
    if network.form == "table":
        return generator.integers(0, network.input_shape[0], ROWS)
    return generator.normal(size=(ROWS, *network.input_shape)).astype(np.float32)


def made(
    network: Network,
    rule: TargetRule,
    device: str,
    *,
    lanes: int = 3,
    size: int = 16,
    dtype: str = "float32",
    kind: str = "adam",
    clip: float | None = None,
    **options: bool,
) -> Stepper:
    optimiser = OptimiserSettings(kind=kind, learning_rate=1e-3, clip_norm=clip)
    settings = LearnerSettings(optimiser=optimiser, dtype=dtype, device=device)
    learner = Learner(network, rule, settings, range(lanes))
    observations = observations_for(network, np.random.default_rng(0))
    bank = ObservationBank(ROWS, observations.shape[1:], observations.dtype, learner.device)
    stepper = Stepper(learner, bank, size, **options)
    stepper.write(np.arange(ROWS), observations)
    return stepper


def updated(stepper: Stepper, updates: int, seed: int = 1, rewards: float = 1.0) -> list[np.ndarray]:
    """Drive a stepper with random batches; return the TD errors of every update."""
    generator = np.random.default_rng(seed)
    shape, errors = stepper.action.shape, []
    for update in range(updates):
        stepper.first[:] = generator.integers(0, ROWS, shape)
        stepper.second[:] = generator.integers(0, ROWS, shape)
        stepper.action[:] = generator.integers(0, stepper.learner.network.actions, shape)
        stepper.reward[:] = rewards * generator.normal(size=shape)
        stepper.discount[:] = np.where(generator.random(shape) < 0.3, 0, 0.9)
        stepper.weight[:] = generator.random(shape)
        if stepper.known is not None:
            stepper.known[:] = np.where(generator.random(shape) < 0.5, rewards * generator.normal(size=shape), np.nan)
        stepper.update()
        stepper.wait()
        errors.append(stepper.td_error.copy())
        if update % 10 == 9:
            stepper.copy_target()
    return errors


def off(found: np.ndarray | torch.Tensor, expected: np.ndarray | torch.Tensor) -> float:
    """Return the length of the difference over the length of what was expected."""
    found, expected = torch.as_tensor(found).double().cpu(), torch.as_tensor(expected).double().cpu()
    return float((found - expected).norm() / expected.norm())


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
@pytest.mark.parametrize("network", [VECTOR, TABLE, ODD], ids=lambda network: network.form)
def test_the_plain_arithmetic_is_the_same_on_a_gpu(network: Network, rule: TargetRule) -> None:
    on_gpu = made(network, rule, "cuda", dtype="float64", fused=False)
    on_cpu = made(network, rule, "cpu", dtype="float64")
    errors, expected = updated(on_gpu, 50), updated(on_cpu, 50)
    np.testing.assert_allclose(errors, expected, rtol=1e-6, atol=1e-8)
    (arrays, values), (arrays_cpu, values_cpu) = on_gpu.learner.state(), on_cpu.learner.state()
    assert values == values_cpu
    for name, array in arrays.items():
        np.testing.assert_allclose(array, arrays_cpu[name], rtol=1e-6, atol=1e-8, err_msg=name)


@pytest.mark.parametrize("kind", ["adam", "rmsprop", "sgd"])
@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
@pytest.mark.parametrize("network", [MINIGRID, ODD, SOKOBAN], ids=["minigrid", "odd", "sokoban"])
def test_the_fused_arithmetic_differs_by_rounding(network: Network, rule: TargetRule, kind: str) -> None:
    if kind != "adam" and network is SOKOBAN:
        pytest.skip("one network is enough for the other optimisers")
    on_gpu = made(network, rule, "cuda", kind=kind, fused=True)
    on_cpu = made(network, rule, "cpu", kind=kind, dtype="float64")
    before = on_cpu.learner.online.clone()
    first, expected = updated(on_gpu, 1), updated(on_cpu, 1)
    assert off(first[0], expected[0]) < 1e-3
    if kind != "adam":  # Adam's first step is the sign of the gradient, whatever its size
        assert off(on_gpu.learner.online.cpu() - before, on_cpu.learner.online - before) < 1e-2
    errors, expected = updated(on_gpu, 50, seed=2), updated(on_cpu, 50, seed=2)
    assert off(np.array(errors), np.array(expected)) < 2e-2
    assert off(on_gpu.learner.online, on_cpu.learner.online) < 1e-2
    (_, values), (_, values_cpu) = on_gpu.learner.state(), on_cpu.learner.state()
    assert values == values_cpu
    for lane, lane_cpu in zip(on_gpu.learner.take_statistics(), on_cpu.learner.take_statistics(), strict=True):
        assert lane == pytest.approx(lane_cpu, rel=2e-2, abs=2e-2)


@pytest.mark.parametrize("network", [MINIGRID, SOKOBAN, ODD], ids=["minigrid", "sokoban", "odd"])
def test_fused_gradients_are_those_of_the_plain_arithmetic(network: Network) -> None:
    """With parameters and TD errors of all sizes: what flows back is brought into range lane by lane."""
    from backsweep.learner.fused import FusedNetwork

    generator = torch.Generator(device="cuda").manual_seed(0)
    parameters = network.initial([np.random.default_rng(lane) for lane in range(4)], torch.float64).cuda()
    bank = torch.randint(0, 256, (ROWS, *network.input_shape), dtype=torch.uint8, device="cuda", generator=generator)
    rows = torch.randint(0, ROWS, (4, 34), device="cuda", generator=generator)
    gradient = torch.zeros(4, 17, network.actions, device="cuda")
    sizes = torch.tensor([1.0, 1e-3, 1e-9, 1e-20], device="cuda")[:, None]
    gradient[:, :, 1] = torch.randn(4, 17, device="cuda", generator=generator) * sizes
    exact, single = network.layout.views(parameters), network.layout.views(parameters.float())

    values, tape = network.forward_with_tape(exact, network.prepare(bank[rows], torch.float64))
    expected = network.layout.views(torch.zeros_like(parameters))
    network.backward(exact, tape.first(1, 2), gradient.double(), expected)

    fused = FusedNetwork(network, bank)
    found_values, found_tape = fused.forward_with_tape(single, rows)
    found = network.layout.views(torch.full(parameters.shape, torch.nan, device="cuda"))
    fused.backward(single, found_tape.first(1, 2), gradient, found)
    assert off(found_values, values) < 5e-4
    for name, view in expected.items():
        for lane in range(4):
            # Where rounding turns a ReLU on or off, single numbers differ by more than rounding.
            assert off(found[name][lane], view[lane]) < 2e-2, (name, lane)


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_recorded_and_direct_programs_do_the_same(rule: TargetRule, fused: bool) -> None:
    recorded = made(MINIGRID, rule, "cuda", fused=fused, clip=1.0)
    direct = made(MINIGRID, rule, "cuda", fused=fused, graphs=False, clip=1.0)
    assert np.array_equal(recorded.learner.state()[0]["online"], direct.learner.state()[0]["online"])
    assert np.array_equal(updated(recorded, 12), updated(direct, 12))
    (arrays, values), (arrays_direct, values_direct) = recorded.learner.state(), direct.learner.state()
    assert values == values_direct
    for name, array in arrays.items():
        assert np.array_equal(array, arrays_direct[name]), name


@pytest.mark.parametrize("fused", [False, True])
def test_acting_and_values(fused: bool) -> None:
    on_gpu, on_cpu = made(MINIGRID, TargetRule(), "cuda", fused=fused), made(MINIGRID, TargetRule(), "cpu")
    lanes, rows = np.array([2, 0]), np.random.default_rng(3).integers(0, ROWS, (2, 300))
    for target in (False, True):
        found, expected = (stepper.values(lanes, rows, target=target) for stepper in (on_gpu, on_cpu))
        assert off(found, expected) < 5e-4
    values = on_cpu.values(np.arange(3), np.tile(np.arange(ROWS), (3, 1)), target=False)
    for row in range(ROWS):
        on_gpu.current[:] = row
        on_gpu.act()
        on_gpu.wait()
        # Nearly equal values may change places.
        assert (values[np.arange(3), row, on_gpu.best] >= values[:, row].max(axis=1) - 1e-3).all()


def test_large_values_keep_their_digits() -> None:
    """Q-values of hundreds must be right to far less than a reward."""
    on_gpu, on_cpu = made(MINIGRID, TargetRule(), "cuda"), made(MINIGRID, TargetRule(), "cpu", dtype="float64")
    for stepper in (on_gpu, on_cpu):
        views = MINIGRID.layout.views(stepper.learner.online)
        views["linear1.weight"].mul_(5000)
    torch.cuda.synchronize()
    lanes, rows = np.arange(3), np.tile(np.arange(ROWS), (3, 1))
    found, expected = (stepper.values(lanes, rows, target=False) for stepper in (on_gpu, on_cpu))
    assert np.abs(expected).max() > 100
    assert np.abs(found - expected).max() < 1e-3 * np.abs(expected).max()


def test_many_writes_may_be_under_way() -> None:
    device = torch.device("cuda")
    bank = ObservationBank(2000, (40, 40, 3), np.uint8, device)
    generator = np.random.default_rng(0)
    expected = np.zeros((2000, 40, 40, 3), np.uint8)
    bank.write(np.arange(2000), expected)
    stream = torch.cuda.Stream()
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(20_000_000)  # the device is busy while the writes queue up
        for count in [1, 0, 5, 100, SLOT_ROWS + 3, *([7] * 20)]:
            places = generator.choice(2000, count, replace=False)
            observations = generator.integers(0, 256, (count, 40, 40, 3), np.uint8)
            expected[places] = observations
            bank.write(places, observations)
            observations[...] = 0
    stream.synchronize()
    assert np.array_equal(bank.rows.cpu().numpy(), expected)


def test_state_moves_between_devices_and_lanes_can_go() -> None:
    on_gpu, on_cpu = made(ODD, RULES["discor"], "cuda"), made(ODD, RULES["discor"], "cpu")
    updated(on_gpu, 5)
    on_cpu.learner.load_state(*on_gpu.learner.state())
    assert off(updated(on_gpu, 1, seed=4)[0], updated(on_cpu, 1, seed=4)[0]) < 5e-3
    learner = on_gpu.learner
    learner.keep([1])
    kept = Stepper(learner, on_gpu.bank, 16)
    updated(kept, 2)
    assert learner.finite().all()


def test_what_the_fused_kernels_are_for() -> None:
    assert (
        reason_against_fused(made(MINIGRID, TargetRule(), "cuda").learner, made(MINIGRID, TargetRule(), "cuda").bank)
        is None
    )
    vector = made(VECTOR, TargetRule(), "cuda")
    assert "uint8" in str(reason_against_fused(vector.learner, vector.bank))
    with pytest.raises(ValueError, match="cannot be used"):
        Stepper(vector.learner, vector.bank, 16, fused=True)
