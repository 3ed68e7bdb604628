"""The sum tree of prioritized replay.

A sum tree is one array of levels, from the root down; every node is the sum of its eight children, which share one
cache line:

    sums:    [ total . . . . . . . | 8 nodes | 64 nodes | ... | one leaf per slot, padded to full groups of 8 ]
    levels:    where each level starts, the leaves' last, and then where the array ends

A node is always recomputed from its children, in a fixed order, never adjusted by differences, so the tree is an
exact function of its leaves and rounding errors do not accumulate. A second array of the same shape holds minima; its
empty leaves are infinite.
"""

# In compiled code Python's numbers and numpy's are one and the same.
# mypy: disable-error-code="no-any-return,arg-type,assignment,return-value"

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from backsweep.jit.array_table import Addresses, Float64Vector, Int64Vector, unpack
from backsweep.jit.compilation import inlined, kernel
from backsweep.jit.prefetching import prefetch
from backsweep.jit.random_streams_kernels import draw_unit

FAN_OUT = 8
LARGEST_PRIORITY = 1e100  # so that the sum stays finite for any errors


class TreeArrays(NamedTuple):
    """A sum tree; without minima (an empty array) only sums are kept."""

    levels: Int64Vector
    sums: Float64Vector
    minima: Float64Vector


@inlined
def refresh_node(level: int, node: int, tree: TreeArrays) -> None:
    """Compute a node from its children, in pairs."""
    levels, sums, minima = tree.levels, tree.sums, tree.minima
    c = levels[level + 1] + FAN_OUT * node
    sums[levels[level] + node] = ((sums[c] + sums[c + 1]) + (sums[c + 2] + sums[c + 3])) + (
        (sums[c + 4] + sums[c + 5]) + (sums[c + 6] + sums[c + 7])
    )
    if minima.shape[0] > 0:
        smallest = minima[c]
        for i in range(1, FAN_OUT):
            if minima[c + i] < smallest:
                smallest = minima[c + i]
        minima[levels[level] + node] = smallest


@kernel
def set_range(first: int, last: int, capacity: int, value: float, tree_at: Addresses) -> None:
    """Give the rows first..last-1 the same priority."""
    tree = unpack(TreeArrays, tree_at)
    levels, sums, minima = tree.levels, tree.sums, tree.minima
    leaf_level = levels.shape[0] - 2
    while first < last:
        # Neighbouring leaves together: they share most of their parents, which are then updated once.
        start = first % capacity
        end = min(start + last - first, capacity)
        first += end - start
        for leaf in range(levels[leaf_level] + start, levels[leaf_level] + end):
            sums[leaf] = value
            if minima.shape[0] > 0:
                minima[leaf] = value
        for level in range(leaf_level - 1, -1, -1):
            start, end = start // FAN_OUT, (end - 1) // FAN_OUT + 1
            for node in range(start, end):
                refresh_node(level, node, tree)


@kernel
def build_trees(leaves: NDArray[np.float64], tree_at: Addresses) -> None:
    """Fill both trees from all live priorities at once."""
    tree = unpack(TreeArrays, tree_at)
    levels, sums, minima = tree.levels, tree.sums, tree.minima
    leaf_level = levels.shape[0] - 2
    for i in range(leaves.shape[0]):
        sums[levels[leaf_level] + i] = leaves[i]
        if minima.shape[0] > 0:
            minima[levels[leaf_level] + i] = leaves[i]
    nodes = leaves.shape[0]
    for level in range(leaf_level - 1, -1, -1):
        nodes = (nodes + FAN_OUT - 1) // FAN_OUT
        for node in range(nodes):
            refresh_node(level, node, tree)


@inlined
def prefetch_path(slot: int, tree: TreeArrays) -> None:
    """Prefetch a leaf and the lowest nodes above it; those near the root are cached anyway."""
    levels, sums, minima = tree.levels, tree.sums, tree.minima
    node = slot
    for level in range(levels.shape[0] - 2, max(levels.shape[0] - 5, 0), -1):
        prefetch(sums, levels[level] + node)
        if minima.shape[0] > 0:
            prefetch(minima, levels[level] + node)
        node //= FAN_OUT


