"""Hints about what has changed, so that unchanged parts of large arrays need not be read.

A hint is valid only relative to one save. `SnapshotMemory` remembers which save that was; if the folder holds another
one, hints are ignored and everything is compared by digest instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
