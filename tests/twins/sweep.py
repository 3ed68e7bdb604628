"""The plain-Python twin of `sweep/sweep_kernels.py`: Algorithm 1 of the paper, line by line.

    search_queue     vertices to expand, with the row that each was reached by
    visited_vertex   vertices that have been expanded in this sweep
    batch_queue      rows found and not handed out yet

A vertex may stand in the search queue several times; it is marked when it is expanded, and marked ones are passed over
when they are popped. The kernel marks earlier and keeps a shorter queue, which must not make a difference.

Two rules bound the work of one call. More than `edges_at_once` predecessors are followed in parts, as the batches need
them. While `long_queue` vertices wait, one whose expansion would give nothing does not join them.
"""

from __future__ import annotations

import math
from collections import deque

from twins.graph import Edge, ReferenceGraph, ReferenceVertex
from twins.random_streams import SplitMix64
from twins.store import ReferenceStore, Row


def draw_distinct(random: SplitMix64, bound: int, count: int) -> list[int]:
    """Return `count` distinct numbers from 0..bound-1: the beginning of a shuffled list."""
    numbers = list(range(bound))
    for i in range(count):
        place = i + random.below(bound - i)
        numbers[i], numbers[place] = numbers[place], numbers[i]
    return numbers[:count]


def draw_by_visits(random: SplitMix64, edges: list[Edge], count: int) -> list[Edge]:
    """Draw `count` distinct edges one after another, each in proportion to its rows among those that are left."""
    left = list(edges)
    chosen = []
    for _ in range(count):
        ticket = random.below(sum(len(edge.rows) for edge in left))
        for edge in left:
            if ticket < len(edge.rows):
                break
            ticket -= len(edge.rows)
        chosen.append(edge)
        left.remove(edge)
    return chosen


def draw_pseudo_terminals(
    random: SplitMix64, vertices: list[ReferenceVertex], kappa: float, count: int
) -> list[ReferenceVertex]:
    """Draw vertices from softmax(U / kappa), with replacement."""
    if not vertices:
        return []
    largest = max(vertex.average_accumulated_reward for vertex in vertices)
    weights = [math.exp((vertex.average_accumulated_reward - largest) / kappa) for vertex in vertices]
    total = 0.0
    for weight in weights:
        total += weight
    roots = []
    for _ in range(count):
        ticket = random.unit() * total
        for vertex, weight in zip(vertices, weights, strict=True):
            if weight > 0.0:
                chosen = vertex
                if ticket < weight:
                    break
                ticket -= weight
        roots.append(chosen)
    return roots


def draw_better_terminals(
    random: SplitMix64, terminals: list[ReferenceVertex], candidates: int, count: int
) -> list[ReferenceVertex]:
    """Choose each root from some terminal vertices: one of the upper half of the range of their rewards."""
    if not terminals:
        return []
    roots = []
    for _ in range(count):
        drawn = [terminals[random.below(len(terminals))] for _ in range(candidates)]
        rewards = [vertex.average_accumulated_reward for vertex in drawn]
        middle = 0.5 * min(rewards) + 0.5 * max(rewards)
        better = [vertex for vertex, reward in zip(drawn, rewards, strict=True) if reward >= middle]
        roots.append(better[random.below(len(better))])
    return roots