@kernel
def update_priorities(
    row: NDArray[np.int64],
    error: NDArray[np.float64],
    capacity: int,
    alpha: float,
    epsilon: float,
    clip: float,
    largest: float,
    tree_at: Addresses,
) -> float:
    """Set the priorities of rows from their TD errors; return the largest priority so far."""
    tree = unpack(TreeArrays, tree_at)
    levels, sums, minima = tree.levels, tree.sums, tree.minima
    leaf_level = levels.shape[0] - 2
    nodes = np.empty(row.shape[0], np.int64)
    for i in range(row.shape[0]):
        nodes[i] = row[i] % capacity
        prefetch_path(nodes[i], tree)
    for i in range(row.shape[0]):
        priority = min((min(abs(error[i]), clip) + epsilon) ** alpha, LARGEST_PRIORITY)
        largest = max(largest, priority)
        sums[levels[leaf_level] + nodes[i]] = priority
        if minima.shape[0] > 0:
            minima[levels[leaf_level] + nodes[i]] = priority
    # Level by level: nodes of one level are independent, and nodes near the root are updated only once.
    for level in range(leaf_level - 1, -1, -1):
        size = (levels[level + 2] - levels[level + 1]) // FAN_OUT
        if size <= row.shape[0]:
            for node in range(size):
                refresh_node(level, node, tree)
        else:
            for i in range(row.shape[0]):
                nodes[i] //= FAN_OUT
                refresh_node(level, nodes[i], tree)
    return largest


@inlined
def choose_child(first: int, ticket: float, sums: NDArray[np.float64]) -> tuple[int, float]:
    """Return which of eight children from `first` on contains a ticket, and the sum of those before it."""
    chosen = 0
    passed = 0.0
    prefix = 0.0
    for i in range(FAN_OUT):
        prefix += sums[first + i]
        if ticket >= prefix:
            chosen = i + 1
            passed = prefix
    # Rounding may carry a ticket past the last share; a child with priority 0 is never chosen.
    while chosen == FAN_OUT or sums[first + chosen] == 0.0:
        chosen -= 1
        passed -= sums[first + chosen]
    return chosen, passed


@kernel
def draw_prioritized(
    seed: np.uint64,
    oldest: int,
    capacity: int,
    beta: float,
    stratified: bool,
    tree_at: Addresses,
    row: NDArray[np.int64],
    weight: NDArray[np.float32],
) -> None:
    """Draw rows in proportion to their priorities p, with importance weights (N * p / total) ** -beta.

    Weights are divided by the largest that any live row would have, or, without minima, by the largest in the batch.
    """
    tree = unpack(TreeArrays, tree_at)
    levels, sums, minima = tree.levels, tree.sums, tree.minima
    state = np.empty(1, np.uint64)
    state[0] = seed
    leaf_level = levels.shape[0] - 2
    leaves = levels[leaf_level]
    count = row.shape[0]
    total = sums[0]
    tickets = np.empty(count, np.float64)
    for i in range(count):
        unit = draw_unit(state)
        tickets[i] = (i + unit) / count * total if stratified else unit * total
        row[i] = 0
    # All tickets descend one level at a time, so that their memory accesses overlap.
    for level in range(1, leaf_level + 1):
        for i in range(count):
            chosen, passed = choose_child(levels[level] + FAN_OUT * row[i], tickets[i], sums)
            tickets[i] -= passed
            row[i] = FAN_OUT * row[i] + chosen
            if level < leaf_level:
                prefetch(sums, levels[level + 1] + FAN_OUT * row[i])
    smallest = np.inf
    for i in range(count):
        smallest = min(smallest, sums[leaves + row[i]])
        row[i] = oldest + (row[i] - oldest) % capacity
    if minima.shape[0] > 0:
        smallest = minima[0]
    # (N p / total) ** -beta divided by (N smallest / total) ** -beta: the common factors cancel.
    for i in range(count):
        weight[i] = (smallest / sums[leaves + row[i] % capacity]) ** beta
