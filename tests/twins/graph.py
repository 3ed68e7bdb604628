"""The plain-Python twin of `graph/graph_kernels.py`: the graph kept step by step in dicts, and made anew.

`ReferenceGraph` follows the store row by row and keeps the order of lists, which decides what a given random number
means. `graph_of` looks at the live rows alone and knows nothing of the past; it says what the graph must be.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from typing import TypeVar

from twins.store import ReferenceStore, Row

Key = Hashable
Encode = Callable[[Hashable], Key]
T = TypeVar("T")


@dataclass(eq=False)
class Edge:
    """All live rows from one vertex to another, oldest first."""

    source: ReferenceVertex
    target: ReferenceVertex
    rows: list[Row] = field(default_factory=list)


@dataclass(eq=False)
class ReferenceVertex:
    """A state. Each one that is ever made is an object of its own, also if its key was there before."""

    key: Key
    uses: int = 0
    visits: int = 0
    endings: int = 0
    reward_sum: float = 0.0
    edges_in: list[Edge] = field(default_factory=list)

    @property
    def average_accumulated_reward(self) -> float:
        """The mean, over the stored visits, of the reward collected from the episode's start to the visit."""
        return self.reward_sum / self.visits


class ReferenceGraph:
    """The graph of a reference store, brought up to date by `follow` after each add."""

    def __init__(self, store: ReferenceStore, encode: Encode) -> None:
        self.store = store
        self.encode = encode
        self.vertices: dict[Key, ReferenceVertex] = {}
        self.edges: dict[tuple[Key, Key], Edge] = {}
        self.terminals: list[ReferenceVertex] = []
        self.collisions = 0
        self._places: list[ReferenceVertex | None] = []
        self._free: list[int] = []
        self._observations: dict[Hashable, int] = {}
        self._continued: set[int] = set()

    def follow(self, changes: Iterable[tuple[Row | None, Row]]) -> None:
        """Take in what `ReferenceStore.add` returned."""
        for gone, row in changes:
            if gone is not None:
                self._remove(gone)
            self._add(row)

    def in_order(self) -> list[ReferenceVertex]:
        """Return the live vertices by place; a released place is taken again, the last released one first."""
        return [vertex for vertex in self._places if vertex is not None]

    def holds(self, vertex: ReferenceVertex) -> bool:
        """Say whether this very vertex is still there."""
        return self.vertices.get(vertex.key) is vertex

    def _enter(self, observation: Hashable) -> ReferenceVertex:
        key = self.encode(observation)
        vertex = self.vertices.get(key)
        uses = self._observations.get(observation, 0)
        if vertex is not None and uses == 0:
            self.collisions += 1
        if vertex is None:
            vertex = self.vertices[key] = ReferenceVertex(key)
            if self._free:
                self._places[self._free.pop()] = vertex
            else:
                self._places.append(vertex)
        self._observations[observation] = uses + 1
        vertex.uses += 1
        return vertex

    def _leave(self, observation: Hashable) -> None:
        self._observations[observation] -= 1
        if self._observations[observation] == 0:
            del self._observations[observation]
        vertex = self.vertices[self.encode(observation)]
        vertex.uses -= 1
        if vertex.uses == 0:
            del self.vertices[vertex.key]
            place = self._places.index(vertex)
            self._places[place] = None
            self._free.append(place)

    def _add(self, row: Row) -> None:
        source = self._enter(row.step.observation)
        target = self._enter(row.step.next_observation)
        edge = self.edges.get((source.key, target.key))
        if edge is None:
            edge = self.edges[source.key, target.key] = Edge(source, target)
            target.edges_in.append(edge)
        edge.rows.append(row)
        if row.step.terminated:
            if target.endings == 0:
                self.terminals.append(target)
            target.endings += 1
        if row.previous is None:
            source.visits += 1
            source.reward_sum += 0.0
        else:
            self._continued.add(row.previous.serial)
        target.visits += 1
        target.reward_sum += row.accumulated

    def _remove(self, row: Row) -> None:
        source = self.vertices[self.encode(row.step.observation)]
        target = self.vertices[self.encode(row.step.next_observation)]
        edge = self.edges[source.key, target.key]
        assert edge.rows[0] is row
        del edge.rows[0]
        if not edge.rows:
            del self.edges[source.key, target.key]
            _swap_remove(target.edges_in, edge)
        if row.step.terminated:
            target.endings -= 1
            if target.endings == 0:
                _swap_remove(self.terminals, target)
        # The visit from which the row left goes with it. The one in which it arrived stays with the row that left
        # from there, if there is one.
        source.visits -= 1
        source.reward_sum -= 0.0 if row.previous is None else row.previous.accumulated
        if row.serial in self._continued:
            self._continued.remove(row.serial)
        else:
            target.visits -= 1
            target.reward_sum -= row.accumulated
        self._leave(row.step.observation)
        self._leave(row.step.next_observation)


def _swap_remove(items: list[T], item: T) -> None:
    place = next(i for i, other in enumerate(items) if other is item)
    moved = items.pop()
    if moved is not item:
        items[place] = moved


@dataclass(frozen=True)
class PlainGraph:
    """What a set of live rows says about the graph, in sets and dicts."""

    vertices: frozenset[Key]
    edges: dict[tuple[Key, Key], frozenset[int]]
    """The serial numbers of the rows on each edge."""
    terminals: frozenset[Key]
    visits: dict[Key, int]
    average_accumulated_reward: dict[Key, float]


def graph_of(rows: Iterable[Row], encode: Encode) -> PlainGraph:
    """Work out the graph of live rows from nothing.

    A visit is a state at a time: the start of each live row, and its end unless a live row of the same episode goes
    on from there.
    """
    live = {row.serial: row for row in rows}
    edges: dict[tuple[Key, Key], set[int]] = {}
    accumulated: dict[Key, list[float]] = {}
    terminals = set()
    for row in live.values():
        source, target = encode(row.step.observation), encode(row.step.next_observation)
        edges.setdefault((source, target), set()).add(row.serial)
        if row.step.terminated:
            terminals.add(target)
        accumulated.setdefault(source, []).append(row.accumulated - row.step.reward)
        if row.next is None or row.next.serial not in live:
            accumulated.setdefault(target, []).append(row.accumulated)
    return PlainGraph(
        frozenset(key for pair in edges for key in pair),
        {pair: frozenset(serials) for pair, serials in edges.items()},
        frozenset(terminals),
        {key: len(values) for key, values in accumulated.items()},
        {key: sum(values) / len(values) for key, values in accumulated.items()},
    )
