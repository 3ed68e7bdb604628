"""C20: whether one reverse sweep from the terminal states finds the optimal values of a graph with cycles.

The claim is tested on random graphs of four kinds, by their rewards:

    equal       every step has the same negative reward, every ending the same positive one
    endings     as "equal", but endings have different rewards
    costs       steps have different rewards, 0 or less (the claim's only condition)
    positive    as "costs", but one step in ten has a positive reward

The rows of one sweep are backed up once, in order. The order is optimal if every state that can reach an ending then
has its optimal value.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from backsweep.jit.random_streams import named_generator
from backsweep.replay import Replay
from backsweep.samplers import Topological

KINDS = ("equal", "endings", "costs", "positive")
DISCOUNT = 0.99
UNKNOWN = -1e6  # where values start: "small enough", as the paper asks


@dataclass(frozen=True)
class RandomGraph:
    """A deterministic MDP whose last `terminal` states are endings; arrays are (states, actions)."""

    following: NDArray[np.int64]
    reward: NDArray[np.float64]
    states: int
    terminal: int

    def best_values(self) -> NDArray[np.float64]:
        """Return V* of every state, `UNKNOWN` where no ending can be reached."""
        values = np.full(self.states + self.terminal, UNKNOWN)
        values[self.states :] = 0.0
        for _ in range(100_000):
            worth = self.reward + DISCOUNT * values[self.following]
            worth[values[self.following] <= UNKNOWN] = UNKNOWN
            new = worth.max(axis=1)
            if np.array_equal(new, values[: self.states]):
                break
            values[: self.states] = new
        return values


def random_graph(kind: str, generator: np.random.Generator) -> RandomGraph:
    """Return a graph of one kind with cycles in it."""
    states, terminal = int(generator.integers(4, 30)), int(generator.integers(1, 4))
    actions = int(generator.integers(2, 4))
    following = generator.integers(states + terminal, size=(states, actions))
    ends = following >= states
    if kind in ("equal", "endings"):
        reward = np.full(following.shape, -1.0)
    else:
        reward = -generator.integers(0, 10, size=following.shape).astype(np.float64)
    if kind == "positive":
        pays = (generator.random(following.shape) < 0.1) & ~ends
        reward[pays] = generator.integers(1, 5, size=int(pays.sum()))
    prizes = np.full(terminal, 20.0) if kind == "equal" else generator.integers(0, 40, terminal).astype(np.float64)
    reward[ends] = prizes[following[ends] - states]
    return RandomGraph(following, reward, states, terminal)


def swept_values(graph: RandomGraph, seed: int) -> NDArray[np.float64]:
    """Return the values after one whole sweep, backed up in its order."""
    sampler = Topological(roots=graph.terminal, predecessors=None, trees="shared")
    count = graph.following.size
    replay = Replay(
        gym.spaces.Discrete(graph.states + graph.terminal),
        gym.spaces.Discrete(graph.following.shape[1]),
        capacity=count,
        sampler=sampler,
        gamma=DISCOUNT,
        seed=seed,
    )
    for state in range(graph.states):
        for action, after in enumerate(graph.following[state].tolist()):
            ended = after >= graph.states
            replay.add(state, action, graph.reward[state, action], after, ended, not ended)
    values = np.full((graph.states + graph.terminal, graph.following.shape[1]), UNKNOWN)
    values[graph.states :] = 0.0
    if not (graph.following >= graph.states).any():
        return best_of(values)
    seen: set[int] = set()
    while True:
        row = int(replay.sample(1).row[0])
        if row in seen:  # each edge comes once per sweep, so the next one has begun
            return best_of(values)
        seen.add(row)
        step = replay.read([row])
        state, action, after = int(step.observation[0]), int(step.action[0]), int(step.next_observation[0])
        values[state, action] = graph.reward[state, action] + DISCOUNT * values[after].max()


def best_of(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return each state's best value."""
    best: NDArray[np.float64] = values.max(axis=1)
    return best


def check_order(kind: str, seed: int, graphs: int) -> dict[str, Any]:
    """Return the record of one batch of random graphs."""
    generator = named_generator(seed, "graphs", kind)
    exact, wrong, states = 0, 0, 0
    for number in range(graphs):
        graph = random_graph(kind, generator)
        best, found = graph.best_values(), swept_values(graph, number)
        reachable = best[: graph.states] > UNKNOWN / 2
        off = ~np.isclose(found[: graph.states], best[: graph.states], rtol=1e-9, atol=1e-6) & reachable
        exact += not off.any()
        wrong += int(off.sum())
        states += int(reachable.sum())
    return {
        "kind": "sweep-order",
        "rewards": kind,
        "seed": seed,
        "graphs": graphs,
        "exact": exact,
        "states": states,
        "wrong_states": wrong,
    }


def all_orders(seed: int, *, graphs: int = 400) -> Iterator[dict[str, Any]]:
    """Yield a record for every kind of graph."""
    for kind in KINDS:
        yield check_order(kind, seed, graphs)
