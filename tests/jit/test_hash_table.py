"""The hash table against a Python dictionary, with hashes that collide and tables that are nearly full."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from backsweep.jit.compilation import kernel
from backsweep.jit.hash_table_kernels import (
    EMPTY,
    after,
    entry,
    home,
    insert,
    likely_item,
    may_be,
    number_in,
    prefetch_home,
    remove,
)

pytestmark = pytest.mark.kernels
PLACES = 16


@kernel
def add(number: int, codes: NDArray[np.uint64], table: NDArray[np.uint64]) -> int:
    return insert(codes[number], number, table)


@kernel
def search(number: int, codes: NDArray[np.uint64], table: NDArray[np.uint64]) -> int:
    place = home(codes[number], table)
    while table[place] != EMPTY:
        if may_be(table[place], codes[number]) and number_in(table[place]) == number:
            return place
        place = after(place, table)
    return -1


@kernel
def take_out(number: int, codes: NDArray[np.uint64], table: NDArray[np.uint64]) -> None:
    remove(codes[number], number, table)


@given(
    codes=st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 3) | st.integers(14, 17), min_size=15, max_size=15),
    changes=st.lists(st.integers(0, 14), max_size=60),
)
def test_items_are_found_while_they_are_in_the_table(codes: list[int], changes: list[int]) -> None:
    table, numbers = np.zeros(PLACES, np.uint64), np.array(codes, np.uint64)
    stored: dict[int, int] = {}
    for number in changes:  # one place always stays empty
        if number in stored:
            take_out(number, numbers, table)
            del stored[number]
        else:
            passed = add(number, numbers, table)
            assert passed == (search(number, numbers, table) - codes[number] % PLACES) % PLACES
            stored[number] = codes[number]
        assert np.count_nonzero(table) == len(stored)
        for other in range(15):
            place = search(other, numbers, table)
            assert (place >= 0) == (other in stored)
            if place >= 0:  # no empty place lies between an item and its home
                between = (place - codes[other] % PLACES) % PLACES
                assert all(table[(codes[other] % PLACES + step) % PLACES] for step in range(between))


@kernel
def hint(code: np.uint64, table: NDArray[np.uint64]) -> int:
    prefetch_home(code, table)
    return likely_item(code, table)


@kernel
def fill(numbers: NDArray[np.int64], codes: NDArray[np.uint64], table: NDArray[np.uint64]) -> None:
    for place in range(PLACES):
        if numbers[place] >= 0:
            table[place] = entry(codes[place], numbers[place])


@given(
    code=st.integers(0, 2**64 - 1),
    other=st.integers(0, 2**64 - 1),
    number=st.integers(-1, 2**31 - 2),
)
def test_the_likely_item_is_the_one_in_the_home_if_half_of_its_hash_fits(code: int, other: int, number: int) -> None:
    for there in (code, code ^ 1 << 40, code ^ 1 << 31, other):  # the upper half of a hash is not in the table
        table = np.zeros(PLACES, np.uint64)
        fill(np.full(PLACES, number), np.full(PLACES, there, np.uint64), table)
        before = table.copy()
        likely = number >= 0 and there % 2**32 == code % 2**32
        assert hint(np.uint64(code), table) == (number if likely else -1)
        np.testing.assert_array_equal(table, before)
