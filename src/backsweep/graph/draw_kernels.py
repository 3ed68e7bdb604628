"""Sums that are kept up to date so that a weighted draw costs the logarithm of how many there are to draw from.

A *tally* is a Fenwick tree over the counts of a block whose size is a power of two: entry i - 1 holds the sum of the
counts from i - (i & -i) up to i - 1. Counts are whole numbers, so a draw finds the same place as a cumulative sum.

A *softmax tree* is a binary tree over places with scores. Node i has the children 2 i and 2 i + 1, node 1 is the root,
and the leaves, which are not stored, follow the last node. A node holds the largest score below it and the sum of
exp((score - largest) / temperature): nothing overflows, and no weight that matters underflows.
Every node depends on its children alone, so the tree is bitwise the same after any order of updates.
"""

# In compiled code Python's numbers and numpy's are one and the same.
# mypy: disable-error-code="no-any-return,arg-type,assignment,return-value"

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from backsweep.jit.compilation import inlined, kernel

# Columns of a softmax tree.
LARGEST = 0
SUM = 1


@inlined
def change_tally(tally: NDArray[np.int32], place: int, change: int) -> None:
    """Add to the count of a place."""
    i = place + 1
    while i <= tally.shape[0]:
        tally[i - 1] += change
        i += i & -i


@inlined
def sum_tally(tally: NDArray[np.int32]) -> None:
    """Turn counts into their tally, in place."""
    for i in range(1, tally.shape[0] + 1):
        parent = i + (i & -i)
        if parent <= tally.shape[0]:
            tally[parent - 1] += tally[i - 1]


@inlined
def find_in_tally(tally: NDArray[np.int32], ticket: int) -> int:
    """Return the first place up to which the counts add up to more than `ticket`, which is below their sum."""
    place = np.int64(0)
    step = np.int64(tally.shape[0])
    while step > 0:
        if place + step <= tally.shape[0] and tally[place + step - 1] <= ticket:
            place += step
            ticket -= tally[place - 1]
        step >>= 1
    return place


@kernel
def renew_node(tree: NDArray[np.float64], node: int, left: float, right: float, temperature: float) -> None:
    """Compute a node from two leaves with these scores; -inf is no score."""
    largest = max(left, right)
    tree[node, LARGEST] = largest
    tree[node, SUM] = 0.0
    if largest > -np.inf:
        for score in (left, right):
            if score > -np.inf:
                tree[node, SUM] += np.exp((score - largest) / temperature)


@kernel
def renew_parent(tree: NDArray[np.float64], node: int, temperature: float) -> None:
    """Compute a node from its two children. One without any score has the sum 0."""
    left, right = 2 * node, 2 * node + 1
    if tree[left, SUM] == 0.0 or tree[right, SUM] == 0.0:
        only = right if tree[left, SUM] == 0.0 else left
        tree[node, LARGEST] = tree[only, LARGEST]
        tree[node, SUM] = tree[only, SUM]
        return
    largest = max(tree[left, LARGEST], tree[right, LARGEST])
    tree[node, LARGEST] = largest
    tree[node, SUM] = tree[left, SUM] * np.exp((tree[left, LARGEST] - largest) / temperature)
    tree[node, SUM] += tree[right, SUM] * np.exp((tree[right, LARGEST] - largest) / temperature)


@kernel
def renew_path(tree: NDArray[np.float64], place: int, left: float, right: float, temperature: float) -> None:
    """Bring the tree up to date after the score of one place has changed; `left` and `right` are its pair's scores."""
    node = (tree.shape[0] + place) >> 1
    largest, total = tree[node, LARGEST], tree[node, SUM]
    renew_node(tree, node, left, right, temperature)
    # Where a node has not changed, nothing above it does.
    while node > 1 and (tree[node, LARGEST] != largest or tree[node, SUM] != total):
        node >>= 1
        largest, total = tree[node, LARGEST], tree[node, SUM]
        renew_parent(tree, node, temperature)


@inlined
def weight_of(tree: NDArray[np.float64], node: int, largest: float, temperature: float) -> float:
    """Return the weight of all that is below a node, where a score of `largest` weighs 1."""
    if tree[node, SUM] == 0.0:
        return 0.0
    return tree[node, SUM] * np.exp((tree[node, LARGEST] - largest) / temperature)


@kernel
def find_pair(tree: NDArray[np.float64], ticket: float, temperature: float) -> tuple[int, float]:
    """Return the first of the two places where a ticket from 0 up to the tree's sum falls, and what is left of it."""
    largest = tree[1, LARGEST]
    node = 1
    while 2 * node < tree.shape[0]:
        node *= 2
        weight = weight_of(tree, node, largest, temperature)
        # Rounding may carry a ticket past the end; it must not end at a place without a score.
        beyond = ticket >= weight and weight_of(tree, node + 1, largest, temperature) > 0.0
        if beyond or tree[node, SUM] == 0.0:
            ticket -= weight
            node += 1
    return 2 * node - tree.shape[0], ticket
