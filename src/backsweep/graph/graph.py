"""The graph as a class over the kernels, and the read-only view of it that users see."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from backsweep.checks import is_int
from backsweep.encoding.base import LiveEncoder
from backsweep.encoding.random_projection import LiveRandomProjection
from backsweep.graph import graph_kernels, rows_kernels, weights_kernels
from backsweep.graph.graph_check import GraphCheck, check_keys
from backsweep.graph.graph_kernels import (
    COLLISIONS,
    COUNT,
    E_COUNT,
    E_HEAD,
    E_SIZE,
    E_START,
    EDGES_HIGH,
    EDGES_LIVE,
    ENDINGS,
    KEY,
    POOL_USED,
    SOURCE,
    STAMP,
    START,
    TARGET,
    TERMINALS,
    USES,
    VERTICES_HIGH,
    VERTICES_LIVE,
    VISITS,
)
from backsweep.jit.array_table import addresses_of
from backsweep.jit.memory import WRITTEN_ALL_OVER, reserve
from backsweep.snapshot.contents import need
from backsweep.snapshot.saved_component import CheckStep, SavedComponent
from backsweep.store.ring_kernels import CLEARED, FLAGS, NEXT_OBSERVATION, OBSERVATION, RING, UNSEEN
from backsweep.store.staging import UNSEEN_WORD
from backsweep.store.store import Store, power_of_two_at_least
from backsweep.trees import map_tree
from backsweep.types import Rows, Vertex

if TYPE_CHECKING:
    import networkx

UNSEEN_KEY = np.int64(UNSEEN_WORD)
POOL_PLACES_PER_ROW = 8  # packed blocks need at most 5.4; the rest is space to grow before packing again


@dataclass(frozen=True)
class GraphDraws:
    """Which weighted draws a graph is kept ready for; without, they take time in proportion to all there is."""

    by_visits: bool = False
    """Edges into a vertex, in proportion to their rows."""
    temperatures: tuple[float, ...] = ()
    """Vertices, by the softmax of their average accumulated reward."""

    def __or__(self, other: GraphDraws) -> GraphDraws:
        temperatures = dict.fromkeys((*self.temperatures, *other.temperatures))
        return GraphDraws(self.by_visits or other.by_visits, tuple(temperatures))


class Graph(SavedComponent):
    """The graph of a store's live rows, updated by `follow` after each add."""

    def __init__(self, store: Store, encoder: LiveEncoder, draws: GraphDraws | None = None) -> None:
        capacity = store.capacity
        self.draws = GraphDraws() if draws is None else draws
        most_vertices = 2 * capacity
        self._store = store
        self._encoder = encoder
        self.vertices = reserve((most_vertices, KEY + encoder.words), np.int64)
        self.reward_sums = reserve((most_vertices,), np.float64)
        self._vertex_table = reserve((power_of_two_at_least(2 * most_vertices),), np.uint64, WRITTEN_ALL_OVER)
        self.edges = reserve((capacity, graph_kernels.EDGE_COLUMNS), np.int32)
        self._edge_table = reserve((power_of_two_at_least(2 * capacity),), np.uint64, WRITTEN_ALL_OVER)
        self.pool = reserve((POOL_PLACES_PER_ROW * capacity + 64,), np.int32)
        self.graph_rows = reserve((capacity, graph_kernels.GRAPH_ROW_COLUMNS), np.int32)
        self.returns = reserve((capacity, 2), np.float64)
        self.terminals = reserve((most_vertices,), np.int32)
        self.observation_vertex = reserve((2 * capacity,), np.int32)
        self.counters = np.zeros(graph_kernels.GRAPH_COUNTERS, np.int64)
        temperatures = np.array(self.draws.temperatures, np.float64)
        tree_size = power_of_two_at_least(max(most_vertices, 2))
        self._tallies = reserve((len(self.pool) if self.draws.by_visits else 0,), np.int32)
        self._trees = reserve((len(temperatures) * tree_size, 2), np.float64)
        # The arrays never move, so their addresses are stored once.
        self.bundle = graph_kernels.GraphArrays(
            self.vertices,
            self.reward_sums,
            self._vertex_table,
            self.edges,
            self._edge_table,
            self.pool,
            self.graph_rows,
            self.returns,
            self.terminals,
            self.observation_vertex,
            self.counters,
            self._tallies,
            self._trees,
            temperatures,
            np.zeros(2 * store.num_envs, np.uint64),
        )
        self.addresses = addresses_of(self.bundle)
        self._no_keys = np.empty((0, encoder.words), np.int64)
        self.new_keys = np.zeros((2 * store.num_envs, encoder.words), np.int64)
        """Scratch of the kernels that compute keys."""

    def keys_of_staged(self) -> NDArray[np.int64]:
        """Return the keys of all staged observations; keys of a wrong shape or dtype raise.

        Only for encoders that might fail: otherwise a key is computed once, when its observation is new.
        """
        store = self._store
        places = np.arange(2 * store.num_envs, dtype=np.int32)
        hidden = store.staging.unseen(places)
        shown = _select(store.staging.observations, np.where(hidden, places - store.num_envs, places))
        keys = np.asarray(self._encoder.encode(store.layout.as_given(shown)))
        expected = (2 * store.num_envs, self._encoder.words)
        if keys.shape != expected or keys.dtype.kind not in "iu":
            raise ValueError(
                f"encoder: {type(self._encoder).__name__}.encode must return integers of shape {expected}, "
                f"got {keys.dtype} of shape {keys.shape}"
            )
        return _marked(keys.astype(np.int64), hidden)

    def follow(self, first: int, new: int, staged_keys: NDArray[np.int64] | None = None) -> None:
        """Add the rows from serial number `first` on, which brought `new` new observations to the store."""
        store = self._store
        if staged_keys is not None:
            keys = staged_keys[store.fresh[:new, 0]]
        elif new:
            staged, places = store.staging.observations, store.fresh[:new, 0]
            if store.staging.hides_successors:
                hidden = store.staging.unseen(places)
                keys = _marked(self._keys(_select(staged, np.where(hidden, places - store.num_envs, places))), hidden)
            elif new == 1 and store.layout.single is not None:
                keys = self._keys(staged[places[0] : places[0] + 1])
            else:
                keys = self._keys(_select(staged, places))
        else:
            keys = self._no_keys
        self._add(first, store.total, int(store.counters[CLEARED]), store.fresh, keys)

    def build(self) -> None:
        """Add every row of the store, for a graph that is made after rows were added."""
        store = self._store
        rows = store.rows[np.arange(store.oldest, store.total) % store.capacity]
        numbers = np.unique(rows[:, OBSERVATION : NEXT_OBSERVATION + 1])
        fresh = np.stack([np.zeros_like(numbers), numbers], axis=1)
        words = store.observation_words(numbers)
        hidden = np.isin(numbers, rows[(rows[:, FLAGS] & UNSEEN) != 0, NEXT_OBSERVATION])
        words[hidden] ^= UNSEEN_WORD
        keys = _marked(self._keys(store.layout.views(words)), hidden) if len(numbers) else self._no_keys
        self._add(store.oldest, store.total, store.oldest, fresh, keys)

    def _keys(self, observations: Any) -> NDArray[np.int64]:
        if not isinstance(self._encoder, LiveRandomProjection):  # which may have the numbers in any order
            observations = self._store.layout.as_given(observations)
        return np.ascontiguousarray(self._encoder.encode(observations), dtype=np.int64)

    def _add(self, first: int, last: int, oldest: int, fresh: NDArray[np.int32], keys: NDArray[np.int64]) -> None:
        rows_kernels.add_rows(first, last, oldest, fresh, keys, self._store.table[RING], self.addresses)

    # -- looking --------------------------------------------------------------------------------------------------

    def find(self, observation: Any) -> Vertex | None:
        """Return the vertex of an observation, or None if it is not in the graph."""
        layout = self._store.layout
        checked = layout.check(observation, 1, "observation")
        vertex = int(graph_kernels.find_vertex(self._keys(checked)[0], self.vertices, self._vertex_table))
        return None if vertex < 0 else vertex

    @property
    def vertices_high(self) -> int:
        """An upper bound of vertex numbers."""
        return int(self.counters[VERTICES_HIGH])

    def stamps(self, vertices: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return a number for each vertex that no earlier or later vertex in its place has."""
        found: NDArray[np.int64] = self.vertices[vertices, STAMP]
        return found

    def live_vertices(self) -> NDArray[np.int64]:
        """Return all vertices."""
        return np.flatnonzero(self.vertices[: self.counters[VERTICES_HIGH], USES] > 0)

    def live_edges(self) -> NDArray[np.int64]:
        """Return all edges."""
        return np.flatnonzero(self.edges[: self.counters[EDGES_HIGH], E_COUNT] > 0)

    def edges_into(self, vertex: Vertex) -> NDArray[np.int32]:
        """Return the edges that lead to `vertex`, in stored order."""
        start, count = self.vertices[vertex, START], self.vertices[vertex, COUNT]
        return self.pool[start : start + count].copy()

    def rows_on(self, edge: int) -> Rows:
        """Return the serial numbers of the rows on an edge, oldest first."""
        start, size, head, count = self.edges[edge, [E_START, E_SIZE, E_HEAD, E_COUNT]].astype(np.int64)
        slots = self.pool[start + ((head + np.arange(count)) & (size - 1))].astype(np.int64)
        oldest, capacity = self._store.oldest, self._store.capacity
        serials: Rows = oldest + (slots - oldest) % capacity
        return serials

    def statistics(self) -> dict[str, int]:
        """Count what is in the graph."""
        return {
            "vertices": int(self.counters[VERTICES_LIVE]),
            "edges": int(self.counters[EDGES_LIVE]),
            "terminal_vertices": int(self.counters[TERMINALS]),
            "key_collisions": int(self.counters[COLLISIONS]),
        }

    @property
    def nbytes(self) -> int:
        """Bytes in use."""
        tables = self._vertex_table.nbytes + self._edge_table.nbytes
        tables += 4 * int(self.counters[POOL_USED]) if self.draws.by_visits else 0
        tables += 16 * self.vertices_high * len(self.draws.temperatures)
        return tables + sum(array.nbytes for array in self.arrays().values())

    # -- saving ---------------------------------------------------------------------------------------------------

    def all_arrays(self) -> dict[str, tuple[NDArray[Any], int]]:
        """Return every array that a save must hold, with the length of its used part."""
        used_rows = min(self._store.total, self._store.capacity)
        vertices, edges = int(self.counters[VERTICES_HIGH]), int(self.counters[EDGES_HIGH])
        return {
            "graph_counters": (self.counters, len(self.counters)),
            "vertices": (self.vertices, vertices),
            "reward_sums": (self.reward_sums, vertices),
            "edges": (self.edges, edges),
            "pool": (self.pool, int(self.counters[POOL_USED])),
            "graph_rows": (self.graph_rows, used_rows),
            "returns": (self.returns, used_rows),
            "terminals": (self.terminals, int(self.counters[TERMINALS])),
            "observation_vertex": (self.observation_vertex, self._store.observations_high),
        }

    def checks(self) -> tuple[CheckStep, ...]:
        """Return the steps of the check of loaded arrays."""
        return GraphCheck(self, self._store).steps()

    def build_tables(self) -> None:
        """Build the hash tables of vertices and edges."""
        need(graph_kernels.rebuild_tables(self.addresses), "too many of its vertices or edges are the same")

    def finish_loading(self) -> None:
        """Compare keys with those that the encoder gives, and compute the weights of draws."""
        check_keys(self, self._store, self._encoder)
        weights_kernels.rebuild_weights(self.addresses)


def _marked(keys: NDArray[np.int64], hidden: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Turn keys of last states into keys of the unseen states after them, which no observation has."""
    keys[hidden] ^= UNSEEN_KEY
    return keys


def _select(staged: Any, places: NDArray[np.int32]) -> Any:
    return map_tree(lambda array: array[places], staged)


class VertexValues(Protocol):
    """Where a view gets values; see `backsweep.planning`."""

    def values(self, vertices: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return V of live vertices."""

    def action_values(self, vertex: Vertex) -> NDArray[np.float64]:
        """Return Q of each action of a live vertex."""


class GraphView:
    """A read-only view of the graph.

    Vertex numbers are valid until the next ``add``.
    """

    def __init__(self, graph: Graph, locked: Callable[[], Any], values: VertexValues | None = None) -> None:
        self._graph = graph
        self._locked = locked
        self._values = values

    @property
    def num_vertices(self) -> int:
        """How many states the live transitions start or end in."""
        return int(self._graph.counters[VERTICES_LIVE])

    @property
    def num_edges(self) -> int:
        """How many pairs (predecessor, successor) have a live transition."""
        return int(self._graph.counters[EDGES_LIVE])

    @property
    def terminal_vertices(self) -> NDArray[np.int64]:
        """The vertices in which a live transition terminates."""
        with self._locked():
            return self._graph.terminals[: self._graph.counters[TERMINALS]].astype(np.int64)

    @property
    def vertices(self) -> NDArray[np.int64]:
        """All vertices."""
        with self._locked():
            return self._graph.live_vertices()

    def vertex(self, observation: Any) -> Vertex | None:
        """Return the vertex of an observation, or None if it is not in the graph."""
        with self._locked():
            return self._graph.find(observation)

    def _checked(self, vertex: Vertex) -> int:
        high = self._graph.counters[VERTICES_HIGH]
        if not is_int(vertex):
            raise TypeError(f"vertex must be an int, got {type(vertex).__name__}")
        if not 0 <= vertex < high or self._graph.vertices[vertex, USES] == 0:
            raise ValueError(f"vertex {vertex} is not in the graph; ask graph.vertex(observation) after the last add")
        return int(vertex)

    def predecessors(self, vertex: Vertex) -> NDArray[np.int64]:
        """Return the vertices from which a live transition leads to `vertex`."""
        with self._locked():
            edges = self._graph.edges_into(self._checked(vertex))
            sources: NDArray[np.int64] = self._graph.edges[edges, SOURCE].astype(np.int64)
            return sources

    def transitions(self, source: Vertex, target: Vertex) -> Rows:
        """Return the rows that lead from `source` to `target`, oldest first."""
        with self._locked():
            start, end = self._checked(source), self._checked(target)
            for edge in self._graph.edges_into(end):
                if self._graph.edges[edge, SOURCE] == start:
                    return self._graph.rows_on(int(edge))
            return np.empty(0, np.int64)

    def visits(self, vertex: Vertex) -> int:
        """Return how many stored visits `vertex` has."""
        with self._locked():
            return int(self._graph.vertices[self._checked(vertex), VISITS])

    def average_accumulated_reward(self, vertex: Vertex) -> float:
        """Return the mean, over the stored visits, of the reward collected from the episode's start to the visit."""
        with self._locked():
            checked = self._checked(vertex)
            return float(self._graph.reward_sums[checked] / self._graph.vertices[checked, VISITS])

    def values(self) -> NDArray[np.float64]:
        """Return V of each of `vertices` at the last `Replay.renew_values`; NaN for vertices added since."""
        with self._locked():
            return self._planned().values(self._graph.live_vertices())

    def action_values(self, vertex: Vertex) -> NDArray[np.float64]:
        """Return Q of each action in `vertex` at the last `Replay.renew_values`; NaN for untried actions."""
        with self._locked():
            return self._planned().action_values(self._checked(vertex))

    def _planned(self) -> VertexValues:
        if self._values is None:
            raise ValueError("the replay plans no values: make it with values=GraphValues()")
        return self._values

    def to_networkx(self) -> networkx.DiGraph[int]:
        """Return a networkx graph; nodes carry visits, terminal and average_accumulated_reward, edges their rows."""
        try:
            import networkx
        except ImportError as error:
            raise ImportError("to_networkx needs networkx: pip install networkx") from error
        result: networkx.DiGraph[int] = networkx.DiGraph()
        with self._locked():
            graph = self._graph
            for vertex in graph.live_vertices().tolist():
                result.add_node(
                    vertex,
                    visits=int(graph.vertices[vertex, VISITS]),
                    terminal=bool(graph.vertices[vertex, ENDINGS] > 0),
                    average_accumulated_reward=self.average_accumulated_reward(vertex),
                )
            for edge in graph.live_edges().tolist():
                source, target = graph.edges[edge, [SOURCE, TARGET]].tolist()
                result.add_edge(source, target, rows=graph.rows_on(edge).tolist())
        return result

    def __repr__(self) -> str:
        return (
            f"GraphView(num_vertices={self.num_vertices}, num_edges={self.num_edges}, "
            f"terminal_vertices={len(self.terminal_vertices)})"
        )
