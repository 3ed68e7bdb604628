"""Keys: exact, the same everywhere, and as wide apart as each encoder promises."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from backsweep import DiscreteKey, ExactBytes, Quantized, RandomProjection
from backsweep.encoding import Encoder, LiveEncoder
from backsweep.encoding.random_projection import LiveRandomProjection
from backsweep.encoding.random_projection_kernels import project_float_places
from backsweep.jit.random_streams import named_generator
from backsweep.snapshot.contents import ContentsError
from twins.random_projection import fixed_point, project
from worlds import MOST_STATES, WORLDS, stacked


def build(encoder: Encoder, space: gym.Space[Any], seed: int = 0) -> LiveEncoder:
    return encoder.build(space, named_generator(seed, "encoder"))


def projection(space: gym.Space[Any], dim: int = 3) -> LiveRandomProjection:
    live = build(RandomProjection(dim), space)
    assert isinstance(live, LiveRandomProjection)
    return live


@pytest.mark.kernels
@given(st.lists(st.integers(0, 255), min_size=6, max_size=6))
def test_bytes_are_projected_as_by_the_twin(pixels: list[int]) -> None:
    live = projection(gym.spaces.Box(0, 255, (2, 3), np.uint8))
    found = live.encode(np.array(pixels, np.uint8).reshape(1, 2, 3))
    assert found.tolist() == [project(pixels, live.matrix.tolist())]


@pytest.mark.kernels
@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=4, max_size=4))
def test_integers_are_projected_as_by_the_twin(values: list[int]) -> None:
    live = projection(gym.spaces.Box(-(2**63), 2**63 - 1, (4,), np.int64))
    assert live.encode(np.array([values], np.int64)).tolist() == [project(values, live.matrix.tolist())]


@pytest.mark.filterwarnings("ignore:RandomProjection clips numbers")
@pytest.mark.kernels
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=3, max_size=3))
def test_floats_are_projected_as_by_the_twin(values: list[float]) -> None:
    live = projection(gym.spaces.Box(-np.inf, np.inf, (3,), np.float64))
    found = live.encode(np.array([values]))
    assert found.tolist() == [project([fixed_point(value) for value in values], live.matrix.tolist())]


@pytest.mark.kernels
@given(
    st.lists(st.floats(allow_nan=False, allow_infinity=False, width=32), min_size=6, max_size=6),
    st.sampled_from([np.float32, np.float64]),
    st.permutations([0, 1]),
)
def test_floats_at_places_are_projected_as_by_the_twin(values: list[float], dtype: type, places: list[int]) -> None:
    live = projection(gym.spaces.Box(-np.inf, np.inf, (3,), np.float64))
    keys = np.zeros((2, 3), np.int64)
    observations = np.array(values, dtype).reshape(2, 3)
    project_float_places(observations, np.array(places, np.int32)[:, None], live.matrix, keys)
    matrix = live.matrix.tolist()
    rows = [[fixed_point(float(value)) for value in observations[place]] for place in places]
    assert keys.tolist() == [project(row, matrix) for row in rows]


def test_entries_of_the_matrix_are_normal_with_variance_1_over_d() -> None:
    from scipy import stats

    for dim in (1, 3, 8):
        matrix = projection(gym.spaces.Box(0, 255, (5000,), np.uint8), dim).matrix / 2**20
        assert matrix.shape == (dim, 5000)
        assert stats.kstest(matrix.reshape(-1), "norm", args=(0, np.sqrt(1 / dim))).pvalue > 1e-4


def test_the_projection_keeps_distances_on_the_average() -> None:
    """The law of Johnson and Lindenstrauss that the paper's encoding rests on."""
    space = gym.spaces.Box(-np.inf, np.inf, (20,), np.float64)
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=(2, 20))
    ratios = []
    for seed in range(400):
        live = build(RandomProjection(dim=3), space, seed)
        keys = live.encode(np.stack([first, second])) / 2**40
        ratios.append(((keys[0] - keys[1]) ** 2).sum() / ((first - second) ** 2).sum())
    assert np.mean(ratios) == pytest.approx(1.0, abs=4 * np.std(ratios) / 20)


