"""Generators by name, and the stream that kernels stretch from one word."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from backsweep.jit import random_streams_kernels
from backsweep.jit.random_streams import checked_seed, generator_state, named_generator, random_word, restore_generator
from twins.random_streams import SplitMix64

WORDS = st.integers(0, 2**64 - 1)


@pytest.mark.kernels
@given(WORDS, st.integers(1, 2**31))
def test_the_stream_is_that_of_the_twin(word: int, bound: int) -> None:
    state, twin = np.array([word], np.uint64), SplitMix64(word)
    for _ in range(10):
        assert random_streams_kernels.draw_unit(state) == twin.unit()
        assert random_streams_kernels.draw_below(state, bound) == twin.below(bound)
    assert int(state[0]) == twin.state


@pytest.mark.kernels
def test_the_stream_is_splitmix64() -> None:
    """The first words for the seed 1234567 as the algorithm's author publishes them, cut to 53 bits."""
    published = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431]
    state = np.array([1234567], np.uint64)
    assert [random_streams_kernels.draw_unit(state) for _ in published] == [
        (word >> 11) * 2.0**-53 for word in published
    ]


@pytest.mark.kernels
@given(WORDS)
def test_a_draw_stays_below_its_bound(word: int) -> None:
    state = np.array([word], np.uint64)
    for bound in (1, 2, 3, 7, 2**31):
        assert 0 <= random_streams_kernels.draw_below(state, bound) < bound


def test_a_name_fixes_the_generator() -> None:
    draws = {
        names: named_generator(5, *names).integers(2**60)
        for names in [("sampler",), ("encoder",), ("mixture", "0"), ("mixture", "1"), ("mixture",), ()]
    }
    assert len(set(draws.values())) == len(draws)
    assert all(named_generator(5, *names).integers(2**60) == number for names, number in draws.items())
    assert named_generator(6, "sampler").integers(2**60) != draws["sampler",]


def test_the_numbers_are_the_same_on_every_machine() -> None:
    assert named_generator(0, "sampler").integers(2**60, size=3).tolist() == [
        665918834122881469,
        237360022340397160,
        13792670527194421,
    ]
    assert int(random_word(named_generator(0, "sampler"))) == 10654701345966103517


def test_a_state_brings_the_generator_back() -> None:
    generator, other = named_generator(1, "a"), named_generator(2, "b")
    generator.random(10)
    restore_generator(other, generator_state(generator))
    assert other.random(5).tolist() == generator.random(5).tolist()


def test_a_seed_is_an_int_of_0_or_more() -> None:
    assert checked_seed(np.int32(3)) == 3
    with pytest.raises(TypeError, match="seed must be an int, got bool"):
        checked_seed(True)
    with pytest.raises(ValueError, match="seed must be 0 or more, got -1"):
        checked_seed(-1)
