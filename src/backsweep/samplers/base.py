"""What a sampler is.

A sampler is two objects. The *configuration* is a frozen dataclass that may be given to any
number of replays. The *live sampler*, built from it, belongs to one replay and holds the mutable state. Live samplers
see rows and vertices, never observations.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from backsweep.graph.graph import Graph, GraphDraws
from backsweep.jit.random_streams import generator_state, restore_generator
from backsweep.planning.planner import Planner
from backsweep.store.ring_kernels import FLAGS, REWARD, TERMINATED, TRUNCATED
from backsweep.store.store import Store
from backsweep.types import Picks, Rows


@dataclass(slots=True)
class SamplerState:
    """All of a live sampler, as arrays and plain JSON values."""

    arrays: dict[str, NDArray[Any]] = field(default_factory=dict)
    """Arrays by name."""
    values: dict[str, Any] = field(default_factory=dict)
    """Everything else, as plain JSON values."""


class Experience:
    """What a live sampler can see: the live rows with their rewards and ends, and the graph if it needs one."""

    def __init__(self, store: Store, graph: Graph | None, planner: Planner | None = None) -> None:
        self.store = store
        self._graph = graph
        self._planner = planner

    @property
    def graph(self) -> Graph:
        """The graph of the live rows."""
        assert self._graph is not None, "the sampler's configuration must say needs_graph = True"
        return self._graph

    @property
    def capacity(self) -> int:
        """The largest number of rows."""
        return self.store.capacity

    @property
    def oldest(self) -> int:
        """The serial number of the oldest live row; live rows are oldest..total-1."""
        return self.store.oldest

    @property
    def total(self) -> int:
        """The number of rows ever added; the next row gets this serial number."""
        return self.store.total

    @property
    def is_noisy(self) -> bool:
        """Whether graph values found outcomes too random to plan with; large TD errors are then mostly chance."""
        return self._planner is not None and self._planner.is_noisy

    def rewards(self, row: Rows) -> NDArray[np.float64]:
        """Return the rewards of live rows, by serial number."""
        rewards: NDArray[np.float64] = self.store.values[row % self.capacity, REWARD]
        return rewards

    def terminated(self, row: Rows) -> NDArray[np.bool_]:
        """Return which live rows terminated their episode."""
        return self._flagged(row, TERMINATED)

    def truncated(self, row: Rows) -> NDArray[np.bool_]:
        """Return which live rows reached a time limit; a row may have terminated in that step as well."""
        return self._flagged(row, TRUNCATED)

    def _flagged(self, row: Rows, flag: int) -> NDArray[np.bool_]:
        found: NDArray[np.bool_] = (self.store.rows[row % self.capacity, FLAGS] & flag) != 0
        return found

    def __len__(self) -> int:
        return len(self.store)


class LiveSampler:
    """Base class of live samplers. All methods but `pick` have defaults for a sampler without state."""

    def __init__(self, experience: Experience, generator: np.random.Generator) -> None:
        self.experience = experience
        self.generator = generator

    def pick(self, count: int) -> Picks:
        """Choose `count` live rows. Never called on an empty replay or with a count of 0."""
        raise TypeError(f"{type(self).__name__} must define pick")

    def pick_into(self, row: Rows, weight: NDArray[np.float32]) -> None:
        """Fill `row` with live rows, for a mixture; `weight` holds ones.

        Optional: it saves the mixture a copy.
        """
        picks = self.pick(len(row))
        row[:] = picks.row
        if picks.weight is not None:
            weight[:] = picks.weight

    def added(self, first: int, last: int) -> None:
        """Called after the rows first..last-1 were added; the rows that they overwrote are already gone.

        After an interrupt it may be called again for the same rows.
        """

    def listeners(self) -> tuple[Callable[[int, int], None], ...]:
        """Return what a replay calls after each add: `added`, unless it does nothing."""
        return () if getattr(self.added, "__func__", None) is LiveSampler.added else (self.added,)

    def update(self, row: Rows, td_error: NDArray[np.float64]) -> None:
        """Called with new TD errors of live rows; their sign does not matter."""

    @property
    def uses_priorities(self) -> bool:
        """Whether `update` does anything."""
        return False

    def statistics(self) -> dict[str, float]:
        """Return statistics to record."""
        return {}

    @property
    def nbytes(self) -> int:
        """Bytes in use."""
        return 0

    def state(self) -> SamplerState:
        """Return everything that the next picks depend on."""
        return SamplerState(values={"generator": generator_state(self.generator)})

    def load_state(self, state: SamplerState) -> None:
        """Restore a state that `state` returned."""
        restore_generator(self.generator, state.values["generator"])


@runtime_checkable
class Sampler(Protocol):
    """A frozen configuration that builds a live sampler.

    One that draws from the graph by weight may also have an attribute `graph_draws`; see `GraphDraws`.
    """

    @property
    def needs_graph(self) -> bool:
        """Whether the live sampler uses the graph."""

    def build(self, experience: Experience, generator: np.random.Generator) -> LiveSampler:
        """Return the live sampler for one replay; all its randomness comes from `generator`."""


def graph_draws(sampler: Sampler) -> GraphDraws:
    """Return which weighted draws a sampler's graph is to be kept ready for: none unless it says so."""
    draws = getattr(sampler, "graph_draws", GraphDraws())
    if not isinstance(draws, GraphDraws):
        raise TypeError(f"{type(sampler).__name__}: graph_draws must be GraphDraws(...), got {draws!r}")
    return draws