def test_keys_are_the_same_on_every_machine() -> None:
    """Worked out once and written down."""
    live = projection(WORLDS["uint8"].space)
    live.load({"matrix": (np.arange(36).reshape(3, 12) * 7919 % 2003 - 1000).astype(np.int32)})
    found = live.encode(WORLDS["uint8"].observe(5)[None])
    assert found.tolist() == [project(WORLDS["uint8"].observe(5).reshape(-1).tolist(), live.matrix.tolist())]
    exact = build(ExactBytes(), WORLDS["uint8"].space)
    assert exact.encode(np.arange(12, dtype=np.uint8).reshape(1, 3, 4)).tolist() == [
        [4105350226480938181, 8611141083647120330]
    ]


@pytest.mark.parametrize("entry", [2**24, -(2**24), -(2**31)])
def test_a_loaded_matrix_with_a_larger_entry_than_is_ever_drawn_is_refused(entry: int) -> None:
    live = projection(WORLDS["uint8"].space)
    before = live.matrix.copy()
    matrix = before.copy()
    matrix[1, 2] = entry
    with pytest.raises(ContentsError, match=r"beyond 2\*\*24"):
        live.load({"matrix": matrix})
    assert (live.matrix == before).all()


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("encoder", [RandomProjection(), ExactBytes(), Quantized(0.01)], ids=str)
def test_different_states_have_different_keys(world: str, encoder: Encoder) -> None:
    live = build(encoder, WORLDS[world].space)
    keys = live.encode(stacked([WORLDS[world].observe(state) for state in range(MOST_STATES - 3)]))
    assert len(np.unique(keys, axis=0)) == MOST_STATES - 3


@pytest.mark.parametrize(
    "world", ["discrete", "discrete from -5", "multi discrete", "multi discrete from 3", "multi binary"]
)
def test_discrete_states_are_numbered_without_a_collision(world: str) -> None:
    live = build(DiscreteKey(), WORLDS[world].space)
    keys = live.encode(stacked([WORLDS[world].observe(state) for state in range(MOST_STATES)]))
    assert keys.shape == (MOST_STATES, 1)
    assert len(np.unique(keys)) == MOST_STATES


def test_discrete_key_says_what_it_cannot_number() -> None:
    for space in (gym.spaces.Box(0, 1, (2,), np.uint8), gym.spaces.MultiBinary(62)):
        with pytest.raises(ValueError, match="DiscreteKey needs Discrete, MultiDiscrete or MultiBinary"):
            build(DiscreteKey(), space)


def test_negative_zero_is_zero() -> None:
    space = gym.spaces.Box(-1, 1, (2,), np.float32)
    batch = np.array([[0.0, 0.5], [-0.0, 0.5]], np.float32)
    for encoder in (RandomProjection(), ExactBytes(), Quantized(0.25)):
        keys = build(encoder, space).encode(batch)
        assert keys[0].tolist() == keys[1].tolist()


def test_a_cell_of_the_grid_is_one_vertex() -> None:
    live = build(Quantized((0.5, 2.0)), gym.spaces.Box(-10, 10, (2,), np.float64))
    keys = live.encode(np.array([[0.0, 0.0], [0.49, 1.99], [0.5, 0.0], [0.0, 2.0], [-0.01, 0.0], [-0.5, -2.0]]))
    cells = [tuple(key) for key in keys.tolist()]
    assert cells[0] == cells[1]
    assert len(set(cells)) == 5


def test_arrays_of_a_dict_are_told_apart_by_their_place() -> None:
    space = gym.spaces.Dict(a=gym.spaces.Box(0, 255, (2,), np.uint8), b=gym.spaces.Box(0, 255, (2,), np.uint8))
    batch = {"a": np.array([[1, 2], [3, 4]], np.uint8), "b": np.array([[3, 4], [1, 2]], np.uint8)}
    for encoder in (RandomProjection(), ExactBytes(), Quantized(1.0)):
        keys = build(encoder, space).encode(batch)
        assert keys[0].tolist() != keys[1].tolist()
