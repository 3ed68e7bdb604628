"""Output arrays that are reused once nothing refers to them.

Fresh memory for every batch costs several times the copying itself, because the system provides it page by page. A
pool that simply rotates would overwrite a batch that the caller still holds. This one counts the references to an
array: a batch is reused only when the caller and every view or tensor made of it are gone.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from backsweep.jit.array_table import addresses_of
from backsweep.store.layout import Layout
from backsweep.store.reading_kernels import Gathered
from backsweep.trees import leaves, map_tree

MOST_KEPT = 4  # of one size
MOST_SIZES = 4
CAN_COUNT = sys.implementation.name == "cpython" and getattr(sys, "_is_gil_enabled", lambda: True)()
"""Whether references to an object can be counted."""


class Output:
    """The arrays of one batch."""

    def __init__(self, layout: Layout, action_layout: Layout, size: int) -> None:
        self._layout = layout
        self.observation_words = np.empty((size, layout.words), np.uint64)
        self.next_words = np.empty((size, layout.words), np.uint64)
        self.action_words = np.zeros((size, action_layout.words), np.uint64)
        self.action_bytes = self.action_words.view(np.uint8)
        self._observation = layout.views(self.observation_words)
        self._next_observation = layout.views(self.next_words)
        self.action = action_layout.views(self.action_words)
        self.reward = np.empty(size, np.float32)
        self.discount = np.empty(size, np.float32)
        self.terminated = np.empty(size, np.bool_)
        self.target = np.empty(size, np.float32)
        self._scratch = np.empty((4, size), np.int64)
        self.addresses = addresses_of(
            Gathered(
                self.observation_words,
                self.next_words,
                self.action_bytes,
                self.reward,
                self.discount,
                self.terminated,
                self.target,
                *self._scratch,
            )
        )
        """The addresses of the arrays, for kernels."""
        self._watched = [
            self.observation_words,
            self.next_words,
            self.action_words,
            self.reward,
            self.discount,
            self.terminated,
            self.target,
            *leaves(self._observation),
            *leaves(self._next_observation),
            *leaves(self.action),
        ]
        self._references = self._count()

    @property
    def observation(self) -> Any:
        """The observations, in a new dict or tuple that the caller may keep or change."""
        return self._own(self._observation)

    @property
    def next_observation(self) -> Any:
        """The successors, in a new dict or tuple as well."""
        return self._own(self._next_observation)

    def _own(self, views: Any) -> Any:
        """Return arrays in the shape of the space, in containers that belong to the caller."""
        given = self._layout.as_given(views)
        return given if type(given) is np.ndarray else _own_containers(given)  # a walk through one leaf takes longer

    def _count(self) -> list[int]:
        return [sys.getrefcount(array) for array in self._watched]

    @property
    def is_free(self) -> bool:
        """Whether only this object refers to the arrays."""
        return self._count() == self._references


def _own_containers(tree: Any) -> Any:
    """Return new dicts and tuples of the same arrays, so that holding one keeps the arrays in use."""
    return map_tree(lambda array: array, tree)


class OutputPool:
    """Provides `Output` objects of a given size, free ones first."""

    def __init__(self, layout: Layout, action_layout: Layout) -> None:
        self._layout = layout
        self._action_layout = action_layout
        self._kept: dict[int, list[Output]] = {}

    def take(self, size: int) -> Output:
        """Return unused arrays for a batch of `size`."""
        kept = self._kept.pop(size, None)
        if kept is None:
            # Batches of many sizes, such as whole episodes, must not accumulate: drop the least recently used size.
            if len(self._kept) == MOST_SIZES:
                del self._kept[next(iter(self._kept))]
            kept = []
        self._kept[size] = kept
        for output in kept:
            if output.is_free:
                return output
        output = Output(self._layout, self._action_layout, size)
        if CAN_COUNT and len(kept) < MOST_KEPT:
            kept.append(output)
        return output
