"""The state interface of everything that a replay's save reads straight into arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from numpy.typing import NDArray


class SavedPart(Protocol):
    """A part of a replay (the store, the graph, the planner) that knows what of it is saved.

    Loading goes in three steps, for one part after another: a save is read into `destinations`, `check` refuses what
    could not have come about, and only then `finish_loading` follows the numbers.
    """

    def all_arrays(self) -> dict[str, tuple[NDArray[Any], int]]:
        """Return every array that a save must hold, by name, with the length of its used part."""
        ...

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the used part of every array that a save must hold."""
        return {name: array[:length] for name, (array, length) in self.all_arrays().items()}

    def destinations(self) -> dict[str, NDArray[Any]]:
        """Return the whole arrays that a save is read into."""
        return {name: array for name, (array, _) in self.all_arrays().items()}

    def check(self, loaded: Mapping[str, NDArray[Any]]) -> None:
        """Raise a ContentsError where loaded arrays do not fit together, before anything follows their numbers."""
        ...

    def finish_loading(self) -> None:
        """Build what is not saved."""
        ...


def part(arrays: Mapping[str, NDArray[Any]], prefix: str) -> dict[str, NDArray[Any]]:
    """Return the arrays whose names begin with `prefix`, without it."""
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
