"""The state interface of everything that a replay's save reads straight into arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

from numpy.typing import NDArray


class CheckStep(NamedTuple):
    """One step of the check of a loaded component."""

    arrays: tuple[str, ...]
    """The arrays that must have been read before it."""
    run: Callable[[Mapping[str, NDArray[Any]]], None]
    """Takes all arrays of the component; raises a ContentsError where they are wrong. It changes nothing."""


class SavedComponent(Protocol):
    """A component of a replay (the store, the graph, the planner) that knows what of it is saved.

    A save is read into `destinations`. The `checks` run on a second thread as arrays arrive; meanwhile `build_tables`
    builds what needs no more than correct sizes. Only after all checks does `finish_loading` follow the numbers.
    """

    def all_arrays(self) -> dict[str, tuple[NDArray[Any], int]]:
        """Return every array that a save must hold, by name, with the length of its used part."""

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the used part of every array that a save must hold."""
        return {name: array[:length] for name, (array, length) in self.all_arrays().items()}

    def destinations(self) -> dict[str, NDArray[Any]]:
        """Return the whole arrays that a save is read into."""
        return {name: array for name, (array, _) in self.all_arrays().items()}

    def checks(self) -> tuple[CheckStep, ...]:
        """Return the steps that refuse arrays which do not fit together; the first one checks all sizes.

        Before a step all earlier steps of every component have passed, and the same step of the components before it.
        """

    def build_tables(self) -> None:
        """Build what is not saved and needs only correct sizes: it runs while the other steps of the check do."""

    def finish_loading(self) -> None:
        """Check and build the rest, after all steps of the check of every component."""


def arrays_below(arrays: Mapping[str, NDArray[Any]], prefix: str) -> dict[str, NDArray[Any]]:
    """Return the arrays whose names begin with `prefix`, without it."""
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
