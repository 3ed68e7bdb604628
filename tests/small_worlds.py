"""Replays of a world of eight states, and random rows for them."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
from hypothesis import strategies as st

from backsweep import GraphValues, Replay, Uniform
from twins.planning import Row

STATES, ACTIONS, DISCOUNT = 8, 3, 0.9
BOUNDS = (-4.0, 6.0)
EXACT = {"tolerance": 1e-9, "most_backups": 1e6, "cautious": False}


@st.composite
def streams(draw: Any) -> list[list[tuple[Row, bool]]]:
    """Return rounds of rows with their truncations; between rounds, values are renewed."""
    few = draw(st.booleans())  # few outcomes: worlds that are nearly deterministic
    row = st.builds(
        Row,
        st.integers(0, STATES - 1),
        st.integers(0, ACTIONS - 1),
        st.sampled_from([-1.0, 0.0, 1.0, 2.5] if few else [-1.0, -0.25, 0.5]),
        st.integers(0, 2 if few else STATES - 1),
        st.sampled_from([False, False, False, True]),
    )
    return draw(st.lists(st.lists(st.tuples(row, st.booleans()), min_size=1, max_size=25), min_size=1, max_size=5))


def make(capacity: int = 1_000, sampler: Any = None, **options: Any) -> Replay:
    """Return an empty replay with graph values that are solved exactly and take the last answer, unless told."""
    return Replay(
        gym.spaces.Discrete(STATES),
        gym.spaces.Discrete(ACTIONS),
        capacity,
        sampler or Uniform(),
        gamma=DISCOUNT,
        values=GraphValues(**{**EXACT, **options}),
    )


def add(replay: Replay, row: Row, truncated: bool = True) -> None:
    """Add a row; an episode that does not terminate with it is truncated, unless told."""
    replay.add(row.state, row.action, row.reward, row.successor, row.terminated, truncated and not row.terminated)


def values_of(replay: Replay) -> dict[int, float]:
    """Return V of every state that is stored."""
    graph = replay.graph
    found = {state: graph.vertex(state) for state in range(STATES)}
    by_vertex = dict(zip(graph.vertices.tolist(), graph.values().tolist(), strict=True))
    return {state: by_vertex[vertex] for state, vertex in found.items() if vertex is not None}
