"""The parts of benchmarks.world_model that need no sheeprl: what it stores, and its distributions."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import torch
from benchmarks.world_model import waitless
from benchmarks.world_model.sequences import Sequences, enlarged
from benchmarks.world_model.settings import Settings
from torch.distributions import (
    Categorical,
    Distribution,
    Independent,
    Normal,
    OneHotCategorical,
    kl,
    kl_divergence,
    normal,
)

CPU = torch.device("cpu")


def image(value: int) -> np.ndarray:
    return np.full((1, 2, 2, 3), value, np.uint8)


def played(env: int, stored: Sequences, first: int, steps: int, reward: float = 0.5) -> None:
    """Add an episode whose images count up from `first`, with action 1 everywhere."""
    stored.add([env], image(first))
    for step in range(1, steps + 1):
        ends = np.array([step == steps])
        stored.add([env], image(first + step), np.array([1]), np.array([reward]), ends)


def test_sequences_hold_what_was_added_in_order() -> None:
    stored = Sequences(10, 2, (2, 2, 3), 3, CPU)
    played(0, stored, 0, 4)
    played(1, stored, 100, 4)
    batch = stored.sample(32, 5, np.random.default_rng(0))
    assert batch["rgb"].shape == (5, 32, 2, 2, 3)
    for column in range(32):
        seen = batch["rgb"][:, column, 0, 0, 0].tolist()
        assert seen in (list(range(5)), list(range(100, 105)))
    assert batch["is_first"][:, 0, 0].tolist() == [1, 0, 0, 0, 0]
    assert batch["terminated"][:, 0, 0].tolist() == [0, 0, 0, 0, 1]
    assert batch["rewards"][:, 0, 0].tolist() == [0, 0.5, 0.5, 0.5, 0.5]
    assert batch["actions"][:, 0].tolist() == [[0, 0, 0], *[[0, 1, 0]] * 4]


def test_every_place_can_begin_a_sequence() -> None:
    stored = Sequences(20, 1, (2, 2, 3), 3, CPU)
    played(0, stored, 0, 4)
    played(0, stored, 5, 4)
    firsts = stored.sample(500, 3, np.random.default_rng(0))["rgb"][0, :, 0, 0, 0]
    assert sorted(set(firsts.tolist())) == list(range(8))


def test_a_full_store_says_so() -> None:
    stored = Sequences(2, 1, (2, 2, 3), 3, CPU)
    played(0, stored, 0, 1)
    with pytest.raises(ValueError, match="room for 2 rows"):
        stored.add([0], image(9))


def test_enlarged_images_show_the_nearest_pixel() -> None:
    pixels = torch.arange(2 * 2 * 3, dtype=torch.uint8).reshape(2, 2, 3)
    large = enlarged(pixels, 3)
    assert large.shape == (3, 3, 3)
    assert large[0].tolist() == [[0, 0, 3], [0, 0, 3], [6, 6, 9]]


@pytest.mark.parametrize(("field", "value"), [("steps", 1001), ("prefill", 1001), ("interval", 30), ("prefill", 100)])
def test_settings_that_would_fail_late_are_refused(field: str, value: int) -> None:
    with pytest.raises(ValueError, match=field):
        Settings("minigrid/doorkey", 100, **{"steps": 1000, field: value})


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    checks = Distribution._validate_args
    monkeypatch.setattr(Categorical, "sample", Categorical.sample)
    monkeypatch.setattr(normal, "broadcast_all", normal.broadcast_all)
    monkeypatch.setattr(kl, "_kl_categorical_categorical", kl._kl_categorical_categorical)
    waitless.install()
    yield
    Distribution.set_default_validate_args(checks)


def divergence_and_gradient(logits: list[torch.Tensor]) -> list[torch.Tensor]:
    first, second = (Independent(OneHotCategorical(logits=each), 1) for each in logits)
    value = kl_divergence(first, second).sum()
    return [value, *torch.autograd.grad(value, logits)]


def test_divergence_and_density_are_those_of_torch(request: pytest.FixtureRequest) -> None:
    torch.manual_seed(0)
    logits = [torch.randn(3, 4, 5, requires_grad=True) for _ in range(2)]
    before = [*divergence_and_gradient(logits), Normal(logits[0], 1).log_prob(logits[1])]
    request.getfixturevalue("installed")
    after = [*divergence_and_gradient(logits), Normal(logits[0], 1).log_prob(logits[1])]
    for expected, found in zip(before, after, strict=True):
        torch.testing.assert_close(found, expected)


@pytest.mark.usefixtures("installed")
def test_draws_have_the_right_probabilities() -> None:
    torch.manual_seed(0)
    drawn = OneHotCategorical(probs=torch.tensor([0.1, 0.2, 0.7]).expand(50_000, 3)).sample()
    assert drawn.mean(0).tolist() == pytest.approx([0.1, 0.2, 0.7], abs=0.01)
    assert Categorical(probs=torch.tensor([0.0, 1.0])).sample((4,)).tolist() == [1, 1, 1, 1]
