"""Bundles: what is refused when their rows are made, and what kernels get back."""

from __future__ import annotations

import sys
from typing import Annotated, NamedTuple

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from backsweep.jit import array_table
from backsweep.jit.array_table import (
    Addresses,
    BoolVector,
    ByteImages,
    Float32Vector,
    Float64Matrix,
    Int32Cube,
    Int64Vector,
    Table,
    WordMatrix,
    address_table,
    address_tables,
    addresses_of,
    unpack,
    viewed,
)
from backsweep.jit.compilation import interpreted, kernel

pytestmark = pytest.mark.kernels


class Sums(NamedTuple):
    """Some arrays of every number of axes."""

    counts: Int64Vector
    chosen: BoolVector
    cube: Int32Cube
    images: ByteImages
    values: Float64Matrix
    singles: Float32Vector


@kernel
def add_up(addresses: Addresses) -> float:
    """Read every array in the order of its axes, and write to one."""
    sums = unpack(Sums, addresses)
    total = 0.0
    for i in range(sums.chosen.shape[0]):
        total += sums.counts[i] if sums.chosen[i] else 0
    for i in range(sums.cube.shape[0]):
        for j in range(sums.cube.shape[1]):
            for k in range(sums.cube.shape[2]):
                total += (100 * i + 10 * j + k) * sums.cube[i, j, k]
    for i in range(sums.images.shape[0]):
        for j in range(sums.images.shape[1]):
            total += sums.images[i, j, sums.images.shape[2] - 1, 0]
    for i in range(sums.values.shape[0]):
        for j in range(sums.values.shape[1]):
            total += (i + 1) * sums.values[i, j]
            sums.values[i, j] += 1.0
    return total + sums.singles.sum()


def add_up_plainly(sums: Sums) -> float:
    """The twin of `add_up`."""
    i, j, k = np.indices(sums.cube.shape)
    total = float(sums.counts[sums.chosen].sum()) + float(((100 * i + 10 * j + k) * sums.cube).sum())
    total += float(sums.images[:, :, -1, 0].astype(np.int64).sum())
    total += float((np.arange(1, len(sums.values) + 1)[:, None] * sums.values).sum())
    sums.values[:] += 1.0
    return total + float(sums.singles.sum())


def example(rng: np.random.Generator, sizes: list[int]) -> Sums:
    a, b, c = sizes
    return Sums(
        rng.integers(-9, 9, a),
        rng.random(a) < 0.5,
        rng.integers(-9, 9, (a, b, c), np.int32),
        rng.integers(0, 255, (b, c, 2, 3), np.uint8),
        rng.integers(-9, 9, (c, a)).astype(np.float64),
        rng.integers(-9, 9, b).astype(np.float32),
    )


@given(st.integers(0, 2**32 - 1), st.lists(st.integers(0, 4), min_size=3, max_size=3))
def test_kernels_get_the_arrays_that_were_put_in(seed: int, sizes: list[int]) -> None:
    given_arrays, twin = (example(np.random.default_rng(seed), sizes) for _ in range(2))
    for _ in range(2):
        assert add_up(addresses_of(given_arrays)) == add_up_plainly(twin)
    np.testing.assert_array_equal(given_arrays.values, twin.values)


class Single(NamedTuple):
    """One array."""

    counts: Int64Vector


@kernel
def first_counts(runs: Table) -> int:
    """Read through a row of a table of a table."""
    total = 0
    for run in range(runs.shape[0]):
        total = 10 * total + unpack(Single, runs[run][1:][0]).counts[0]
    return total


def test_tables_are_padded() -> None:
    counts = [Single(np.array([number])) for number in (1, 2)]
    sums = example(np.random.default_rng(0), [1, 2, 3])
    table = address_table([counts[0], None, sums])
    assert table.shape == (3, 6, array_table.COLUMNS)
    assert not table[1].any()
    assert first_counts(address_tables([[None, counts[0]], [sums, counts[1], None]])) == 12


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.zeros(3), "got float64 of shape (3,)"),
        (np.zeros((3, 1), np.int64), "got int64 of shape (3, 1)"),
        (np.zeros(6, np.int64)[::2], "got int64 of shape (3,) that is not contiguous"),
    ],
)
def test_arrays_of_another_kind_are_refused(array: NDArray[np.generic], words: str) -> None:
    with pytest.raises(ValueError, match=r"Single.counts must be a contiguous array of int64 with 1 axes") as error:
        addresses_of(Single(array))  # type: ignore[arg-type]
    assert words in str(error.value)


