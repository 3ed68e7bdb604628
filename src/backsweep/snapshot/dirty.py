"""Hints about what has changed, so that unchanged parts of large arrays need not be read.

A hint is valid only relative to one save. `SnapshotMemory` remembers which save that was; if the folder holds another
one, hints are ignored and everything is compared by digest instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from backsweep.snapshot.layout import ArraySpec

RowsChanged = Callable[[int, int], bool]
"""Says whether any of the rows from `start` up to `stop` may have changed since the last save."""

DirtyHint = RowsChanged | NDArray[np.bool_]
"""Either such a function or one flag per row."""


@dataclass(slots=True)
class SnapshotMemory:
    """What an object knows about its last save or load: the checksum of the manifest, which covers everything.

    Keep one for each object that saves itself, and pass it to every `write_snapshot` and `read_snapshot` of that
    object. Saving to a second folder in between is safe: the memory is then of the second folder's save.
    """

    checksum: str | None = None
    known: dict[str, tuple[int, ...]] = field(default_factory=dict)
    """The traits of each segment's file (see `files.traits`) when it was last known to be intact."""
    looked_at: int = 0
    """Segments that were read again although they seemed unchanged, in turn."""


class DirtyBlocks:
    """Marks changed rows in blocks; grows as needed. A `DirtyBlocks` is itself a hint for `write_snapshot`.

    Mark rows as they change, and `clear` once `write_snapshot` has returned (not before: a save that fails must find
    the marks still there).
    """

    def __init__(self, rows_per_block: int = 1024) -> None:
        if rows_per_block < 1:
            raise ValueError(f"rows_per_block is {rows_per_block}; expected at least 1")
        self.rows_per_block = rows_per_block
        self.flags: NDArray[np.bool_] = np.zeros(0, np.bool_)

    def mark(self, rows: ArrayLike) -> None:
        """Mark single rows, given by their (non-negative) numbers."""
        blocks = np.atleast_1d(np.asarray(rows, dtype=np.int64)) // self.rows_per_block
        if blocks.size:
            if blocks.min() < 0:
                raise ValueError(f"rows has the negative number {np.min(np.asarray(rows))}; expected 0 or more")
            self._reach(int(blocks.max()) + 1)
            self.flags[blocks] = True

    def mark_range(self, start: int, stop: int) -> None:
        """Mark the rows from `start` up to `stop`."""
        if start < 0:
            raise ValueError(f"start is {start}; expected 0 or more")
        if stop > start:
            end = -(-stop // self.rows_per_block)
            self._reach(end)
            self.flags[start // self.rows_per_block : end] = True

    def clear(self) -> None:
        """Remove all marks, after a save."""
        self.flags[:] = False

    def __call__(self, start: int, stop: int) -> bool:
        """Whether any row from `start` up to `stop` may have changed."""
        return bool(self.flags[start // self.rows_per_block : -(-stop // self.rows_per_block)].any())

    def _reach(self, blocks: int) -> None:
        if blocks > self.flags.size:
            grown = np.zeros(max(blocks, 2 * self.flags.size), np.bool_)
            grown[: self.flags.size] = self.flags
            self.flags = grown


def check_hints(dirty: Mapping[str, DirtyHint] | None, specs: Mapping[str, ArraySpec]) -> dict[str, RowsChanged]:
    """Turn every hint into a function, refusing those that do not fit their array."""
    hints: dict[str, RowsChanged] = {}
    for name, hint in (dirty or {}).items():
        if name not in specs:
            raise ValueError(f"dirty names {name!r}, which is not among the arrays: {sorted(specs)}")
        if isinstance(hint, np.ndarray):
            if hint.dtype != np.bool_:
                raise TypeError(f"dirty[{name!r}] has dtype {hint.dtype}; expected bool, one flag per row")
            if hint.shape != (specs[name].rows,):
                raise ValueError(f"dirty[{name!r}] has shape {hint.shape}; expected ({specs[name].rows},)")
            hints[name] = _any_flag(hint)
        elif callable(hint):
            hints[name] = hint
        else:
            raise TypeError(f"dirty[{name!r}] is a {type(hint).__name__}; expected an array of bool or a function")
    return hints


def _any_flag(flags: NDArray[Any]) -> RowsChanged:
    return lambda start, stop: bool(flags[start:stop].any())
