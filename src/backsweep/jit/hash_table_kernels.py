"""Hash tables with open addressing: where items are found by their hash.

    table[place]    number of an item + 1, or 0 for an empty place; the number of places is a power of two

An item lies in the first place that was free from its home, ``hash & (places - 1)``, on. The items and their hashes are
the caller's, who searches from `home` to `after` until the item or an empty place comes, and removes an item with

    gap = place_of(code, number, table)
    place = after(gap, table)
    while table[place] != 0:
        gap = close_gap(gap, place, hash of the item at place, table)
        place = after(place, table)
    table[gap] = 0

which moves later items back, so that no marker is left and searches stay short.
"""

# In compiled code Python's numbers and numpy's are one and the same.
# mypy: disable-error-code="no-any-return,arg-type,assignment,return-value"

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from backsweep.jit.compilation import inlined
from backsweep.jit.prefetching import prefetch


@inlined
def home(code: np.uint64, table: NDArray[np.int32]) -> int:
    """Return the place where the search for a hash begins."""
    return np.int64(code & np.uint64(table.shape[0] - 1))


@inlined
def after(place: int, table: NDArray[np.int32]) -> int:
    """Return the place that is searched after another."""
    return (place + 1) & (table.shape[0] - 1)


@inlined
def insert(code: np.uint64, number: int, table: NDArray[np.int32]) -> None:
    """Put an item that is not in the table into the first free place."""
    place = home(code, table)
    while table[place] != 0:
        place = after(place, table)
    table[place] = number + 1


@inlined
def place_of(code: np.uint64, number: int, table: NDArray[np.int32]) -> int:
    """Return the place of an item that is in the table."""
    place = home(code, table)
    while table[place] != number + 1:
        place = after(place, table)
    return place


@inlined
def close_gap(gap: int, place: int, code: np.uint64, table: NDArray[np.int32]) -> int:
    """Move the item at `place`, which has this hash, into the gap if it may lie there; return where the gap is then."""
    mask = table.shape[0] - 1
    if ((place - home(code, table)) & mask) >= ((place - gap) & mask):
        table[gap] = table[place]
        return place
    return gap


@inlined
def prefetch_home(code: np.uint64, table: NDArray[np.int32]) -> None:
    """Prefetch the place where the search for a hash begins."""
    prefetch(table, home(code, table))


@inlined
def prefetch_items(
    code: np.uint64, places: int, table: NDArray[np.int32], items: NDArray[np.generic], offset: int
) -> None:
    """Prefetch the items in the home of a hash and the places after it, each from the number `offset` on."""
    place = home(code, table)
    for _ in range(places):
        prefetch(items, max(table[place] - 1, 0), offset)
        place = after(place, table)
