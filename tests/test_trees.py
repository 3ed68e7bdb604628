"""The walk over dicts and tuples of arrays, and over the spaces that describe them."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest

from backsweep.trees import leaves, map_tree

SPACE = gym.spaces.Dict(
    [("b", gym.spaces.Box(0, 1, (2,))), ("a", gym.spaces.Tuple([gym.spaces.Discrete(3), gym.spaces.Discrete(5)]))]
)
TREE = {"b": np.array([0.5, 0.25]), "a": (np.int64(2), np.int64(4))}


def test_leaves_come_in_the_order_of_the_space() -> None:
    assert [leaf.shape for leaf in leaves(SPACE)] == [(2,), (), ()]
    assert [np.asarray(leaf).tolist() for leaf in leaves(TREE)] == [[0.5, 0.25], 2, 4]
    assert list(leaves(7)) == [7]


def test_several_trees_are_walked_through_together() -> None:
    assert map_tree(lambda leaf: leaf.shape, SPACE) == {"b": (2,), "a": ((), ())}
    # Entries of other dicts are found by name, whatever their order.
    doubled = map_tree(lambda *found: len(found), SPACE, TREE, dict(reversed(TREE.items())))
    assert doubled == {"b": 3, "a": (3, 3)}
    assert map_tree(lambda leaf: leaf + 1, 7) == 8


def test_trees_of_another_form_are_refused() -> None:
    with pytest.raises(KeyError):
        map_tree(lambda one, other: one, TREE, {"b": 1})
    with pytest.raises(ValueError, match="shorter"):
        map_tree(lambda one, other: one, TREE, {"b": 1, "a": (1,)})
