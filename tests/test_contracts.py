"""Every sampler and encoder of the library passes the contract that others are held to, and broken ones do not."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from backsweep import (
    DiscreteKey,
    EpisodicBackward,
    ExactBytes,
    Mixture,
    Prioritized,
    PseudoTerminals,
    Quantized,
    RandomProjection,
    Topological,
    Uniform,
)
from backsweep.encoding import Encoder, LiveEncoder
from backsweep.samplers import Experience, LiveSampler, Sampler
from backsweep.testing import EncoderContract, SamplerContract
from backsweep.types import Picks
from worlds import WORLDS

SAMPLERS: list[Sampler] = [
    Uniform(),
    Prioritized(),
    Prioritized(stratified=True, normalise="batch", beta_rows=60),
    EpisodicBackward(),
    EpisodicBackward(timeouts=False, running=False),
    Topological(),
    Topological(start=PseudoTerminals(), trees="separate", draw="visits", predecessors=None),
    Topological(stitch=False, shuffle=10),
    Mixture([(0.5, Topological()), (0.5, Prioritized())]),
    Mixture([(0.2, Uniform()), (0.3, EpisodicBackward()), (0.5, Mixture([(0.5, Prioritized()), (0.5, Uniform())]))]),
]


@pytest.mark.parametrize("sampler", SAMPLERS, ids=str)
class TestSamplers(SamplerContract):
    @pytest.fixture(autouse=True)
    def _choose(self, sampler: Sampler) -> None:
        self.sampler = sampler

    def make_sampler(self) -> Sampler:
        return self.sampler


ENCODERS: list[tuple[Encoder, gym.Space[Any]]] = [
    (RandomProjection(), WORLDS["uint8"].space),
    (RandomProjection(dim=5), WORLDS["float32"].space),
    (RandomProjection(), WORLDS["int32"].space),
    (RandomProjection(), WORLDS["dict"].space),
    (RandomProjection(), WORLDS["multi binary"].space),
    (ExactBytes(), WORLDS["uint8"].space),
    (ExactBytes(), WORLDS["tuple"].space),
    (Quantized(0.5), WORLDS["float64"].space),
    (Quantized((0.1, 2.0, 3.0)), gym.spaces.Box(-5, 5, (3,), np.float32)),
    (Quantized(1.0), WORLDS["dict"].space),
    (DiscreteKey(), WORLDS["discrete from -5"].space),
    (DiscreteKey(), WORLDS["multi discrete from 3"].space),
    (DiscreteKey(), gym.spaces.Dict(a=gym.spaces.Discrete(30), b=gym.spaces.MultiBinary((2, 3)))),
]


@pytest.mark.parametrize(("encoder", "space"), ENCODERS, ids=str)
class TestEncoders(EncoderContract):
    @pytest.fixture(autouse=True)
    def _choose(self, encoder: Encoder, space: gym.Space[Any]) -> None:
        self.encoder, self.space = encoder, space

    def make_encoder(self) -> Encoder:
        return self.encoder

    def make_space(self) -> gym.Space[Any]:
        return self.space


def broken_promises(contract: SamplerContract | EncoderContract, folder: Path) -> set[str]:
    """Run a contract by hand; return the tests that fail."""
    failed = set()
    for name in dir(contract):
        if name.startswith("test_"):
            test = getattr(contract, name)
            try:
                test(folder / name) if "tmp_path" in test.__code__.co_varnames else test()
            except (AssertionError, ValueError, IndexError):
                failed.add(name)
    return failed


class BrokenSampler(LiveSampler):
    """Does whatever its configuration says that a sampler should not do."""

    calls = 0

    def __init__(self, fault: str, experience: Experience, generator: np.random.Generator) -> None:
        super().__init__(experience, generator)
        self.fault = fault
        self.row = np.zeros(1000, np.int64)

    def pick(self, count: int) -> Picks:
        oldest, live = self.experience.oldest, len(self.experience)
        row = oldest + self.generator.integers(live, size=count)
        if self.fault == "too few":
            row = row[: max(count - 1, 1)]
        elif self.fault == "old rows":
            row = np.minimum(row, 40)
        elif self.fault == "global randomness":
            row = oldest + np.random.randint(live, size=count)  # noqa: NPY002
        elif self.fault == "counts calls":
            self.row[:count] = row
            BrokenSampler.calls += 1
            row = oldest + (row + BrokenSampler.calls) % live
        elif self.fault == "same array":
            self.row[:count] = row
            row = self.row[:count]
        elif self.fault == "wrong weights":
            return Picks(row, np.full(count, np.nan, np.float32))
        elif self.fault == "forgets":
            self.row[0] += 1
            row = oldest + (row + self.row[0]) % live
        return Picks(row)


@dataclass(frozen=True)
class Broken:
    fault: str
    needs_graph = False

    def build(self, experience: Experience, generator: np.random.Generator) -> LiveSampler:
        return BrokenSampler(self.fault, experience, generator)


@pytest.mark.parametrize(
    ("fault", "promise"),
    [
        ("too few", "test_rows_are_live_at_every_moment"),
        ("old rows", "test_rows_are_live_at_every_moment"),
        ("global randomness", "test_global_generators_are_left_alone"),
        ("counts calls", "test_one_configuration_serves_two_replays"),
        ("same array", "test_batches_stay_as_they_were_handed_out"),
        ("wrong weights", "test_updates_of_any_live_rows_are_taken"),
        ("forgets", "test_a_saved_sampler_goes_on_as_if_never_saved"),
    ],
)
def test_a_broken_sampler_is_found_out(fault: str, promise: str, tmp_path: Path) -> None:
    class Contract(SamplerContract):
        def make_sampler(self) -> Sampler:
            return Broken(fault)

    assert promise in broken_promises(Contract(), tmp_path)


def test_a_good_sampler_of_ones_own_is_not(tmp_path: Path) -> None:
    class Contract(SamplerContract):
        def make_sampler(self) -> Sampler:
            return Broken("none")

    assert broken_promises(Contract(), tmp_path) == set()


class BrokenEncoder(LiveEncoder):
    words = 1

    def __init__(self, fault: str, generator: np.random.Generator) -> None:
        self.fault = fault
        self.weights = generator.integers(1 << 40, size=24)

    def encode(self, observations: Any) -> np.ndarray:
        flat = np.asarray(observations).reshape(len(observations), -1).astype(np.int64)
        keys = (flat @ self.weights).reshape(-1, 1)
        if self.fault == "looks around":
            keys = keys + len(keys)
        elif self.fault == "writes":
            observations[0] = 0
        elif self.fault == "wrong shape":
            keys = keys[:, 0]
        return keys


@dataclass(frozen=True)
class BrokenEncoding:
    fault: str

    def build(self, space: gym.Space[Any], generator: np.random.Generator) -> LiveEncoder:
        return BrokenEncoder(self.fault, generator)


@pytest.mark.parametrize(
    ("fault", "promise"),
    [
        ("looks around", "test_equal_observations_have_equal_keys_whatever_is_around_them"),
        ("writes", "test_observations_are_not_written_to"),
        ("wrong shape", "test_keys_have_the_shape_that_is_promised"),
        ("forgets", "test_what_is_random_comes_from_the_generator_and_is_saved"),
    ],
)
def test_a_broken_encoder_is_found_out(fault: str, promise: str, tmp_path: Path) -> None:
    class Contract(EncoderContract):
        def make_encoder(self) -> Encoder:
            return BrokenEncoding(fault)

        test_a_replay_finds_its_vertices_by_it = None  # type: ignore[assignment]

    contract = Contract()
    names = [name for name in dir(contract) if name.startswith("test_") and getattr(contract, name) is not None]
    failed = set()
    for name in names:
        try:
            getattr(contract, name)()
        except (AssertionError, ValueError):
            failed.add(name)
    assert promise in failed
