"""The hash table against a Python dictionary, with hashes that collide and tables that are nearly full."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from backsweep.jit.compilation import kernel
from backsweep.jit.hash_table_kernels import after, close_gap, home, insert, place_of, prefetch_home, prefetch_items

pytestmark = pytest.mark.kernels
PLACES = 16


@kernel
def add(number: int, codes: NDArray[np.uint64], table: NDArray[np.int32]) -> None:
    insert(codes[number], number, table)


@kernel
def search(number: int, codes: NDArray[np.uint64], table: NDArray[np.int32]) -> int:
    place = home(codes[number], table)
    while table[place] != 0:
        if table[place] == number + 1:
            return place
        place = after(place, table)
    return -1


@kernel
def remove(number: int, codes: NDArray[np.uint64], table: NDArray[np.int32]) -> None:
    gap = place_of(codes[number], number, table)
    place = after(gap, table)
    while table[place] != 0:
        gap = close_gap(gap, place, codes[table[place] - 1], table)
        place = after(place, table)
    table[gap] = 0


@given(
    codes=st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 3) | st.integers(14, 17), min_size=15, max_size=15),
    changes=st.lists(st.integers(0, 14), max_size=60),
)
def test_items_are_found_while_they_are_in_the_table(codes: list[int], changes: list[int]) -> None:
    table, numbers = np.zeros(PLACES, np.int32), np.array(codes, np.uint64)
    stored: dict[int, int] = {}
    for number in changes:  # one place always stays empty
        if number in stored:
            remove(number, numbers, table)
            del stored[number]
        else:
            add(number, numbers, table)
            stored[number] = codes[number]
        assert np.count_nonzero(table) == len(stored)
        for other in range(15):
            place = search(other, numbers, table)
            assert (place >= 0) == (other in stored)
            if place >= 0:  # no empty place lies between an item and its home
                between = (place - codes[other] % PLACES) % PLACES
                assert all(table[(codes[other] % PLACES + step) % PLACES] for step in range(between))


@kernel
def hint(code: np.uint64, places: int, table: NDArray[np.int32], items: NDArray[np.int64]) -> None:
    prefetch_home(code, table)
    prefetch_items(code, places, table, items, 2)


@given(
    code=st.integers(0, 2**64 - 1),
    places=st.integers(0, 20),
    numbers=st.lists(st.integers(0, 15), min_size=PLACES, max_size=PLACES),
)
def test_prefetching_changes_nothing_and_stays_within_the_arrays(code: int, places: int, numbers: list[int]) -> None:
    table, items = np.array(numbers, np.int32), np.arange(45, dtype=np.int64).reshape(15, 3)
    before = table.copy(), items.copy()
    hint(np.uint64(code), places, table, items)
    np.testing.assert_array_equal(table, before[0])
    np.testing.assert_array_equal(items, before[1])
