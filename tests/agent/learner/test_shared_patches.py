"""Each distinct patch of a batch is evaluated once, and values and gradients do not change."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from backsweep.agent.learner import shared_patches, shared_patches_kernels
from backsweep.agent.learner.double_dqn import Learner, LearnerSettings
from backsweep.agent.learner.networks import Network
from backsweep.agent.learner.rules import TargetRule
from backsweep.agent.learner.shared_patches import SharedNetwork, SharedPatches, share_patches
from backsweep.agent.learner.shared_patches_kernels import Windows
from backsweep.types import Batch
from twins import shared_patches as twin

NETWORKS = {
    "nature": Network("image", (40, 40, 3), 7, ((8, 8, 4), (6, 4, 2), (5, 3, 1)), (16,), 1 / 255),
    "odd sizes": Network("image", (21, 17, 3), 4, ((8, 5, 3), (6, 3, 1), (5, 2, 1)), (16,), 1 / 255),
    "one channel": Network("image", (9, 9, 1), 3, ((4, 3, 2),), (), 1 / 255),
    "errors": Network("image", (12, 12, 4), 3, ((4, 4, 2),), (8,), 1.0, non_negative=True),
}


def pictures(network: Network, count: int, dtype: str = "uint8") -> torch.Tensor:
    """Return images (1, n, ...) of one colour with a few squares of others."""
    generator = np.random.default_rng(count)
    height, width, channels = network.input_shape
    images = np.full((1, count, height, width, channels), 3, dtype)
    for image in images[0]:
        y, x = generator.integers(0, height - 2), generator.integers(0, width - 2)
        image[y : y + 2, x : x + 2] = generator.integers(0, 256, channels)
    return torch.from_numpy(images)


@pytest.mark.kernels
@given(st.data())
def test_distinct_windows_are_those_of_the_twin(data: st.DataObject) -> None:
    draw = data.draw
    rows, span, down_step, across_step = (draw(st.integers(1, 3)) for _ in range(4))
    height, width, count = draw(st.integers(rows, 5)), draw(st.integers(span, 5)), draw(st.integers(1, 6))
    numbers = st.integers(0, draw(st.sampled_from([0, 1, 7])))
    drawn = draw(st.lists(numbers, min_size=count * height * width, max_size=count * height * width))
    grids = np.array(drawn, np.uint32).reshape(count, height, width)
    windows = [twin.windows_of(grid.tolist(), rows, span, down_step, across_step) for grid in grids]
    across, down = (width - span) // across_step + 1, (height - rows) // down_step + 1
    total = count * across * down
    most = draw(st.integers(1, total))
    sizes = Windows(width, span, rows, across_step, down_step, across, down)
    offsets, weights = shared_patches._numbers_of(sizes)
    if draw(st.booleans()):
        weights = np.zeros_like(weights)  # all hashes are equal
    index, chosen, reached = np.full(total, -7), np.full(most, -7), np.full(count, -7)
    found = shared_patches_kernels.distinct_windows(
        grids.reshape(count, -1), sizes, offsets, weights, most, index, chosen, reached
    )
    expected = twin.distinct(windows, most, shared_patches_kernels.LOOKED_AT)
    if expected is None:
        assert found == -1
        return
    assert (index.tolist(), chosen[:found].tolist(), reached.tolist()) == expected
    cut = np.empty((found, rows * span))
    shared_patches_kernels.cut_chosen(grids.reshape(count, -1), sizes, np.float64(0.5), chosen, cut)
    every = [window for of_grid in windows for window in of_grid]
    assert cut.tolist() == [[0.5 * number for number in every[place]] for place in expected[1]]


@pytest.mark.kernels
@given(st.data())
def test_rows_are_gathered_and_added_up(data: st.DataObject) -> None:
    draw = data.draw
    distinct, width, used = draw(st.integers(1, 4)), draw(st.integers(1, 3)), draw(st.integers(0, 9))
    numbers = st.integers(-4, 4).map(float)
    active = np.array(draw(st.lists(numbers, min_size=distinct * width, max_size=distinct * width)))
    active = active.reshape(distinct, width)
    index = np.array(draw(st.lists(st.integers(0, distinct - 1), min_size=used, max_size=used)), np.int64)
    gathered = np.empty((used, width))
    shared_patches_kernels.gather_rows(active, index, gathered)
    assert gathered.tolist() == active[index].tolist()
    sums = np.full((distinct, width), 7.0)
    shared_patches_kernels.add_rows(gathered, index, active, sums)
    assert sums.tolist() == twin.add_rows(gathered.tolist(), index.tolist(), active.tolist())


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32", "float64"])
@pytest.mark.parametrize("network", NETWORKS.values(), ids=NETWORKS)
def test_values_and_gradients_are_those_of_all_patches(network: Network, dtype: str) -> None:
    count, first = 24, 15
    images = pictures(network, count, dtype)
    generator = np.random.default_rng(0)
    flat = network.initial([generator], torch.float64)
    parameters = network.layout.views(flat)
    gradient = torch.from_numpy(generator.normal(size=(1, first, network.actions)))
    shared = share_patches(images, network, torch.float64)
    assert shared is not None
    assert shared.patches.shape[1] <= 0.5 * count * network.stages[0].places
    expected, tape = network.forward_with_tape(parameters, network.prepare(images, torch.float64))
    values, its_tape = SharedNetwork(network).forward_with_tape(parameters, shared)
    torch.testing.assert_close(values, expected, rtol=1e-10, atol=1e-12)
    slopes, found = (network.layout.views(torch.full_like(flat, torch.nan)) for _ in range(2))
    network.backward(parameters, tape.first(first, count), gradient, slopes)
    SharedNetwork(network).backward(parameters, its_tape.first(first, count), gradient, found)
    for name, slope in slopes.items():
        torch.testing.assert_close(found[name], slope, rtol=1e-9, atol=1e-11)
    # The last images on their own, as the target network sees successors.
    last, _ = SharedNetwork(network).forward_with_tape(parameters, shared.slice(first, count))
    torch.testing.assert_close(last, expected[:, first:], rtol=1e-10, atol=1e-12)


def test_only_the_first_images_have_a_way_back() -> None:
    network = NETWORKS["one channel"]
    parameters = network.layout.views(network.initial([np.random.default_rng(0)], torch.float32))
    shared = share_patches(pictures(network, 12), network, torch.float32)
    assert shared is not None
    values, tape = SharedNetwork(network).forward_with_tape(parameters, shared.slice(4, 12))
    with pytest.raises(IndexError):
        SharedNetwork(network).backward(parameters, tape, torch.ones_like(values), {})


@pytest.mark.parametrize("network", NETWORKS.values(), ids=NETWORKS)
def test_images_of_noise_share_nothing(network: Network) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (1, 12, *network.input_shape), np.uint8)
    assert share_patches(torch.from_numpy(noise), network, torch.float32) is None


def test_learning_is_the_same_from_images_that_share_patches(monkeypatch: pytest.MonkeyPatch) -> None:
    network, size = NETWORKS["nature"], 16
    generator = np.random.default_rng(5)
    seen = pictures(network, 40)[0].numpy()
    learners = [Learner(network, TargetRule(kind="discor"), LearnerSettings(dtype="float64"), (1, 2)) for _ in range(2)]
    used: list[bool] = []
    for update in range(6):
        batches = []
        for _ in range(2):
            rows = generator.integers(0, len(seen), (2, size))
            batch = Batch(
                observation=seen[rows[0]],
                action=generator.integers(0, network.actions, size),
                reward=generator.normal(size=size).astype(np.float32),
                next_observation=seen[rows[1]],
                terminated=np.zeros(size, bool),
                discount=np.where(generator.random(size) < 0.2, 0, 0.99).astype(np.float32),
                weight=generator.random(size).astype(np.float32),
                row=np.arange(size),
                source=np.zeros(size, np.int64),
                steps=np.ones(size, np.int64),
            )
            batches.append(batch)
        errors = [learners[0].update(batches).td_error]
        used += [isinstance(run, SharedPatches) for run in learners[0].arithmetic.images.runs]  # type: ignore[attr-defined]
        with monkeypatch.context() as patched:
            patched.setattr("backsweep.agent.learner.distinct_images.share_patches", lambda *_: None)
            errors.append(learners[1].update(batches).td_error)
        np.testing.assert_allclose(*errors, rtol=1e-8, atol=1e-10)
        if update == 2:
            for learner in learners:
                learner.copy_target()
    assert all(used)
    torch.testing.assert_close(learners[0].online, learners[1].online, rtol=1e-7, atol=1e-9)
