"""Hash tables with open addressing: where items are found by their hash.

    table[place]    [ lower half of the hash | number of an item + 1 ], or 0 for an empty place

The number of places is a power of two. An item lies in the first place that was free from its home, ``hash & (places -
1)``, on. The items are the caller's, who searches from `home` to `after` until the item or an empty place comes.

The half hash tells nearly all other items apart from the one that is searched, and says where an item's home is. So an
item is read only where it is found: items are scattered over memory, and waiting for one takes longer than all else.

Removing an item moves later ones back, so that no marker is left and searches stay short.
"""

# In compiled code Python's numbers and numpy's are one and the same.
# mypy: disable-error-code="no-any-return,arg-type,assignment,return-value"

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from backsweep.jit.compilation import inlined
from backsweep.jit.prefetching import prefetch

EMPTY = np.uint64(0)
HALF = np.uint64(32)
LOWER_HALF = np.uint64(0xFFFFFFFF)


@inlined
def home(code: np.uint64, table: NDArray[Any]) -> int:
    """Return the place where the search for a hash begins."""
    return np.int64(code & np.uint64(table.shape[0] - 1))


@inlined
def after(place: int, table: NDArray[Any]) -> int:
    """Return the place that is searched after another."""
    return (place + 1) & (table.shape[0] - 1)


@inlined
def entry(code: np.uint64, number: int) -> np.uint64:
    """Return what stands in the table for an item with this hash."""
    return (code << HALF) | np.uint64(number + 1)


@inlined
def number_in(found: np.uint64) -> int:
    """Return the number of the item that an entry stands for."""
    return np.int64(found & LOWER_HALF) - 1


@inlined
def may_be(found: np.uint64, code: np.uint64) -> bool:
    """Say whether the item that an entry stands for may have this hash."""
    return found >> HALF == code & LOWER_HALF


@inlined
def insert(code: np.uint64, number: int, table: NDArray[np.uint64]) -> int:
    """Put an item that is not in the table into the first free place; return how many taken places came before it."""
    place, passed = home(code, table), 0
    while table[place] != EMPTY:
        place = after(place, table)
        passed += 1
    table[place] = entry(code, number)
    return passed


@inlined
def most_passed(items: int) -> int:
    """Return how many taken places the insertion of so many items may pass in a table that is at most half full.

    Hashes spread well enough for less than one per item. Loaded ones may be made up to be all the same, and filling a
    table would take the square of their number.
    """
    return 64 * items + 65_536


@inlined
def remove(code: np.uint64, number: int, table: NDArray[np.uint64]) -> None:
    """Remove an item that is in the table, and move later ones back into the gap where they may lie there."""
    mask, wanted = table.shape[0] - 1, entry(code, number)
    gap = home(code, table)
    while table[gap] != wanted:
        gap = after(gap, table)
    place = after(gap, table)
    while table[place] != EMPTY:
        if ((place - home(table[place] >> HALF, table)) & mask) >= ((place - gap) & mask):
            table[gap] = table[place]
            gap = place
        place = after(place, table)
    table[gap] = EMPTY


@inlined
def prefetch_home(code: np.uint64, table: NDArray[Any]) -> None:
    """Prefetch the place where the search for a hash begins."""
    prefetch(table, home(code, table))


@inlined
def likely_item(code: np.uint64, table: NDArray[np.uint64]) -> int:
    """Return the number of the item in the home of a hash if it may have this hash, else -1: for prefetching it."""
    found = table[home(code, table)]  # in an empty place stands the number -1
    return number_in(found) if may_be(found, code) else -1