class ReferenceSweep:
    """Algorithm 1, resumable, with all its options; `kappa` asks for pseudo-terminals."""

    def __init__(
        self,
        store: ReferenceStore,
        graph: ReferenceGraph,
        *,
        roots: int = 8,
        predecessors: int | None = 3,
        kappa: float | None = None,
        candidates: int = 1,
        separate_trees: bool = False,
        by_visits: bool = False,
        stitch: bool = True,
        word: int = 0,
        edges_at_once: int = 256,
        long_queue: int = 8192,
        most_empty_sweeps: int = 64,
    ) -> None:
        self.store = store
        self.graph = graph
        self.roots = roots
        self.predecessors = predecessors
        self.kappa = kappa
        self.candidates = candidates
        self.separate_trees = separate_trees
        self.by_visits = by_visits
        self.stitch = stitch
        self.random = SplitMix64(word)
        self.search_queue: deque[tuple[ReferenceVertex, Row | None]] = deque()
        self.visited_vertex: set[ReferenceVertex] = set()
        self.batch_queue: deque[int] = deque()
        self.waiting_roots: deque[ReferenceVertex] = deque()
        self.edges_at_once = edges_at_once
        self.long_queue = long_queue
        self.most_empty_sweeps = most_empty_sweeps
        self.hub: ReferenceVertex | None = None
        self.hub_next = 0
        self.restarts = 0
        self.expansions = 0

    def advance(self, count: int) -> list[int]:
        """Return the next `count` rows, or fewer if there is nowhere to start or many sweeps found none."""
        batch: list[int] = []
        found_since_restart, empty = True, 0
        while True:
            while self.batch_queue and len(batch) < count:
                row = self.batch_queue.popleft()
                if row in self.store.rows:
                    batch.append(row)
                    found_since_restart = True
            if len(batch) == count:
                return batch
            if self.hub is not None:
                self._follow_hub(self.hub)
                continue
            # Pop v' from search_queue until v' is not in visited_vertex.
            vertex, reached_by = self._pop()
            if vertex is not None:
                self._expand(vertex, reached_by)
            elif self.waiting_roots:
                self.visited_vertex = set()
                self.search_queue.append((self.waiting_roots.popleft(), None))
            else:
                empty = 0 if found_since_restart else empty + 1
                if empty == self.most_empty_sweeps:
                    return batch
                found_since_restart = False
                self.restarts += 1
                roots = self._draw_roots()
                if not roots:
                    return batch
                # Add sampled vertices from V_E to search_queue, visited_vertex <- {}.
                if self.separate_trees:
                    self.waiting_roots.extend(roots)
                else:
                    self.visited_vertex = set()
                    self.search_queue.extend((root, None) for root in roots)

    def _pop(self) -> tuple[ReferenceVertex | None, Row | None]:
        while self.search_queue:
            vertex, reached_by = self.search_queue.popleft()
            if vertex not in self.visited_vertex and self.graph.holds(vertex):
                return vertex, reached_by
            self.visited_vertex.add(vertex)
        return None, None

    def _draw_roots(self) -> list[ReferenceVertex]:
        if self.kappa is not None:
            return draw_pseudo_terminals(self.random, self.graph.in_order(), self.kappa, self.roots)
        terminals = self.graph.terminals
        if self.candidates > 1:
            return draw_better_terminals(self.random, terminals, self.candidates, self.roots)
        chosen = draw_distinct(self.random, len(terminals), min(self.roots, len(terminals)))
        return [terminals[place] for place in chosen]

    def _expand(self, vertex: ReferenceVertex, reached_by: Row | None) -> None:
        self.expansions += 1
        self.visited_vertex.add(vertex)
        if not self.stitch and reached_by is not None:
            self._step_back(reached_by)
            return
        if self._follows_all(vertex.edges_in) and len(vertex.edges_in) > self.edges_at_once:
            self.hub, self.hub_next = vertex, 0
            return
        # Sample a subset of the predecessor edges, and from each of them a transition.
        for edge in self._draw_edges(vertex.edges_in):
            self._push(edge.rows[self.random.below(len(edge.rows))])

    def _follow_hub(self, vertex: ReferenceVertex) -> None:
        """Follow the next edges of a vertex that is expanded in parts, as its list is by now."""
        edges = vertex.edges_in if self.graph.holds(vertex) else []
        for edge in edges[self.hub_next : self.hub_next + self.edges_at_once]:
            self._push(edge.rows[self.random.below(len(edge.rows))])
        self.hub_next += self.edges_at_once
        if self.hub_next >= len(edges):
            self.hub = None

    def _follows_all(self, edges: list[Edge]) -> bool:
        return self.predecessors is None or self.predecessors >= len(edges)

    def _draw_edges(self, edges: list[Edge]) -> list[Edge]:
        if self._follows_all(edges):
            return list(edges)
        if self.by_visits:
            return draw_by_visits(self.random, edges, self.predecessors)
        return [edges[place] for place in draw_distinct(self.random, len(edges), self.predecessors)]

    def _step_back(self, row: Row) -> None:
        """Without stitching: the one way back is the step before in the same episode, if it is still there."""
        if row.serial in self.store.rows and row.episode.rows[0] is not row:
            assert row.previous is not None
            self._push(row.previous)

    def _push(self, row: Row) -> None:
        """Push the predecessor v to search_queue and the transition to batch_queue."""
        self.batch_queue.append(row.serial)
        vertex = self.graph.vertices[self.graph.encode(row.step.observation)]
        leads_on = bool(vertex.edges_in) if self.stitch else row.episode.rows[0] is not row
        waiting = {vertex for vertex, _ in self.search_queue if vertex not in self.visited_vertex}
        if len(waiting) >= self.long_queue and not leads_on:
            return
        if len(waiting) == 2 * self.store.capacity and vertex not in waiting:
            # The kernel's queue has this many places; it makes room by dropping what has left the graph.
            self.visited_vertex.update(vertex for vertex in waiting if not self.graph.holds(vertex))
        self.search_queue.append((vertex, row))


def exchange(word: int, store: ReferenceStore, window: list[int], incoming: list[int]) -> list[int]:
    """Pass rows through a shuffling window: each incoming row goes in and a random live one comes out."""
    random = SplitMix64(word)
    out = []
    for row in incoming:
        window.append(row)
        while True:
            place = random.below(len(window))
            window[place], window[-1] = window[-1], window[place]
            candidate = window.pop()
            if candidate in store.rows:
                break
        out.append(candidate)
    return out
