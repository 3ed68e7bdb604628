"""The states and transitions of a replay as plain arrays, with states numbered from 0."""

from __future__ import annotations

from dataclasses import dataclass

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from backsweep.graph.distances import Indices
from backsweep.graph.graph_kernels import ENDINGS, ROW_EDGE, SOURCE, TARGET, VISITS
from backsweep.replay import Replay
from backsweep.replay.components import ReplayMachinery
from backsweep.store.ring_kernels import FLAGS, NEXT_OBSERVATION, OBSERVATION, REWARD, STARTS_EPISODE, UNSEEN


@dataclass(frozen=True)
class Facts:
    """The states and transitions of a replay."""

    vertex: Indices
    """Of each state: its vertex in the replay's graph."""
    stamp: Indices
    """Of each state: a number that is never used again."""
    visits: Indices
    age: Indices
    """Of each state: how many rows were added since it was last visited."""
    terminal: NDArray[np.bool_]
    start: NDArray[np.bool_]
    """Whether an episode that is still stored began there."""
    observation: Indices
    """Of each state: the number of one of its observations in the store; -1 if there is none."""
    value: NDArray[np.float64]
    """Graph values; NaN where none were planned."""
    source: Indices
    target: Indices
    """Of each edge: its states."""
    row_source: Indices
    row_target: Indices
    """Of each row, oldest first: its states."""
    row_action: Indices | None
    """Of each row: its action, counted from 0; None if actions are not discrete."""
    row_reward: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.vertex)


def machinery_with_graph(replay: Replay) -> ReplayMachinery:
    """Return the replay's machinery, with a graph."""
    _ = replay.graph
    return replay.machinery


def read_facts(replay: Replay) -> Facts:
    """Return copies of what the page shows; the caller holds the replay's lock if others may add to it."""
    machinery = machinery_with_graph(replay)
    store, graph = machinery.store, machinery.graph
    assert graph is not None
    vertex = graph.live_vertices()
    state_of = np.full(graph.vertices_high + 1, -1, np.int64)
    state_of[vertex] = np.arange(len(vertex))
    serial = np.arange(store.oldest, store.total)
    slot = serial % store.capacity
    rows, edge = store.rows[slot], graph.graph_rows[slot, ROW_EDGE]
    row_source, row_target = state_of[graph.edges[edge, SOURCE]], state_of[graph.edges[edge, TARGET]]
    last = np.full(len(vertex), store.oldest, np.int64)
    for state in (row_source, row_target):
        np.maximum.at(last, state, serial)
    start = np.zeros(len(vertex), np.bool_)
    start[row_source[(rows[:, FLAGS] & STARTS_EPISODE) != 0]] = True
    observation = np.full(len(vertex), -1, np.int64)
    seen = (rows[:, FLAGS] & UNSEEN) == 0
    observation[row_target[seen]] = rows[seen, NEXT_OBSERVATION]
    observation[row_source] = rows[:, OBSERVATION]
    live = graph.live_edges()
    space, row_action = replay.action_space, None
    if isinstance(space, gym.spaces.Discrete):
        row_action = store.discrete_actions[slot].astype(np.int64) - int(space.start)
    return Facts(
        vertex,
        graph.stamps(vertex).copy(),
        graph.vertices[vertex, VISITS].copy(),
        store.total - 1 - last,
        graph.vertices[vertex, ENDINGS] > 0,
        start,
        observation,
        np.full(len(vertex), np.nan) if machinery.planner is None else machinery.planner.values(vertex),
        state_of[graph.edges[live, SOURCE]],
        state_of[graph.edges[live, TARGET]],
        row_source,
        row_target,
        row_action,
        store.values[slot, REWARD].copy(),
    )