def test_what_is_no_array_is_refused() -> None:
    with pytest.raises(TypeError, match=r"Single.counts must be .* got list"):
        addresses_of(Single([1, 2]))  # type: ignore[arg-type]


@kernel
def raise_every_other(counts: NDArray[np.int64]) -> None:
    """Write through a view that came as an argument."""
    for i in range(counts.shape[0]):
        counts[i] += 1


@kernel
def write_through_views(addresses: Addresses) -> int:
    """Hand views of borrowed arrays to another kernel, and read their bytes."""
    counts = unpack(Single, addresses).counts
    raise_every_other(counts[1::2])
    raise_every_other(counts[:0])
    return counts.view(np.uint8)[8]


def test_views_of_unpacked_arrays_are_the_arrays() -> None:
    counts = np.arange(5)
    assert write_through_views(addresses_of(Single(counts))) == 2
    assert counts.tolist() == [0, 2, 2, 4, 4]
    assert sys.getrefcount(counts) == 2, "nobody holds it after the call"


@kernel
def read_one(place: int, addresses: Addresses) -> int:
    return unpack(Single, addresses).counts[place]


@kernel
def write_one(place: int, addresses: Addresses) -> None:
    unpack(Single, addresses).counts[place] = 1


@kernel
def read_of_four(first: int, second: int, addresses: Addresses) -> int:
    return unpack(Images, addresses).images[first, second, 0, 0]


class Images(NamedTuple):
    """One array of four axes."""

    images: ByteImages


@pytest.mark.skipif(interpreted() or not numba.config.BOUNDSCHECK, reason="indices are only checked with bounds checks")
@pytest.mark.parametrize("place", [-1, 3])
def test_bounds_checks_refuse_indices_that_no_entry_has(place: int) -> None:
    row = addresses_of(Single(np.arange(3)))
    images = addresses_of(Images(np.zeros((3, 3, 1, 1), np.uint8)))
    for read in (read_one, write_one):
        with pytest.raises(IndexError, match="out of bounds"):
            read(place, row)
    for pair in ((place, 0), (0, place)):
        with pytest.raises(IndexError, match="out of bounds"):
            read_of_four(*pair, images)


@pytest.mark.skipif(interpreted(), reason="in plain Python any array is an array")
def test_a_kernel_that_would_allocate_borrowed_memory_does_not_compile() -> None:
    @kernel
    def copy_of(addresses: Addresses) -> NDArray[np.int64]:
        return unpack(Single, addresses).counts.copy()

    with pytest.raises(numba.TypingError, match="BorrowedArray"):
        copy_of(addresses_of(Single(np.arange(5))))


class Vague(NamedTuple):
    """A bundle that does not say what its array is."""

    counts: Annotated[NDArray[np.int64], "whole numbers"]


def test_a_bundle_must_say_what_its_arrays_are() -> None:
    with pytest.raises(TypeError, match=r"Vague.counts must be annotated with a kind of array"):
        addresses_of(Vague(np.zeros(1, np.int64)))


class Words(NamedTuple):
    """Rows of words."""

    words: WordMatrix


@kernel
def double_halves(addresses: Addresses, first: int) -> int:
    """Double the 32-bit numbers of the rows from `first` on; return how many there are in a row."""
    words = unpack(Words, addresses).words
    halves = viewed(words[first:], np.int32)
    for i in range(halves.shape[0]):
        for j in range(halves.shape[1]):
            halves[i, j] *= 2
    return viewed(halves, np.uint64).shape[1] + halves.shape[1]


@pytest.mark.parametrize("width", [0, 1, 5])
def test_the_rows_of_a_bundle_can_be_seen_as_other_numbers(width: int) -> None:
    numbers = np.arange(3 * 2 * width, dtype=np.int32).reshape(3, 2 * width)
    expected = numbers * np.array([[1], [2], [2]], np.int32)
    assert double_halves(addresses_of(Words(numbers.view(np.uint64))), 1) == 3 * width
    assert np.array_equal(numbers, expected)


@pytest.mark.skipif(interpreted(), reason="numpy sees any array as other numbers")
def test_only_what_a_kernel_borrows_is_seen_as_other_numbers() -> None:
    @kernel
    def see(numbers: NDArray[np.int64]) -> int:
        return viewed(numbers, np.int32).shape[0]

    with pytest.raises(TypeError, match="viewed takes an array of a bundle"):
        see(np.zeros(3, np.int64))
