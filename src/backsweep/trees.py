"""Nested dicts and tuples of arrays or of spaces."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import gymnasium as gym


def map_tree(function: Callable[..., Any], tree: Any, *others: Any) -> Any:
    """Return a tree of the same form with what `function` gives for each leaf, and for those of `others` there.

    A Dict or Tuple space is a tree as well: it is walked through like the observations it describes.
    """
    if isinstance(tree, (gym.spaces.Dict, gym.spaces.Tuple)):
        tree = tree.spaces
    if isinstance(tree, dict):
        return {name: map_tree(function, inner, *(other[name] for other in others)) for name, inner in tree.items()}
    if isinstance(tree, tuple):
        return tuple(map_tree(function, *inners) for inners in zip(tree, *others, strict=True))
    return function(tree, *others)


def leaves(tree: Any) -> Iterator[Any]:
    """Yield the leaves of a tree, dict entries in their order."""
    if isinstance(tree, (gym.spaces.Dict, gym.spaces.Tuple)):
        tree = tree.spaces
    if isinstance(tree, (dict, tuple)):
        for inner in tree.values() if isinstance(tree, dict) else tree:
            yield from leaves(inner)
    else:
        yield tree
